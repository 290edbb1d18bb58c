"""docs/snapshot.md and docs/taint.md, followed on the embedded API server with the node of docs/example: their commands are run by a shell, their output is compared."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
import yaml

from dra_operator.kube.api import MERGE, Api
from dra_operator.simulation.given import GROUPS
from dra_operator.testing.builders import allocation, claim, pod, pod_claim, request, result
from dra_operator.testing.fakeapi import FakeApi

from .commands import ROOT, File, matches, steps, tokens
from .test_examples import run

if TYPE_CHECKING:
    from pathlib import Path

PAGES = ("docs/snapshot.md", "docs/taint.md")
DRIVER = "gpu.example.com"


@pytest.mark.parametrize("page", PAGES)
async def test_the_page_shows_what_its_commands_print(page: str, tmp_path: Path) -> None:
    async with FakeApi() as server:
        for obj in yaml.safe_load_all((ROOT / "docs/example/gpu-node.yaml").read_text()):
            server.create(obj)
        kubeconfig = server.write_kubeconfig(tmp_path / "kubeconfig")
        await (waiting if page == "docs/snapshot.md" else running)(server, kubeconfig)
        for step in steps(page):
            if isinstance(step, File):
                (tmp_path / step.path).write_text(step.text)
            else:
                printed = await asyncio.to_thread(run, step.text, tmp_path, KUBECONFIG=str(kubeconfig))
                assert matches(step.output, printed), f"{page}:{step.line}: {step.text}\n{printed}"


async def waiting(server: FakeApi, _: Path) -> None:
    """A pod that waits for a device."""
    server.create(claim("one", request("gpu", DRIVER)))
    server.create(pod("train", pod_claim("gpu", claim="one")))


async def running(server: FakeApi, kubeconfig: Path) -> None:
    """A pod that has one, and tolerates its maintenance for five minutes."""
    patient = [{"key": "maintenance", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}]
    server.create(claim("one", request("gpu", DRIVER, tolerations=patient)))
    made = server.create(pod("train", pod_claim("gpu", claim="one"), nodeName="gpu-node-1"))
    held = result("gpu", DRIVER, "gpu-node-1", "gpu-0", tolerations=patient)
    consumer = {"resource": "pods", "name": "train", "uid": made["metadata"]["uid"]}
    status = {"allocation": allocation(held, node="gpu-node-1"), "reservedFor": [consumer]}
    path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/one/status"
    async with await Api.connect(str(kubeconfig), None) as api:
        await api.request("PATCH", path, body={"status": status}, content_type=MERGE)


def test_the_page_of_snapshots_names_each_kind_that_is_taken() -> None:
    text = "\n".join(token.content for token in tokens("docs/snapshot.md") if token.type == "inline")
    assert [kind for kind in GROUPS if kind not in text] == []
