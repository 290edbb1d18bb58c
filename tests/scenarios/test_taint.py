"""`kubectl dra taint --dry-run` as its user runs it: on a cluster and on a snapshot of it; nothing is ever written."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from click.testing import CliRunner

from dra_operator.cli import main
from dra_operator.kube.api import MERGE, Api
from dra_operator.testing.builders import (
    Obj,
    allocation,
    claim,
    devices,
    node,
    pod,
    pod_claim,
    request,
    resource_slice,
    result,
    taint_rule,
)
from dra_operator.testing.fakeapi import FakeApi

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from click.testing import Result

DRIVER = "gpu.test"
PATIENT = [{"key": "hot", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}]
HARDY = [{"key": "hot", "operator": "Exists", "effect": "NoExecute"}]


def squeezed(shown: str) -> list[str]:
    return [" ".join(line.split()) for line in shown.splitlines()]


@pytest.fixture
async def server() -> AsyncIterator[FakeApi]:
    """Four devices on a node; pods that tolerate a taint not at all, for a while, for good; and a claim that nobody uses."""
    async with FakeApi(rbac=True) as started:
        started.create(node("n1"))
        started.create(resource_slice("n1-gpus", DRIVER, devices(4), node="n1"))
        yield started


@pytest.fixture
async def kubeconfig(server: FakeApi, tmp_path: Path) -> Path:
    path = server.write_kubeconfig(tmp_path / "kubeconfig")
    async with await Api.connect(str(path), None) as api:
        held: dict[str, list[Obj]] = {"plain": [], "patient": PATIENT, "hardy": HARDY, "idle": []}
        for number, (name, tolerations) in enumerate(held.items()):
            await hold(api, server, name, f"gpu-{number}", tolerations)
    return path


async def hold(api: Api, server: FakeApi, name: str, device: str, tolerations: list[Obj]) -> None:
    """A claim that holds a device, with a pod of the same name unless that is `idle`."""
    server.create(claim(name, request("gpu", "gpu", tolerations=tolerations)))
    more: dict[str, Any] = {"tolerations": tolerations} if tolerations else {}
    status: Obj = {"allocation": allocation(result("gpu", DRIVER, "n1", device, **more), node="n1")}
    if name != "idle":
        made = server.create(pod(name, pod_claim("gpu", claim=name), nodeName="n1"))
        status["reservedFor"] = [{"resource": "pods", "name": name, "uid": made["metadata"]["uid"]}]
    path = f"/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/{name}/status"
    await api.request("PATCH", path, body={"status": status}, content_type=MERGE)


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, ["taint", *arguments], input=stdin)


async def live(kubeconfig: Path, *arguments: str, stdin: str | None = None) -> Result:
    return await asyncio.to_thread(run, *arguments, f"--kubeconfig={kubeconfig}", stdin=stdin)


async def test_who_would_go_and_when_is_told_and_nothing_is_written(
    server: FakeApi, kubeconfig: Path
) -> None:
    before = len(server.calls)
    shown = await live(kubeconfig, f"{DRIVER}/n1/*", "hot=yes:NoExecute", "--dry-run")

    assert shown.exit_code == 3
    assert squeezed(shown.stdout) == [
        "NAMESPACE CLAIM DEVICES POD NODE GOES",
        "default hardy gpu.test/n1/gpu-2 hardy n1 stays: tolerates it",
        "default idle gpu.test/n1/gpu-3",
        "default patient gpu.test/n1/gpu-1 patient n1 after 300 s",
        "default plain gpu.test/n1/gpu-0 plain n1 at once",
    ]
    assert shown.stderr == (
        "hot=yes:NoExecute: 4 published device(s) selected; 4 claim(s) hold such; 2 pod(s) would be evicted, 1 of them after a while. "
        "Nothing was written.\n"
    )
    assert {call.verb for call, _ in server.calls[before:]} <= {"list", "get"}


async def test_a_snapshot_says_the_same(kubeconfig: Path, tmp_path: Path) -> None:
    path = str(tmp_path / "snap.json")
    arguments = ["snapshot", f"--kubeconfig={kubeconfig}", "-o", path]
    assert (await asyncio.to_thread(CliRunner().invoke, main, arguments)).exit_code == 0
    wanted = (f"{DRIVER}/n1/*", "hot:NoExecute", "--dry-run")

    of_cluster, of_snapshot = await live(kubeconfig, *wanted), run(*wanted, "--from", path)

    assert (of_cluster.exit_code, of_cluster.output) == (of_snapshot.exit_code, of_snapshot.output)


@pytest.mark.parametrize(
    ("effect", "goes", "words"),
    [
        ("NoSchedule", "stays: NoSchedule evicts nobody", "keeps new claims off that do not tolerate it"),
        ("None", "with NoExecute: at once", "None evicts nobody; with NoExecute 1 pod(s) would be evicted"),
    ],
)
async def test_an_effect_that_evicts_nobody_says_so(
    effect: str, goes: str, words: str, kubeconfig: Path
) -> None:
    shown = await live(kubeconfig, f"{DRIVER}/n1/gpu-0", f"hot:{effect}", "--dry-run")

    assert shown.exit_code == 0
    assert squeezed(shown.stdout)[1] == f"default plain gpu.test/n1/gpu-0 plain n1 {goes}"
    assert words in shown.stderr


async def test_rules_of_a_file_are_looked_at_each_by_itself(kubeconfig: Path) -> None:
    none = taint_rule("none", key="hot", effect="NoExecute")
    del none["spec"]["deviceSelector"]
    rules = [
        taint_rule("one", key="hot", effect="NoExecute", driver=DRIVER, pool="n1", device="gpu-0"),
        taint_rule("everything", key="cold", effect="NoExecute"),
        none,
    ]
    text = "\n---\n".join(json.dumps(one) for one in rules)

    shown = await live(kubeconfig, "-f", "-", "--dry-run", "-o", "yaml", stdin=text)
    told = await live(kubeconfig, "-f", "-", "--dry-run", stdin=text)
    names = await live(kubeconfig, "-f", "-", "--dry-run", "-o", "name", stdin=text)

    found = {one["rule"]: one for one in yaml.safe_load(shown.stdout)}
    assert found["one"]["evicted"] == [{"pod": "default/plain", "afterSeconds": 0}]
    assert [one["pod"] for one in found["everything"]["evicted"]] == [
        "default/hardy",
        "default/patient",
        "default/plain",
    ]
    assert found["none"]["claims"] == []
    assert "4 published device(s) selected, all that there are" in told.stderr
    assert "none: Without a deviceSelector it selects no device" in told.stderr
    assert names.stdout.split() == ["pod/hardy", "pod/patient", "pod/plain"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("a/b/c", "d:NoExecute"), "this command only looks, and writes nothing: say --dry-run"),
        (("--dry-run",), "name a device and a taint, or a file"),
        (("a/b/c", "--dry-run"), "name a device and a taint, or a file"),
        (("a/b", "d:NoExecute", "--dry-run"), "write the device as driver/pool/device"),
        (("a/b/c", "d", "--dry-run"), "write the taint as key[=value]:effect"),
        (("-f", "none.yaml", "--dry-run"), "none.yaml: "),
        (("-f", "-", "--dry-run"), "there is no DeviceTaintRule in it"),
        (("a/b/c", "d:NoExecute", "--dry-run", "--from", "none.json"), "none.json: "),
    ],
)
def test_what_cannot_be_told_is_exit_2_with_a_word(arguments: tuple[str, ...], words: str) -> None:
    shown = run(*arguments, stdin="")

    assert (shown.exit_code, shown.stdout) == (2, "")
    assert words in shown.stderr


async def test_who_may_not_list_all_claims_and_pods_is_told_so(server: FakeApi, tmp_path: Path) -> None:
    assert server.guard is not None
    path = tmp_path / "jane"
    path.write_text(server.kubeconfig(server.guard.user_token("jane")))

    shown = await live(path, "a/b/c", "d:NoExecute", "--dry-run")

    assert (shown.exit_code, shown.stdout) == (2, "")
    assert "needs the right to list claims and pods in all namespaces" in shown.stderr


async def test_a_pod_goes_by_the_least_of_its_claims_times(server: FakeApi, kubeconfig: Path) -> None:
    """Cp T-9."""
    both = pod("both", pod_claim("a", claim="a"), pod_claim("b", claim="b"), nodeName="n1")
    made = server.create(both)
    consumer = {"resource": "pods", "name": "both", "uid": made["metadata"]["uid"]}
    async with await Api.connect(str(kubeconfig), None) as api:
        for name, device, tolerations in (("a", "gpu-0", PATIENT), ("b", "gpu-1", HARDY)):
            server.create(claim(name, request("gpu", "gpu", tolerations=tolerations)))
            held = result("gpu", "other.test", "n1", device, tolerations=tolerations)
            status = {"allocation": allocation(held, node="n1"), "reservedFor": [consumer]}
            path = f"/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/{name}/status"
            await api.request("PATCH", path, body={"status": status}, content_type=MERGE)

    shown = await live(kubeconfig, "other.test/*/*", "hot:NoExecute", "--dry-run")

    assert squeezed(shown.stdout)[1:] == [
        "default a other.test/n1/gpu-0 both n1 after 300 s",
        "default b other.test/n1/gpu-1 both n1 after 300 s, by another claim",
    ]
