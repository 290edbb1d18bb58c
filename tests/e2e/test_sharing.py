"""Claims that users make themselves, used by several pods (cp I-4, I-10, I-28), on a real control plane."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.fleet import Fleet, gates
from tests.e2e.harness.objects import claim, exactly, pod

if TYPE_CHECKING:
    from tests.e2e.fleet import Object
    from tests.e2e.harness.workspace import Workspace


@pytest.fixture
def fleet(managed: Workspace) -> Fleet:
    """Two nodes with two devices each, and one claim `shared`."""
    made = Fleet.of(managed)
    made.plain(2, nodes=2)
    made.own("gpu")
    managed.apply(claim("shared", exactly("gpu", made.name("gpu"))))
    return made


def consumers(found: Object) -> set[str]:
    return {entry["uid"] for entry in found["status"].get("reservedFor", [])}


def uids(pods: list[Object]) -> set[str]:
    return {found["metadata"]["uid"] for found in pods}


def nodes(pods: list[Object]) -> set[str]:
    return {found["spec"]["nodeName"] for found in pods}


def test_two_pods_share_a_claim(fleet: Fleet) -> None:
    """Created at once: one allocation, both pods on its node, both in reservedFor."""
    kubectl = fleet.workspace.kubectl
    fleet.workspace.apply(pod("a", claims={"gpu": "shared"}), pod("b", claims={"gpu": "shared"}))

    served = fleet.running("a", "b")

    assert nodes(served) == {fleet.node()}
    assert consumers(kubectl.get("resourceclaim", "shared")) == uids(served)
    assert [fleet.devices(name) for name in ("a", "b")] == [{"gpu": ["gpu-0"]}] * 2


def test_later_pod_joins_an_allocated_claim(fleet: Fleet) -> None:
    """It goes to the claim's node, though another one is free; the allocation stays as it is."""
    kubectl = fleet.workspace.kubectl
    fleet.workspace.apply(pod("a", claims={"gpu": "shared"}))
    fleet.running("a")
    before = kubectl.get("resourceclaim", "shared")["status"]["allocation"]
    fleet.workspace.apply(pod("b", claims={"gpu": "shared"}))
    served = fleet.running("a", "b")
    after = kubectl.get("resourceclaim", "shared")

    assert nodes(served) == {fleet.node()}
    assert (after["status"]["allocation"], consumers(after)) == (before, uids(served))


def test_shared_claim_is_free_after_its_last_pod_only(fleet: Fleet) -> None:
    """The claim is the user's: it stays, without allocation and finalizer (cp C-62), and serves again."""
    kubectl = fleet.workspace.kubectl
    fleet.workspace.apply(pod("a", claims={"gpu": "shared"}), pod("b", claims={"gpu": "shared"}))
    fleet.running("a", "b")
    kubectl.delete("pod", "a")
    kept = kubectl.until("resourceclaim", "shared", lambda found: len(consumers(found)) == 1, "one consumer")
    kubectl.delete("pod", "b")
    freed = kubectl.until("resourceclaim", "shared", is_idle, "deallocated, without finalizer")
    fleet.workspace.apply(pod("c", claims={"gpu": "shared"}))
    fleet.running("c")

    assert "allocation" in kept["status"]
    assert "finalizers" not in freed["metadata"]
    assert fleet.devices("c") == {"gpu": ["gpu-0"]}


def is_idle(found: Object) -> bool:
    return not found["status"].get("allocation") and not found["metadata"].get("finalizers")


def test_claim_of_a_bound_pod_is_allocated_on_its_node(fleet: Fleet) -> None:
    """A pod with a node name never sees gate or scheduler (cp I-28): its claim is served there, on the second node."""
    fleet.workspace.apply(pod("fixed", claims={"gpu": "shared"}, nodeName=fleet.node(1)))

    kubectl = fleet.workspace.kubectl
    kubectl.until("resourceclaim", "shared", lambda found: bool(consumers(found)), "reserved")
    (served,) = fleet.running("fixed")

    assert nodes([served]) == {fleet.node(1)}


def test_two_claims_shared_crosswise_meet_on_one_node(fleet: Fleet) -> None:
    """Three pods, two claims, one of the pods uses both: everything lands on the same node, two devices in all.

    That pod comes first, as nobody can foresee it: claims that are allocated on two nodes by then stay there.
    """
    fleet.workspace.apply(
        claim("other", exactly("gpu", fleet.name("gpu"))),
        pod("both", claims={"one": "shared", "two": "other"}),
        pod("a", claims={"gpu": "shared"}),
        pod("b", claims={"gpu": "other"}),
    )

    served = fleet.running("a", "b", "both")

    assert len(nodes(served)) == 1


def test_pod_without_the_gate_holds_up_the_sharing_one(fleet: Fleet, ungated_pod: Object) -> None:
    """kube-scheduler could take the allocation away (cp I-10): the gated pod waits, says for whom, and goes on when that is gone."""
    kubectl = fleet.workspace.kubectl
    fleet.workspace.enable(enabled=False)
    fleet.workspace.apply(ungated_pod)
    fleet.workspace.enable()
    fleet.workspace.apply(pod("a", claims={"gpu": "shared"}))
    message = fleet.told("a", "UngatedConsumer")

    assert f"{fleet.workspace.namespace}/stranger" in message
    assert gates(kubectl.get("pod", "a")) == ["dra-operator.io/allocate"]

    kubectl.delete("pod", "stranger")

    fleet.running("a")


@pytest.fixture
def ungated_pod() -> Object:
    return pod("stranger", claims={"gpu": "shared"})
