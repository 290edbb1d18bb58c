"""`kubectl dra simulate` as its user runs it: on files, folders and stdin, and on top of a cluster if one is named."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from click.testing import CliRunner

from dra_operator.cli import main
from dra_operator.cli.main import NODE_SCORES
from dra_operator.kube.api import MERGE, Api
from dra_operator.kube.listing import PAGE
from dra_operator.model.marks import MARK
from dra_operator.placement import NodeScore
from dra_operator.settings import Settings
from dra_operator.testing.builders import (
    Obj,
    allocation,
    claim,
    device_class,
    devices,
    node,
    pod,
    pod_claim,
    policy,
    request,
    resource_slice,
    result,
    template,
)
from dra_operator.testing.fakeapi import FakeApi
from tests.inputs.cases import CASES, Case
from tests.inputs.manifests import documents, expanded
from tests.inputs.outcomes import Snapshot, problems

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from click.testing import Result

DRIVER = "gpu.test"
CLASS = device_class("gpu", driver=DRIVER)
GPU = request("gpu", "gpu")
SLICE = resource_slice("n1-gpus", DRIVER, devices(4), node="n1")
TEMPLATE = template("t", request("gpu", "gpu", count=3))


def user(name: str, of: str = "t") -> Obj:
    return pod(name, pod_claim("c", template=of))


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, ["simulate", *arguments], input=stdin)


def text(*objects: Obj) -> str:
    return "\n---\n".join(json.dumps(obj) for obj in objects)


def squeezed(shown: str) -> list[str]:
    return [" ".join(line.split()) for line in shown.splitlines()]


def test_all_placed_is_a_table_with_a_row_a_request() -> None:
    shown = run("-f", "-", stdin=text(CLASS, SLICE, TEMPLATE, user("p")))

    assert (shown.exit_code, squeezed(shown.stdout)) == (
        0,
        [
            "NAMESPACE POD NODE CLAIM REQUEST DEVICES",
            "default p n1 p-c-00000 gpu gpu.test/n1/gpu-0…gpu-2",
        ],
    )
    assert "those that slices name are taken as ready" in shown.stderr
    assert shown.stderr.endswith("1 of 1 placed.\n")


def test_devices_that_run_out_are_exit_3_with_the_reason_once_for_equal_pods() -> None:
    shown = run("-f", "-", stdin=text(CLASS, SLICE, TEMPLATE, *(user(f"p{number}") for number in range(3))))

    assert shown.exit_code == 3
    told = shown.stdout.splitlines()[-1]
    assert told.startswith(
        "Pods default/p1, default/p2 are not placed (AllocationFailed, not now); of the first: 0/1 nodes"
    )
    assert "3 in use, 1 free" in told
    assert shown.stderr.endswith("1 of 3 placed.\n")


def test_files_folders_lists_and_json_are_read_as_by_lint(tmp_path: Path) -> None:
    (tmp_path / "deeper").mkdir()
    listed = {"apiVersion": "v1", "kind": "List", "items": [CLASS, SLICE]}
    (tmp_path / "cluster.json").write_text(json.dumps(listed))
    (tmp_path / "deeper" / "app.yaml").write_text(text(TEMPLATE, user("p")))

    assert run(str(tmp_path)).exit_code == 0
    assert run("-f", str(tmp_path / "cluster.json"), "-f", str(tmp_path / "deeper")).exit_code == 0
    flat = run("--no-recursive", str(tmp_path))
    assert (flat.exit_code, flat.stdout) == (0, "")
    assert flat.stderr.endswith(
        "Nothing waits: there is no pod with claims, nor a claim that is not allocated.\n"
    )


def test_pods_of_deployments_and_of_kinds_that_nobody_knows_count() -> None:
    spec = user("p")["spec"]
    kind = {"apiVersion": "x.test/v1", "kind": "Trainer", "metadata": {"name": "w", "namespace": "default"}}
    trainer = {**kind, "spec": {"replicas": 2, "template": {"spec": spec}}}
    look = template("look", request("all", "gpu", allocationMode="All", adminAccess=True))
    watching = user("p", of="look")["spec"]
    monitor = {**kind, "apiVersion": "apps/v1", "kind": "DaemonSet", "spec": {"template": {"spec": watching}}}

    shown = run("-f", "-", stdin=text(CLASS, SLICE, look, template("t", GPU), trainer, monitor))

    assert shown.exit_code == 0
    assert [line.split()[1] for line in squeezed(shown.stdout)[1:]] == ["w-0", "w-1", "w-n1"]
    assert "Trainer default/w counts as 2 pod(s) of its template: w-0, w-1" in shown.stderr
    assert "DaemonSet default/w counts as 1 pod(s), one a node that it fits: w-n1" in shown.stderr


def test_a_template_that_asks_for_more_pods_than_are_made_of_it_is_told() -> None:
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "w", "namespace": "default"},
    }
    spec = user("p", of="missing")["spec"]

    shown = run(
        "-f",
        "-",
        stdin=text(SLICE, {**deployment, "spec": {"replicas": 1_000_000, "template": {"spec": spec}}}),
    )

    assert (
        "counts as 1000 pod(s) of its template, as no template counts as more than 1000: w-0, "
        in shown.stderr
    )
    assert "0 of 1000 placed." in shown.stderr


def test_a_document_that_is_lost_in_another_is_told() -> None:
    """Files put together without `---`: of two keys of one name the last one counts."""
    shown = run("-f", "-", stdin="\n".join(yaml.safe_dump(each) for each in (CLASS, SLICE)))

    assert "DuplicateKey" in shown.stderr
    assert "key 'kind' stands here a second time" in shown.stderr
    assert shown.exit_code == 0, "kubectl takes it"


def test_shares_and_who_only_looks_are_told_in_the_table() -> None:
    shared = {"name": "gpu-0", "allowMultipleAllocations": True, "capacity": {"memory": {"value": "40Gi"}}}
    part = request("part", "gpu", capacity={"requests": {"memory": "10Gi"}})
    look = request("look", "gpu", adminAccess=True)
    slices = resource_slice("n1-gpus", DRIVER, [shared, {"name": "gpu-1"}], node="n1")
    claims = claim("a", part), claim("b", GPU), claim("c", look)

    shown = run("-f", "-", stdin=text(CLASS, slices, *claims))

    assert squeezed(shown.stdout)[1:] == [
        "default n1 a part gpu.test/n1/gpu-0 (shared, memory 10Gi)",
        "default n1 b gpu gpu.test/n1/gpu-1",
        "default n1 c look gpu.test/n1/gpu-1 (admin access)",
    ]


# --- wrong input


BROKEN = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: broken}
spec:
  devices:
    requests:
    - name: gpu
      exactly: {deviceClassName: gpu, count: none}
"""


def test_a_broken_object_is_left_out_with_its_place_and_the_others_are_simulated() -> None:
    shown = run("-f", "-", stdin=text(CLASS, SLICE, TEMPLATE, user("p")) + "\n---\n" + BROKEN)

    assert shown.exit_code == 2
    assert "error: WrongType: ResourceClaim broken: spec.devices.requests[0].exactly.count" in shown.stderr
    assert "write a whole number" in shown.stderr
    assert squeezed(shown.stdout)[1:] == ["default p n1 p-c-00000 gpu gpu.test/n1/gpu-0…gpu-2"]


def test_a_pod_that_cannot_be_decoded_is_told_as_well() -> None:
    broken = user("p")
    broken["spec"]["nodeSelector"] = {"zone": 1}

    shown = run("-f", "-", stdin=text(CLASS, SLICE, TEMPLATE, broken))

    assert shown.exit_code == 2
    assert "error: WrongType: Pod default/p: spec.nodeSelector" in shown.stderr


@pytest.mark.parametrize(
    ("arguments", "stdin", "words"),
    [
        ((), None, "name files or folders"),
        (("-f", ""), None, "name files or folders"),
        (("-f", "-"), "", "no object to simulate with"),
        (("-f", "-"), "# nothing\n---\n", "no object to simulate with"),
        (("-f", "no-such-file.yaml"), None, "No such file"),
        (("-f", "-"), "a: [", "BadYaml"),
        (("-f", "-"), "a: b", "NotAnObject"),
        (("-f", "https://example.com/a.yaml"), None, "nothing is fetched"),
        (("--kubeconfig", "no-such-file"), None, "no-such-file"),
    ],
)
def test_nothing_to_simulate_is_exit_2_with_a_word(
    arguments: tuple[str, ...], stdin: str | None, words: str
) -> None:
    shown = run(*arguments, stdin=stdin)

    assert (shown.exit_code, shown.stdout) == (2, "")
    assert words in shown.stderr


def test_a_field_that_is_off_by_default_is_told_as_it_changes_what_comes_out() -> None:
    wanted = request("gpu", "gpu", derivedAttributes=[{"name": "a", "expression": "1"}])

    shown = run("-f", "-", stdin=text(CLASS, SLICE, claim("c", wanted)))

    assert shown.exit_code == 0
    assert "warning: FeatureOff" in shown.stderr


# --- output


def test_the_list_is_valid_input_and_quotes_what_kubectl_would_read_as_a_number() -> None:
    held = claim("824509e6", GPU)
    stdin = text(CLASS, SLICE, held)

    shown = run("-f", "-", "--output=yaml", stdin=stdin)

    assert shown.exit_code == 0
    assert "name: '824509e6'" in shown.stdout
    again = run("-f", "-", stdin=stdin + "\n---\n" + shown.stdout)
    assert (again.exit_code, again.stdout) == (0, "")


def test_json_has_full_statuses_and_what_is_not_placed() -> None:
    shown = run("-f", "-", "--output=json", stdin=text(CLASS, SLICE, TEMPLATE, user("p"), user("q")))

    assert shown.exit_code == 3
    whole = json.loads(shown.stdout)
    assert [(one["kind"], one["metadata"]["name"]) for one in whole["items"]] == [
        ("ResourceClaim", "p-c-00000"),
        ("ResourceClaim", "q-c-00000"),
        ("Pod", "p"),
        ("Pod", "q"),
    ]
    assert len(whole["items"][0]["status"]["allocation"]["devices"]["results"]) == 3
    assert [one["name"] for one in whole["notPlaced"]] == ["q"]


def test_verbose_says_what_each_decision_cost() -> None:
    shown = run("-v", "-f", "-", stdin=text(CLASS, SLICE, TEMPLATE, user("p")))

    (line,) = [line for line in shown.stderr.splitlines() if line.startswith("Pod default/p: ")]
    assert "steps 6" in line
    assert "looks" in line
    assert "work on selectors" in line


def test_the_operators_setting_of_nodes_can_be_given() -> None:
    pods = [pod(name, pod_claim("c", template="t"), requests={"cpu": "1"}) for name in ("a", "b")]
    other = resource_slice("n2-gpus", DRIVER, devices(4), node="n2")
    stdin = text(CLASS, SLICE, other, template("t", GPU), *pods)

    found = {
        score: run("-f", "-", f"--node-score={score}", stdin=stdin).stdout.count(" n2 ")
        for score in ("spread", "pack")
    }

    assert found == {"spread": 1, "pack": 0}


def test_the_values_of_that_setting_are_the_operators() -> None:
    assert list(NODE_SCORES) == [score.value for score in NodeScore]
    assert NODE_SCORES[0] == Settings().node_score.value


def test_what_is_kube_schedulers_is_told_apart() -> None:
    other = resource_slice("n2-gpus", "other.test", devices(1), node="n2")
    classes = CLASS, device_class("other", driver="other.test")
    claims = claim("a", GPU), claim("b", request("gpu", "other")), claim("c", request("gpu", "other"))
    pods = [pod(name, pod_claim("c", claim=name)) for name in ("a", "b", "c")]

    shown = run(
        "-f", "-", stdin=text(*classes, SLICE, other, policy("p", {"driver": DRIVER}), *claims, *pods)
    )

    assert shown.exit_code == 3
    assert "Pod default/c is not placed (AllocationFailed, not now, kube-scheduler's)" in shown.stdout
    assert shown.stderr.endswith(
        "2 of 3 placed, 1 of them by kube-scheduler, on a node that it could choose.\n"
    )


# --- manifests of real drivers' users


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case.embedded and not case.lenient and "status.devices" not in case.needs],
    ids=lambda case: case.id,
)
def test_a_manifest_gets_what_its_writer_meant(case: Case) -> None:
    """The table that the operator itself is fed with, but for what is told in status only: no driver makes a device ready here."""
    objects = expanded(case.objects())

    shown = run("-f", str(case.fleet_path), "-f", "-", "--output=json", stdin=text(*objects))

    assert shown.exit_code in {0, 3}, shown.output
    plain = [one for one in objects if one["kind"] == "Pod" and not one["spec"].get("resourceClaims")]
    assert problems(case.demands, snapshot(case, json.loads(shown.stdout), plain)) == []


def snapshot(case: Case, whole: dict[str, Any], plain: list[Obj]) -> Snapshot:
    """What is in a List, and pods without claims as kube-scheduler binds them."""
    bound = [one | {"spec": one["spec"] | {"nodeName": "any"}} for one in plain]
    by_kind: dict[str, list[Obj]] = {"Pod": bound, "ResourceClaim": []}
    for one in whole["items"]:
        by_kind[one["kind"]].append(one)
    uids = {one["metadata"]["name"]: one["metadata"].get("uid") for one in by_kind["Pod"]}
    events = [
        {
            "reason": one["reason"],
            "message": one["message"],
            "involvedObject": {"uid": uids[one["name"]]},
            "source": {"component": "dra-operator"},
        }
        for one in whole["notPlaced"]
        if one["kind"] == "Pod"
    ]
    slices = [one for one in documents(case.fleet_path) if one["kind"] == "ResourceSlice"]
    return Snapshot(by_kind["Pod"], by_kind["ResourceClaim"], events, slices)


# --- on top of a cluster


@pytest.fixture
async def server() -> AsyncIterator[FakeApi]:
    """A node of four devices and a pod that waits; jane may list nothing."""
    async with FakeApi(rbac=True) as started:
        for obj in (node("n1"), CLASS, SLICE, template("t", GPU), claim("held", GPU), user("live")):
            started.create(obj)
        yield started


@pytest.fixture
async def kubeconfig(server: FakeApi, tmp_path: Path) -> Path:
    """An admin's; the claim `held` is allocated."""
    path = server.write_kubeconfig(tmp_path / "kubeconfig")
    status = {"allocation": allocation(result("gpu", DRIVER, "n1", "gpu-0"), node="n1")}
    held = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/held/status"
    async with await Api.connect(str(path), None) as api:
        await api.request("PATCH", held, body={"status": status}, content_type=MERGE)
    return path


async def live(*arguments: str, stdin: str | None = None) -> Result:
    return await asyncio.to_thread(run, *arguments, stdin=stdin)


async def test_a_cluster_is_read_and_files_come_on_top(server: FakeApi, kubeconfig: Path) -> None:
    before = server.objects("resourceclaims", "resource.k8s.io"), server.objects("pods")

    alone = await live(f"--kubeconfig={kubeconfig}")
    more = await live(
        f"--kubeconfig={kubeconfig}",
        "-f",
        "-",
        stdin=text(
            user("file", of="t"), user("late", of="two"), template("two", request("gpu", "gpu", count=2))
        ),
    )

    assert [line.split()[1:3] + line.split()[-1:] for line in squeezed(alone.stdout)[1:]] == [
        ["live", "n1", "gpu.test/n1/gpu-1"]
    ]
    assert alone.exit_code == 0
    assert [line.split()[1] for line in squeezed(more.stdout)[1:3]] == ["live", "file"]
    assert more.exit_code == 3
    assert "default/late is not placed" in more.stdout
    assert (server.objects("resourceclaims", "resource.k8s.io"), server.objects("pods")) == before


async def test_what_it_says_of_a_cluster_is_whole(kubeconfig: Path) -> None:
    shown = await live(f"--kubeconfig={kubeconfig}", "--output=json")

    claims = [one for one in json.loads(shown.stdout)["items"] if one["kind"] == "ResourceClaim"]
    assert [one["metadata"]["annotations"][MARK] for one in claims] == ["generated"]
    assert all("managedFields" not in one["metadata"] for one in claims)


async def test_a_large_cluster_is_read_page_by_page(server: FakeApi, kubeconfig: Path) -> None:
    for number in range(PAGE):
        server.create(claim(f"many-{number}", GPU))

    shown = await live(f"--kubeconfig={kubeconfig}", "--output=json")

    assert shown.exit_code == 3
    claims = [one for one in json.loads(shown.stdout)["items"] if one["kind"] == "ResourceClaim"]
    assert len(claims) == PAGE + 1
    lists = [call for call, _ in server.calls if (call.verb, call.plural) == ("list", "resourceclaims")]
    assert len(lists) == 2


async def test_who_may_not_list_what_counts_is_told_so(server: FakeApi, tmp_path: Path) -> None:
    assert server.guard is not None
    path = tmp_path / "jane"
    path.write_text(server.kubeconfig(server.guard.user_token("jane")))

    shown = await live(f"--kubeconfig={path}")

    assert (shown.exit_code, shown.stdout) == (2, "")
    assert "you need the right to list" in shown.stderr
