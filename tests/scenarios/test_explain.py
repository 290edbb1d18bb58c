"""`kubectl dra explain` as its users see it: on a server, with the rights of a user, on a snapshot and on files."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from dra_operator.cli import main
from dra_operator.kube.api import MERGE, Api
from dra_operator.kube.kinds import KINDS
from dra_operator.testing.builders import (
    allocation,
    claim,
    device_class,
    devices,
    namespace,
    node,
    pod,
    pod_claim,
    request,
    resource_slice,
    result,
    template,
)
from dra_operator.testing.fakeapi import FakeApi

from .test_views import binding, kubeconfig_of_jane

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from click.testing import Result

GPU = "gpu.test"


def world() -> list[dict[str, Any]]:
    """A node with two GPUs, one of them in use; `next-0` wants both."""
    held = claim("train", request("gpu", "gpu"), namespace="theirs")
    held["status"] = {
        "allocation": allocation(result("gpu", GPU, "n1", "gpu-0"), node="n1"),
        "reservedFor": [{"resource": "pods", "name": "train-0", "uid": "uid-train-0"}],
    }
    return [
        node("n1"),
        device_class("gpu", driver=GPU),
        resource_slice("n1-gpus", GPU, devices(2), node="n1"),
        held,
        claim("next", request("gpu", "gpu", count=2), namespace="mine"),
        pod("next-0", pod_claim("gpu", claim="next"), namespace="mine"),
    ]


@pytest.fixture
async def admin(tmp_path: Path) -> AsyncIterator[tuple[FakeApi, Path]]:
    async with FakeApi(rbac=True) as started:
        for name in ("mine", "theirs"):
            started.create(namespace(name))
        kubeconfig = started.write_kubeconfig(tmp_path / "admin")
        async with await Api.connect(str(kubeconfig), None) as api:
            for made in world():
                started.create(made)
                if "status" in made and made["kind"] == "ResourceClaim":
                    path = KINDS["ResourceClaim"].path("theirs", "train", "status")
                    await api.request("PATCH", path, body={"status": made["status"]}, content_type=MERGE)
        yield started, kubeconfig


async def run(kubeconfig: Path | None, *arguments: str) -> Result:
    environment = {"KUBECONFIG": str(kubeconfig)} if kubeconfig else {}
    return await asyncio.to_thread(CliRunner().invoke, main, arguments, env=environment)


async def test_a_cluster_and_its_snapshot_say_the_same(admin: tuple[FakeApi, Path], tmp_path: Path) -> None:
    _, kubeconfig = admin
    live = await run(kubeconfig, "explain", "next-0", "-n", "mine")
    assert live.exit_code == 3, live.output
    first = live.stdout.splitlines()[0]
    assert first.startswith(
        "Pod mine/next-0: not now: request gpu wants 2 device(s) of class gpu on one node"
    )
    assert "n1, has 1 of 2 free (1 in use by claim theirs/train of pod train-0 since" in first
    assert "Remedy: free claim theirs/train" in first
    stored = tmp_path / "snapshot.json"
    assert (await run(kubeconfig, "snapshot", "-o", str(stored))).exit_code == 0
    again = await run(None, "explain", "--from", str(stored), "-n", "mine", "pod/next-0")
    assert again.stdout == live.stdout
    told = await run(kubeconfig, "explain", "claim/train", "-n", "theirs", "-o", "json")
    assert told.exit_code == 0
    found = json.loads(told.stdout)
    assert (found["verdict"], found["code"], found["held"][0]["pods"]) == ("served", "Allocated", ["train-0"])


async def test_who_may_not_see_who_holds_devices_is_told_nothing_false(
    admin: tuple[FakeApi, Path], tmp_path: Path
) -> None:
    server, _ = admin
    server.create(binding("jane", "view", "mine"))
    told = await run(kubeconfig_of_jane(server, tmp_path), "explain", "next-0")
    assert told.exit_code == 2
    assert "list" in told.stderr
    assert not told.stdout


async def test_names_that_are_not_there(admin: tuple[FakeApi, Path]) -> None:
    _, kubeconfig = admin
    told = await run(kubeconfig, "explain", "nextt-0", "-n", "mine")
    assert (told.exit_code, "did you mean next-0?" in told.stderr) == (2, True)
    told = await run(kubeconfig, "explain", "claim/next", "-n", "theirs")
    assert (told.exit_code, "there is mine/next" in told.stderr) == (2, True)


async def test_files_with_a_template_need_no_cluster(tmp_path: Path) -> None:
    objects = [
        *world()[:3],
        template("t", request("gpu", "gpu")),
        pod("p", pod_claim("gpu", template="t")),
    ]
    file = tmp_path / "world.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    told = await run(None, "explain", "-f", str(file), "p")
    assert told.exit_code == 0, told.output
    assert told.stdout.startswith(
        "Pod default/p: now: it can be served now on node n1, with gpu.test/n1/gpu-0"
    )
