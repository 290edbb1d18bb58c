"""`--generate-claims=always` on a control plane without the stock claim controller: generation, reservation and release are ours.

Garbage collection, binding and everything else stay stock. What the claims must look like is what kube-controller-manager makes
of the same templates (cp C-20…C-44), but for the mark and finalizer that ours are born with.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.e2e.crowd import (
    TEMPLATE,
    arrive,
    at_rest,
    cpu_seconds,
    names_running,
    names_waiting,
    template,
    until_allocated,
    until_running,
)
from tests.e2e.fleet import Fleet, claims_of, gates, is_running
from tests.e2e.harness.objects import claim, claim_template, exactly, pod
from tests.e2e.harness.operator_process import BURST_LEASE, OperatorProcess, install
from tests.e2e.harness.plugin import ENABLED, open_workspace
from tests.e2e.harness.waiting import wait_until
from tests.e2e.history import ClaimHistory
from tests.e2e.operator_log import complaints, told_on_failure
from tests.unit.manifests.build import overlay

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.fleet import Object
    from tests.e2e.harness.cluster import ControlPlane
    from tests.e2e.harness.workspace import Workspace

FLAGS = ("--settle-seconds=1", "--generate-claims=always", *BURST_LEASE)
GPU = {"gpu": TEMPLATE}
ONLY = {"gpu": ["gpu-0"]}
FINALIZER = "resource.kubernetes.io/delete-protection"
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
MARK = "dra-operator.io/allocated"


class Generator:
    """The operator of this module, which a test may kill and start again."""

    def __init__(self, control_plane: ControlPlane, kubeconfig: Path) -> None:
        self._where = control_plane, kubeconfig
        self.all: list[OperatorProcess] = []
        self.start()

    @property
    def now(self) -> OperatorProcess:
        return self.all[-1]

    def start(self) -> None:
        self.all.append(OperatorProcess.start(*self._where, *FLAGS))

    def crash(self) -> None:
        self.now.kill()
        self.start()


@pytest.fixture(scope="module")
def kubeconfig(
    control_plane_without_claim_controller: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """With the rights that the component for it adds, and no others."""
    folder = overlay(tmp_path_factory.mktemp("generating"), ["manifests/components/generate-claims"])
    return install(control_plane_without_claim_controller, folder)


@pytest.fixture(scope="module")
def generator(
    control_plane_without_claim_controller: ControlPlane, kubeconfig: Path, request: pytest.FixtureRequest
) -> Iterator[Generator]:
    with told_on_failure(request.session) as running:
        made = Generator(control_plane_without_claim_controller, kubeconfig)
        running.append(made.now)
        try:
            yield made
        finally:
            running[:] = made.all
            made.now.stop()
    assert made.now.exit_status == 0
    assert [text for operator in made.all for text in complaints(operator.log_text())] == []


@pytest.fixture
def workspace(
    control_plane_without_claim_controller: ControlPlane, generator: Generator, request: pytest.FixtureRequest
) -> Iterator[Workspace]:
    """Pods get the gate and are served."""
    yield from open_workspace(control_plane_without_claim_controller, request, labels=ENABLED)


@pytest.fixture
def fleet(workspace: Workspace) -> Fleet:
    """One node with one device of ours, and a template that asks for it."""
    made = Fleet.of(workspace)
    made.plain(1)
    made.own("gpu")
    workspace.apply(template(made))
    return made


# ----------------------------------------------------------------------- generation


def test_claim_is_generated_as_the_stock_controller_does_it(fleet: Fleet) -> None:
    """Labels and annotations of the template, owner, name, entry in the pod's status (cp C-26, C-41)."""
    wanted = exactly("gpu", fleet.name("gpu"))
    rich = claim_template("rich", wanted)
    rich["spec"]["metadata"] = {"labels": {"team": "vision"}, "annotations": {"note": "kept"}}
    fleet.workspace.apply(rich, pod("train", templates={"gpu": "rich"}))
    (served,) = fleet.running("train")
    (made,) = claims_of(fleet.workspace.kubectl, "train")
    metadata = made["metadata"]

    assert metadata["name"].startswith("train-gpu-")
    assert metadata["labels"] == {"team": "vision"}
    assert set(metadata["annotations"].items()) >= {("note", "kept"), (POD_CLAIM_NAME, "gpu")}
    assert set(metadata["annotations"]) == {"note", POD_CLAIM_NAME, MARK}
    assert metadata["finalizers"] == [FINALIZER]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "train", "uid": served["metadata"]["uid"]}
    assert metadata["ownerReferences"] == [owner | {"controller": True}]
    assert made["spec"]["devices"]["requests"] == [defaulted(wanted)]
    assert served["status"]["resourceClaimStatuses"] == [
        {"name": "gpu", "resourceClaimName": metadata["name"]}
    ]


def defaulted(request: Object) -> Object:
    return request | {"exactly": {"allocationMode": "ExactCount", "count": 1} | request["exactly"]}


def test_pod_with_claims_of_both_kinds(fleet: Fleet) -> None:
    """Two from templates, one of the user's; all entries recorded, all on one node."""
    fleet.plain_node(1, 3)
    fleet.workspace.apply(
        claim("mine", exactly("gpu", fleet.name("gpu"))),
        pod("train", templates={"a": TEMPLATE, "b": TEMPLATE}, claims={"c": "mine"}),
    )
    (served,) = fleet.running("train")

    assert served["spec"]["nodeName"] == fleet.node(1)
    assert sorted(fleet.devices("train")["gpu"]) == ["gpu-0", "gpu-1", "gpu-2"]
    assert {entry["name"] for entry in served["status"]["resourceClaimStatuses"]} == {"a", "b"}
    assert at_rest(fleet) == []


def test_template_that_comes_after_its_pod(fleet: Fleet) -> None:
    fleet.workspace.apply(pod("train", templates={"gpu": "late"}))
    message = fleet.told("train", "FailedResourceClaimCreation")
    fleet.workspace.apply(claim_template("late", exactly("gpu", fleet.name("gpu"))))
    fleet.running("train")

    assert 'resource claim template "late"' in message
    assert fleet.devices("train") == ONLY


def test_claim_deleted_before_it_is_allocated_is_made_anew(fleet: Fleet) -> None:
    """The pod waits for another gate meanwhile; its status names the new one (cp C-42)."""
    kubectl = fleet.workspace.kubectl
    fleet.workspace.apply(pod("train", templates=GPU, gates=["example.com/quota"]))
    first = generated_name(fleet, "train")
    kubectl.delete("resourceclaim", first)
    second = generated_name(fleet, "train", other_than=first)
    kubectl.run("patch", "pod", "train", "--type=merge", '--patch={"spec":{"schedulingGates":[]}}')

    assert second.startswith("train-gpu-")
    assert kubectl.find("resourceclaim", first) is None


def generated_name(fleet: Fleet, pod_name: str, other_than: str = "") -> str:
    """Waits until a claim that exists is recorded for the pod."""

    def recorded() -> str:
        kubectl = fleet.workspace.kubectl
        entries = kubectl.get("pod", pod_name)["status"].get("resourceClaimStatuses", [])
        names = [entry["resourceClaimName"] for entry in entries]
        return next(
            (name for name in names if name != other_than and kubectl.find("resourceclaim", name)), ""
        )

    return wait_until(recorded, f"a claim recorded for pod {pod_name}")


# ----------------------------------------------------------------------- release


def serves_again(fleet: Fleet) -> None:
    """A new pod gets the device, and nothing is left of those before."""
    fleet.workspace.apply(pod("next", templates=GPU))
    fleet.running("next")

    assert fleet.devices("next") == ONLY
    assert at_rest(fleet) == []


@pytest.mark.parametrize("how", ["in its time", "by force"])
def test_pod_deleted_while_it_runs(fleet: Fleet, how: str) -> None:
    """The garbage collector deletes the claim, whose finalizer is ours to take (cp C-62)."""
    fleet.workspace.apply(pod("first", templates=GPU))
    fleet.running("first")
    (used,) = claims_of(fleet.workspace.kubectl, "first")
    flags = ("--grace-period=0", "--force") if how == "by force" else ()
    fleet.workspace.kubectl.delete("pod", "first", flags=flags)
    fleet.workspace.kubectl.until_gone("resourceclaim", used["metadata"]["name"])

    serves_again(fleet)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_pod_that_finished(fleet: Fleet, phase: str) -> None:
    """It stays, its generated claim goes (cp C-65), the pod that waited is served."""
    kubectl = fleet.workspace.kubectl
    fleet.workspace.apply(pod("first", templates=GPU, restartPolicy="Never"))
    fleet.running("first")
    (used,) = claims_of(kubectl, "first")
    fleet.workspace.apply(pod("second", templates=GPU))
    fleet.told("second", "AllocationFailed")
    kubectl.patch("pod", "first", {"status": {"phase": phase}}, "--subresource=status")
    kubectl.until_gone("resourceclaim", used["metadata"]["name"])
    fleet.running("second")

    assert fleet.devices("second") == ONLY
    assert kubectl.get("pod", "first")["status"]["phase"] == phase


def test_pod_deleted_while_it_waits(fleet: Fleet) -> None:
    kubectl = fleet.workspace.kubectl
    fleet.workspace.apply(pod("holder", templates=GPU))
    fleet.running("holder")
    fleet.workspace.apply(pod("waiting", templates=GPU))
    fleet.told("waiting", "AllocationFailed")
    unused = generated_name(fleet, "waiting")
    kubectl.delete("pod", "waiting")
    kubectl.until_gone("resourceclaim", unused)
    kubectl.delete("pod", "holder")

    serves_again(fleet)


def test_pod_deleted_after_allocation_and_before_binding(fleet: Fleet) -> None:
    """No scheduler looks at it, so that it stays as we leave it."""
    kubectl = fleet.workspace.kubectl
    fleet.workspace.apply(pod("first", templates=GPU, schedulerName="nobody"))
    kubectl.until("pod", "first", lambda found: not gates(found), "released")
    allocated = fleet.devices("first")
    kubectl.delete("pod", "first")

    assert allocated == ONLY
    serves_again(fleet)


def test_claim_of_the_user_is_released_and_serves_again(fleet: Fleet) -> None:
    """After the last of its pods only; without allocation, consumers and finalizer then (cp C-62, C-86)."""
    kubectl = fleet.workspace.kubectl
    fleet.workspace.apply(
        claim("mine", exactly("gpu", fleet.name("gpu"))),
        pod("a", claims={"gpu": "mine"}),
        pod("b", claims={"gpu": "mine"}),
    )
    fleet.running("a", "b")
    kubectl.delete("pod", "a")
    kept = kubectl.until("resourceclaim", "mine", lambda found: len(consumers(found)) == 1, "one consumer")
    kubectl.delete("pod", "b")
    kubectl.until("resourceclaim", "mine", is_unused, "as its user made it")
    fleet.workspace.apply(pod("c", claims={"gpu": "mine"}))
    fleet.running("c")

    assert kept["status"]["allocation"]
    assert fleet.devices("c") == ONLY


def consumers(found: Object) -> list[Object]:
    return found.get("status", {}).get("reservedFor") or []


def is_unused(found: Object) -> bool:
    return not (
        found.get("status", {}).get("allocation") or consumers(found) or found["metadata"].get("finalizers")
    )


def test_bound_pod_gets_claim_allocation_and_reservation(fleet: Fleet) -> None:
    """It saw neither gate nor scheduler (cp C-50, I-28): claim, devices on its node, reservation, all by us."""
    fleet.plain_node(1, 1)
    fleet.workspace.apply(pod("fixed", templates=GPU, nodeName=fleet.node(1)))
    wait_until(
        lambda: [consumers(found) for found in fleet.workspace.kubectl.get_all("resourceclaims")],
        "a claim reserved for it",
        accept=lambda found: bool(found and found[0]),
    )
    fleet.running("fixed")

    assert fleet.devices("fixed") == ONLY


def test_c69_c88_i51_pod_that_went_while_no_operator_ran(fleet: Fleet, generator: Generator) -> None:
    """Nobody releases meanwhile; the next operator does, at its start (cp C-69)."""
    kubectl = fleet.workspace.kubectl
    fleet.workspace.apply(claim("mine", exactly("gpu", fleet.name("gpu"))), pod("a", claims={"gpu": "mine"}))
    fleet.running("a")
    generator.now.kill()
    kubectl.delete("pod", "a")
    kubectl.until_gone("pod", "a")
    stale = consumers(kubectl.get("resourceclaim", "mine"))
    generator.start()
    kubectl.until("resourceclaim", "mine", is_unused, "as its user made it")

    assert len(stale) == 1
    serves_again(fleet)


# ----------------------------------------------------------------------- many

NODES, DEVICES_A_NODE, PODS = 6, 10, 120
DEVICES = NODES * DEVICES_A_NODE


@pytest.mark.timeout(240)
def test_120_pods_for_60_devices_and_a_crash_in_the_middle(
    workspace: Workspace, generator: Generator
) -> None:
    """One claim a pod, whatever a crash interrupted; nothing held twice, nothing leaked; the others follow."""
    fleet = Fleet.of(workspace)
    fleet.plain(DEVICES_A_NODE, nodes=NODES)
    fleet.own("gpu")
    workspace.apply(template(fleet))
    with ClaimHistory(workspace) as history:
        arrive(fleet, PODS)
        for stage in (5, 30):
            until_allocated(history, stage)
            generator.crash()
        until_running(fleet, DEVICES)
        assert at_rest(fleet) == []
        first, waiting = names_running(fleet), names_waiting(fleet)

        assert (len(first), len(waiting)) == (DEVICES, PODS - DEVICES)

        workspace.kubectl.delete("pod", *first, wait=False)
        until_only_these_run(fleet, waiting)
        assert at_rest(fleet) == []

    assert history.doubles == []
    assert (
        len(workspace.kubectl.get_all("resourceclaims")) == DEVICES + 1
    )  # and the one that ends the history


def until_only_these_run(fleet: Fleet, names: list[str]) -> None:
    wait_until(
        lambda: [
            (item["metadata"]["name"], is_running(item)) for item in fleet.workspace.kubectl.get_all("pods")
        ],
        f"the other {len(names)} pods running, and no more",
        timeout=60,
        accept=lambda seen: sorted(seen) == [(name, True) for name in names],
    )


@pytest.mark.timeout(120)
def test_rate_of_the_whole_way(workspace: Workspace, generator: Generator) -> None:
    """Figures for people (`pytest -rP`): generation included; nothing is asserted of time."""
    fleet = Fleet.of(workspace)
    fleet.plain(25, nodes=4)
    fleet.own("gpu")
    workspace.apply(template(fleet))
    with ClaimHistory(workspace) as history:
        before, begin = cpu_seconds(generator.now), time.monotonic()
        arrive(fleet, 100)
        until_running(fleet, 100)
        seconds, cpu = time.monotonic() - begin, cpu_seconds(generator.now) - before

    print(
        f"100 pods running after {seconds:.2f} s, generation included; {10 * cpu:.1f} ms of operator CPU a pod"
    )
    assert at_rest(fleet) == []
    assert history.doubles == []
