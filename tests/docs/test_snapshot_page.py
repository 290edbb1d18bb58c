"""docs/snapshot.md, followed on the embedded API server with the node of docs/example: its commands are run by a shell, their output is compared."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import yaml

from dra_operator.simulation.given import GROUPS
from dra_operator.testing.builders import claim, pod, pod_claim, request
from dra_operator.testing.fakeapi import FakeApi

from .commands import ROOT, Command, matches, steps, tokens
from .test_examples import run

if TYPE_CHECKING:
    from pathlib import Path

PAGE = "docs/snapshot.md"


async def test_the_page_shows_what_its_commands_print(tmp_path: Path) -> None:
    async with FakeApi() as server:
        for obj in yaml.safe_load_all((ROOT / "docs/example/gpu-node.yaml").read_text()):
            server.create(obj)
        server.create(claim("one", request("gpu", "gpu.example.com")))
        server.create(pod("train", pod_claim("gpu", claim="one")))
        kubeconfig = server.write_kubeconfig(tmp_path / "kubeconfig")
        for step in steps(PAGE):
            assert isinstance(step, Command)
            printed = await asyncio.to_thread(run, step.text, tmp_path, KUBECONFIG=str(kubeconfig))
            assert matches(step.output, printed), f"{PAGE}:{step.line}: {step.text}\n{printed}"


def test_the_page_names_each_kind_that_is_taken() -> None:
    text = "\n".join(token.content for token in tokens(PAGE) if token.type == "inline")
    assert [kind for kind in GROUPS if kind not in text] == []
