"""`kubectl dra snapshot` as its user runs it, and what other commands say of the file in the place of the cluster."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
import yaml
from click.testing import CliRunner

from dra_operator.cli import main
from dra_operator.kube.api import MERGE, Api
from dra_operator.kube.listing import PAGE
from dra_operator.simulation import Given, simulate
from dra_operator.simulation.given import GROUPS
from dra_operator.simulation.keeping import kept
from dra_operator.testing.builders import (
    Obj,
    allocation,
    claim,
    device_class,
    devices,
    node,
    pod,
    pod_claim,
    request,
    resource_slice,
    result,
    taint_rule,
    template,
)
from dra_operator.testing.fakeapi import Call, FakeApi, Fault, gone
from tests.inputs.cases import CASES, Case
from tests.inputs.manifests import expanded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from pathlib import Path

    from click.testing import Result

    from dra_operator.model import ResourceClaim


DRIVER = "gpu.test"
GPU = request("gpu", "gpu")
CLUSTER = (
    node("n1"),
    node("n2", taints=[{"key": "dedicated", "value": "a", "effect": "NoSchedule"}]),
    device_class("gpu", driver=DRIVER),
    resource_slice("n1-gpus", DRIVER, devices(4), node="n1"),
    resource_slice("n2-gpus", DRIVER, devices(4), node="n2"),
    taint_rule("broken", key="broken", driver=DRIVER, pool="n1", device="gpu-3"),
    template("t", GPU),
    template("many", request("gpu", "gpu", count=3)),
    claim("held", GPU),
    claim("bare", GPU),
)


@pytest.fixture
async def server() -> AsyncIterator[FakeApi]:
    """Two nodes, one of them tainted; one device held, one tainted; pods that wait, of which one gets nothing. jane may list what `view` lets her."""
    async with FakeApi(rbac=True) as started:
        for obj in CLUSTER:
            started.create(obj)
        for name, of in (("a", "t"), ("b", "many"), ("c", "t")):
            started.create(pod(name, pod_claim("gpu", template=of), requests={"cpu": "1"}))
        group = "rbac.authorization.k8s.io"
        started.create(
            {
                "apiVersion": f"{group}/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": "jane"},
                "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "view"},
                "subjects": [{"apiGroup": group, "kind": "User", "name": "jane"}],
            }
        )
        yield started


@pytest.fixture
async def kubeconfig(server: FakeApi, tmp_path: Path) -> Path:
    """An admin's, in a context of namespace `default`; the claim `held` is allocated."""
    path = server.write_kubeconfig(tmp_path / "kubeconfig")
    status = {"allocation": allocation(result("gpu", DRIVER, "n1", "gpu-0"), node="n1")}
    held = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/held/status"
    async with await Api.connect(str(path), None) as api:
        await api.request("PATCH", held, body={"status": status}, content_type=MERGE)
    return path


def jane(server: FakeApi, tmp_path: Path) -> Path:
    assert server.guard is not None
    document = yaml.safe_load(server.kubeconfig(server.guard.user_token("jane")))
    path = tmp_path / "jane"
    path.write_text(yaml.safe_dump(document))
    return path


def run(*arguments: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(main, arguments, input=stdin)


async def live(*arguments: str, stdin: str | None = None) -> Result:
    return await asyncio.to_thread(run, *arguments, stdin=stdin)


async def taken(kubeconfig: Path, name: str = "snap.json") -> Path:
    path = kubeconfig.parent / name
    shown = await live("snapshot", f"--kubeconfig={kubeconfig}", "-o", str(path))
    assert shown.exit_code == 0, shown.output
    return path


async def test_simulate_says_of_the_snapshot_what_it_says_of_the_cluster(kubeconfig: Path) -> None:
    file = json.dumps(pod("late", pod_claim("gpu", template="t")))
    path = await taken(kubeconfig)

    for output in ("table", "json"):
        of_cluster = await live("simulate", f"--kubeconfig={kubeconfig}", "-o", output, "-f", "-", stdin=file)
        of_snapshot = run("simulate", "--from", str(path), "-o", output, "-f", "-", stdin=file)

        assert of_cluster.exit_code == of_snapshot.exit_code == 3
        assert of_cluster.stderr == of_snapshot.stderr
        if output == "table":
            assert of_cluster.stdout == of_snapshot.stdout
        else:
            assert decided(of_cluster) == decided(of_snapshot)
            assert len(decided(of_cluster)) == 10


def decided(shown: Result) -> list[Any]:
    """Claims whole, of pods where they go, and what is not placed."""
    whole = json.loads(shown.stdout)
    items = [
        one if one["kind"] == "ResourceClaim" else (one["metadata"]["name"], one["spec"].get("nodeName"))
        for one in whole["items"]
    ]
    return [*items, whole["notPlaced"]]


async def test_the_file_has_facts_an_object_a_line_in_order_and_is_the_same_again(kubeconfig: Path) -> None:
    text = (await taken(kubeconfig)).read_text()
    again = (await taken(kubeconfig, "again.json")).read_text()

    whole = json.loads(text)
    facts = whole.pop("snapshot")
    assert (facts["serverVersion"], facts["minor"], facts["namespace"]) == ("v1.37.0-fakeapi", 37, "default")
    assert facts["served"]["ResourceClaim"] == "resource.k8s.io/v1"
    assert "DRADeviceTaints" in facts["featureGates"]["byDefault"]
    assert facts["takenAt"].endswith("Z")
    names = [
        (one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]) for one in whole["items"]
    ]
    assert names == sorted(names)
    assert {kind for kind, _, _ in names} <= GROUPS.keys()
    assert len(text.splitlines()) == len(names) + 2
    assert text.splitlines()[1:] == again.splitlines()[1:]
    assert {"managedFields"} & {key for one in whole["items"] for key in one["metadata"]} == set()


async def test_a_name_that_ends_with_gz_is_gzip_and_stdout_and_stdin_do(kubeconfig: Path) -> None:
    plain = await taken(kubeconfig)
    packed = await taken(kubeconfig, "snap.json.gz")
    shown = await live("snapshot", f"--kubeconfig={kubeconfig}")

    objects = plain.read_text().splitlines()[1:]
    assert gzip.decompress(packed.read_bytes()).decode().splitlines()[1:] == objects
    assert shown.stdout.splitlines()[1:] == objects
    assert shown.stderr == f"{len(objects) - 1} objects of v1.37.0-fakeapi.\n"
    for content in (packed.read_bytes(), plain.read_bytes()):
        assert run("simulate", "--from", "-", stdin=content).exit_code == 3


def ageless(table: str) -> str:
    """Without ages: that of a snapshot is as of when it was taken."""
    return re.sub(r"\b\d+s\b", "…", table)


async def test_claims_and_drift_say_of_the_snapshot_what_they_say_of_the_cluster(kubeconfig: Path) -> None:
    path = await taken(kubeconfig)

    for command in (
        ("claims", "-o", "json"),
        ("claims", "-A", "-o", "json"),
        ("claims", "-n", "none"),
        ("drift", "--apart=0", "-o", "json"),
        ("drift", "--apart=0", "-A", "--mode=replace"),
    ):
        of_cluster = await live(*command, f"--kubeconfig={kubeconfig}")
        of_snapshot = await live(*command, "--from", str(path))

        assert (of_cluster.exit_code, ageless(of_cluster.stdout), of_cluster.stderr) == (
            of_snapshot.exit_code,
            ageless(of_snapshot.stdout),
            of_snapshot.stderr,
        ), command
    assert '"claim": "held"' in (await live("claims", "-o", "json", "--from", str(path))).stdout


async def test_feature_gates_that_are_named_are_kept_with_it(kubeconfig: Path) -> None:
    path = kubeconfig.parent / "snap.json"
    gate = "DRAListTypeAttributes=true"
    await live("snapshot", f"--kubeconfig={kubeconfig}", "-o", str(path), f"--feature-gates={gate}")

    shown = run("simulate", "--from", str(path))

    assert json.loads(path.read_text())["snapshot"]["featureGates"]["named"] == [gate]
    assert "With DRAListTypeAttributes this is what kube-scheduler's allocator could give" in shown.stderr


async def test_a_large_cluster_comes_page_by_page_and_a_list_that_expires_begins_anew(
    server: FakeApi, kubeconfig: Path
) -> None:
    for number in range(PAGE):
        server.create(claim(f"many-{number:04}", GPU))
    server.faults.add(SecondPage(gone(), verbs=frozenset({"list"}), resource="resourceclaims"))

    path = await taken(kubeconfig)

    kinds = [one["kind"] for one in json.loads(path.read_text())["items"]]
    assert kinds.count("ResourceClaim") == PAGE + 2
    lists = [call for call, _ in server.calls if (call.verb, call.plural) == ("list", "resourceclaims")]
    assert len(lists) == 4


@dataclass(slots=True)
class SecondPage(Fault):
    """Hits the second request of those that it could hit."""

    seen: int = 0

    def matches(self, call: Call) -> bool:
        """Whether it is that one."""
        could = Fault.matches(self, call)
        self.seen += could
        return could and self.seen == 2


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.embedded and not case.lenient], ids=lambda case: case.id
)
def test_what_is_kept_of_real_users_manifests_gives_the_same(case: Case) -> None:
    """What a snapshot leaves out nothing hangs on."""
    objects = [*case.fleet(), *expanded(case.objects())]

    assert outcomes(map(kept, filter(is_looked_at, objects))) == outcomes(objects)


def is_looked_at(obj: Obj) -> bool:
    return bool(GROUPS.get(obj["kind"]) == obj["apiVersion"].rpartition("/")[0])


def outcomes(objects: Iterable[Obj]) -> list[tuple[object, ...]]:
    given = Given()
    for obj in objects:
        given.take(obj)
    return [
        (one.key, one.node, one.reason, one.message, [held(owned) for owned in one.claims])
        for one in simulate(given).outcomes
    ]


def held(owned: ResourceClaim) -> list[tuple[str, str]]:
    allocation = owned.status.allocation
    return [(one.request, str(one.device_id)) for one in allocation.devices.results] if allocation else []


# --- what is not there


async def test_what_may_not_be_listed_is_told_then_and_later(server: FakeApi, tmp_path: Path) -> None:
    path = tmp_path / "snap.json"
    shown = await live("snapshot", f"--kubeconfig={jane(server, tmp_path)}", "-o", str(path))

    assert shown.exit_code == 3
    assert "Not read: ResourceSlice: " in shown.stderr
    refused = run("simulate", "--from", str(path))
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert f"{path}: " in refused.stderr
    assert "could not be read when it was taken" in refused.stderr
    assert "Have it taken by somebody who may list that in all namespaces" in refused.stderr
    assert run("claims", "--from", str(path)).exit_code == 0
    drift = run("drift", "--from", str(path), "-A")
    assert "Not looked for: findings that need" in drift.stderr


async def test_an_object_that_cannot_be_read_is_told_and_left_out_and_a_claim_still_holds_its_device(
    server: FakeApi, kubeconfig: Path
) -> None:
    odd = pod("odd", pod_claim("gpu", template="t"))
    odd["spec"]["nodeSelector"] = {"zone": 1}
    broken = claim("broken", request("gpu", "gpu", count=1))
    broken["spec"]["devices"]["requests"][0]["exactly"]["count"] = "many"
    broken["status"] = {"allocation": allocation(result("gpu", DRIVER, "n1", "gpu-1"), node="n1")}
    for obj in (odd, broken):
        smuggle(server, obj)
    path = kubeconfig.parent / "snap.json"

    shown = await live("snapshot", f"--kubeconfig={kubeconfig}", "-o", str(path))
    of_cluster = await live("simulate", f"--kubeconfig={kubeconfig}")
    of_snapshot = run("simulate", "--from", str(path))

    assert shown.exit_code == 0
    assert "Left out: Pod default/odd: spec.nodeSelector" in shown.stderr
    assert sorted(of_cluster.stderr.splitlines()) == sorted(of_snapshot.stderr.splitlines())
    assert of_cluster.stdout == of_snapshot.stdout
    assert "n1/gpu-1" not in of_cluster.stdout
    drifts = [
        (await live("drift", "-A", "--apart=0", *of)).stdout
        for of in ([f"--kubeconfig={kubeconfig}"], ["--from", str(path)])
    ]
    assert drifts[0] == drifts[1]


def smuggle(server: FakeApi, obj: Obj) -> None:
    """Store it as it is, past all rules."""
    kind = server.machinery.kinds.of(obj)
    known = {"uid": str(uuid4()), "creationTimestamp": "2026-01-01T00:00:00Z"}
    server.store.put((kind.group, kind.plural), {**obj, "metadata": {**known, **obj["metadata"]}})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file"),
        (b"kind: List", "is no snapshot"),
        (b'{"apiVersion": "v1", "kind": "List", "items": []}', "manifests go to -f FILE"),
        (b'{"snapshot": {"form": 2}}', "use a newer one"),
        (b'{"snapshot": {}}', "is no snapshot"),
        (gzip.compress(b'{"snapshot": {"form": 1}}' * 9, mtime=0)[:20], "is not whole"),
    ],
    ids=["not there", "YAML", "another List", "newer", "no form", "cut off"],
)
@pytest.mark.parametrize("command", ["simulate", "claims", "drift"])
def test_what_is_no_snapshot_is_told_with_its_name_and_a_remedy(
    command: str, content: bytes | None, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    if content is not None:
        path.write_bytes(content)

    shown = run(command, "--from", str(path))

    assert (shown.exit_code, shown.stdout) == ({"claims": 1}.get(command, 2), "")
    assert f"{path}: " in shown.stderr
    assert words in shown.stderr


@pytest.mark.parametrize("command", ["simulate", "claims", "drift"])
def test_a_snapshot_and_a_cluster_are_one_too_many(command: str) -> None:
    shown = run(command, "--from", "snap.json", "--context", "prod")

    assert (shown.exit_code, shown.stdout) == (2, "")
    assert "--from names a snapshot, and --context a cluster" in shown.stderr


async def test_where_nothing_can_be_written_the_file_is_named(kubeconfig: Path, tmp_path: Path) -> None:
    shown = await live("snapshot", f"--kubeconfig={kubeconfig}", "-o", str(tmp_path / "none" / "snap.json"))

    assert shown.exit_code == 1
    assert "none/snap.json: No such file or directory" in shown.stderr
