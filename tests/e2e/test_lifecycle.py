"""Pods that go at each stage of their life, on a real control plane: their devices are free again every time.

"Free" means that the next pod gets the very same device. Claims are released by kube-controller-manager here, and by the
operator itself in `test_generation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.crowd import TEMPLATE, at_rest, names_running, template, until_allocated
from tests.e2e.fleet import Fleet, claims_of, gates
from tests.e2e.harness.objects import claim, exactly, pod
from tests.e2e.history import ClaimHistory

if TYPE_CHECKING:
    from tests.e2e.fleet import Object
    from tests.e2e.harness.workspace import Workspace

ONLY = {"gpu": ["gpu-0"]}
TURNS = 6
GPU = {"gpu": TEMPLATE}


@pytest.fixture
def fleet(managed: Workspace) -> Fleet:
    """One node with one device of ours, and a template that asks for it."""
    made = Fleet.of(managed)
    made.plain(1)
    made.own("gpu")
    managed.apply(template(made))
    return made


def serves_again(fleet: Fleet) -> None:
    """A new pod gets the device, and nothing is left of those before."""
    fleet.workspace.apply(pod("next", templates=GPU))
    fleet.running("next")

    assert fleet.devices("next") == ONLY
    assert at_rest(fleet) == []


def is_released(found: Object) -> bool:
    return not gates(found)


def test_deleted_while_it_waits_for_a_device(fleet: Fleet) -> None:
    """Its claim goes with it; the one that came after it is next."""
    kubectl = fleet.workspace.kubectl
    fleet.workspace.apply(pod("holder", templates=GPU))
    fleet.running("holder")
    fleet.workspace.apply(pod("waiting", templates=GPU))
    fleet.told("waiting", "AllocationFailed")
    fleet.workspace.apply(pod("later", templates=GPU))
    fleet.told("later", "AllocationFailed")
    (unused,) = claims_of(kubectl, "waiting")

    kubectl.delete("pod", "waiting")
    kubectl.until_gone("resourceclaim", unused["metadata"]["name"])
    kubectl.delete("pod", "holder")
    fleet.running("later")

    assert fleet.devices("later") == ONLY
    assert at_rest(fleet) == []


def test_deleted_while_another_gate_holds_it(fleet: Fleet) -> None:
    """Servable, and gated all the same: another gate holds it. Nothing was taken for it."""
    kubectl = fleet.workspace.kubectl
    fleet.workspace.apply(pod("held", templates=GPU, gates=["example.com/quota"]))
    kubectl.until("pod", "held", lambda found: bool(claims_named(found)), "claim generated")
    fleet.told("held", "OtherGates")
    (unused,) = claims_of(kubectl, "held")
    kubectl.delete("pod", "held")
    kubectl.until_gone("resourceclaim", unused["metadata"]["name"])

    assert "allocation" not in unused.get("status", {})
    serves_again(fleet)


def claims_named(found: Object) -> list[Object]:
    return [
        entry for entry in found["status"].get("resourceClaimStatuses", []) if "resourceClaimName" in entry
    ]


def test_deleted_after_allocation_and_before_binding(fleet: Fleet) -> None:
    """No scheduler looks at the first pod, so that it stays as we leave it."""
    kubectl = fleet.workspace.kubectl
    fleet.workspace.apply(pod("first", templates=GPU, schedulerName="nobody"))
    kubectl.until("pod", "first", is_released, "released")
    allocated = fleet.devices("first")
    fleet.workspace.apply(pod("second", templates=GPU))
    fleet.told("second", "AllocationFailed")
    kubectl.delete("pod", "first")
    fleet.running("second")

    assert allocated == fleet.devices("second") == ONLY
    assert at_rest(fleet) == []


def test_claim_of_the_user_is_free_after_a_pod_that_was_never_bound(fleet: Fleet) -> None:
    """The claim stays: without allocation, consumer, finalizer (cp C-62)."""
    kubectl = fleet.workspace.kubectl
    fleet.workspace.apply(
        claim("mine", exactly("gpu", fleet.name("gpu"))),
        pod("first", claims={"gpu": "mine"}, schedulerName="nobody"),
    )
    kubectl.until("pod", "first", is_released, "released")
    kubectl.delete("pod", "first")
    kubectl.until("resourceclaim", "mine", is_unused, "as its user made it")

    serves_again(fleet)


def is_unused(found: Object) -> bool:
    status = found.get("status", {})
    return not (status.get("allocation") or status.get("reservedFor") or found["metadata"].get("finalizers"))


@pytest.mark.parametrize("how", ["in its time", "by force"])
def test_deleted_while_it_runs(fleet: Fleet, how: str) -> None:
    fleet.workspace.apply(pod("first", templates=GPU))
    fleet.running("first")
    flags = ("--grace-period=0", "--force") if how == "by force" else ()
    fleet.workspace.kubectl.delete("pod", "first", flags=flags)

    serves_again(fleet)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_finished(fleet: Fleet, phase: str) -> None:
    """The pod stays to be looked at, its generated claim goes (cp C-65), and its device serves the next."""
    kubectl = fleet.workspace.kubectl
    fleet.workspace.apply(pod("first", templates=GPU, restartPolicy="Never"))
    fleet.running("first")
    (used,) = claims_of(kubectl, "first")
    kubectl.patch("pod", "first", {"status": {"phase": phase}}, "--subresource=status")
    kubectl.until_gone("resourceclaim", used["metadata"]["name"])
    fleet.workspace.apply(pod("next", templates=GPU))
    fleet.running("next")

    assert fleet.devices("next") == ONLY


def test_namesake_at_once(fleet: Fleet) -> None:
    """As a StatefulSet does it: the new pod of that name gets a claim of its own and the device."""
    fleet.workspace.apply(pod("db-0", templates=GPU))
    (first,) = fleet.running("db-0")
    (old,) = claims_of(fleet.workspace.kubectl, "db-0")
    fleet.workspace.kubectl.delete("pod", "db-0")
    fleet.workspace.apply(pod("db-0", templates=GPU))
    (second,) = fleet.running("db-0")
    (new,) = claims_of(fleet.workspace.kubectl, "db-0")

    assert first["metadata"]["uid"] != second["metadata"]["uid"]
    assert old["metadata"]["uid"] != new["metadata"]["uid"]
    assert fleet.devices("db-0") == ONLY
    assert at_rest(fleet) == []


@pytest.mark.timeout(180)
def test_created_and_deleted_at_once_again_and_again(fleet: Fleet) -> None:
    """Deletion meets every stage: before the claim, while it is allocated, before the release, before and after binding."""
    kubectl = fleet.workspace.kubectl
    fleet.plain_node(1, 7)
    with ClaimHistory(fleet.workspace) as history:
        for turn in range(TURNS):
            names = [f"pod-{turn}-{number}" for number in range(12)]
            kubectl.create([pod(name, templates=GPU) for name in names])
            if turn == TURNS - 1:
                until_allocated(history, 1)  # if chance has not brought that about yet
            kubectl.delete("pod", *names, wait=False, flags=("--grace-period=0", "--force"))
        kubectl.run("wait", "pod", "--all", "--for=delete", "--timeout=30s")
        assert at_rest(fleet) == []
        between = history.allocations
        kubectl.create([pod(f"last-{number}", templates=GPU) for number in range(8)])
        fleet.running_in_all(8)

    assert at_rest(fleet) == []
    assert history.doubles == []
    assert between > 0
    assert names_running(fleet) == [f"last-{number}" for number in range(8)]
