"""Who holds what: allocated state, holders, doubles, decisions in flight, claims by owner (alloc section 14)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dra_operator.cluster import Change, Cluster, freed_devices, used_devices
from dra_operator.features import Features
from dra_operator.model import ResourceClaim, from_object
from dra_operator.quantity import Quantity

from .build import claim, device_class, device_id, owner, pod, result

if TYPE_CHECKING:
    from dra_operator.model import AllocationResult


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def taken(cluster: Cluster) -> list[str]:
    return sorted(f"{found.pool}/{found.device}" for found in cluster.allocated_state().devices)


def allocation(*devices: str) -> AllocationResult:
    found = claim("any", devices=devices).status.allocation
    assert found is not None
    return found


def test_an_allocated_claim_takes_its_devices(cluster: Cluster) -> None:
    """By alloc A-2, whoever wrote the allocation."""
    cluster.apply("ADDED", claim("c", devices=["p/a", "p/b"]))
    cluster.apply("ADDED", claim("pending"))

    assert taken(cluster) == ["p/a", "p/b"]
    assert cluster.holders(device_id("p/a")) == ("ns/c",)


def test_a_claim_that_is_deallocated_gives_its_devices_back(cluster: Cluster) -> None:
    cluster.apply("ADDED", claim("c", 1, devices=["p/a"]))
    cluster.apply("MODIFIED", claim("c", 2))

    assert taken(cluster) == []
    assert cluster.holders(device_id("p/a")) == ()


def test_a_claim_that_is_being_deleted_still_holds_its_devices(cluster: Cluster) -> None:
    """By alloc A-3."""
    cluster.apply("ADDED", claim("c", devices=["p/a"], deletionTimestamp="2026-01-01T00:00:00Z"))

    assert taken(cluster) == ["p/a"]


def test_a_claim_that_is_gone_holds_nothing(cluster: Cluster) -> None:
    cluster.apply("ADDED", claim("c", 1, devices=["p/a"]))
    cluster.apply("DELETED", claim("c", 2, devices=["p/a"]))

    assert taken(cluster) == []


def test_admin_access_takes_nothing(cluster: Cluster) -> None:
    """By alloc A-2."""
    cluster.apply(
        "ADDED", claim("c", devices=[result("p/a", adminAccess=True), result("p/b", adminAccess=False)])
    )

    assert taken(cluster) == ["p/b"]
    assert cluster.holders(device_id("p/a")) == ()


def test_a_device_of_two_claims_is_reported_and_stays_in_use_until_both_are_rid_of_it(
    cluster: Cluster,
) -> None:
    """By alloc A-6, mended: reference counts."""
    cluster.apply("ADDED", claim("c1", 1, devices=["p/a"]))
    cluster.apply("ADDED", claim("c2", 2, devices=["p/a", "p/b"]))
    assert cluster.doubles() == {device_id("p/a"): ("ns/c1", "ns/c2")}

    cluster.apply("DELETED", claim("c1", 3))
    assert taken(cluster) == ["p/a", "p/b"]
    assert cluster.doubles() == {}

    cluster.apply("DELETED", claim("c2", 4))
    assert taken(cluster) == []


def test_the_same_device_name_in_another_pool_is_another_device(cluster: Cluster) -> None:
    cluster.apply("ADDED", claim("c1", devices=["p/a"]))
    cluster.apply("ADDED", claim("c2", devices=["q/a"]))

    assert cluster.doubles() == {}


def test_the_state_handed_out_is_live_and_equals_what_is_taken(cluster: Cluster) -> None:
    """By alloc A-5: one consistent view for one decision, without copying."""
    state = cluster.allocated_state()
    assert state.devices == set()

    cluster.apply("ADDED", claim("c", devices=["p/a"]))

    assert device_id("p/a") in state.devices


def test_shares_are_counted_with_their_capacity(cluster: Cluster) -> None:
    """By alloc A-2, A-6: sums by device, dropped at zero; shares make no double."""
    for number, (name, memory) in enumerate([("c1", "4Gi"), ("c2", "2Gi")], start=1):
        share = result("p/a", shareID=f"share-{number}", consumedCapacity={"memory": memory})
        cluster.apply("ADDED", claim(name, number, devices=[share]))

    state = cluster.allocated_state()
    assert state.devices == set()
    assert state.shared == {device_id("p/a")}
    assert state.capacity == {device_id("p/a"): {"memory": Quantity.parse("6Gi")}}
    assert cluster.doubles() == {}

    cluster.apply("DELETED", claim("c1", 3))
    assert cluster.allocated_state().capacity == {device_id("p/a"): {"memory": Quantity.parse("2Gi")}}
    cluster.apply("DELETED", claim("c2", 4))
    assert cluster.allocated_state().capacity == {}
    assert cluster.allocated_state().shared == set()


def test_a_share_of_a_device_that_another_claim_has_as_a_whole_is_a_double(cluster: Cluster) -> None:
    cluster.apply("ADDED", claim("c1", devices=[result("p/a", shareID="s")]))
    cluster.apply("ADDED", claim("c2", devices=["p/a"]))

    assert cluster.doubles() == {device_id("p/a"): ("ns/c1", "ns/c2")}


def test_with_consumable_capacity_off_shares_are_whole_devices() -> None:
    """By alloc A-2."""
    cluster = Cluster(Features())

    cluster.apply(
        "ADDED", claim("c", devices=[result("p/a", shareID="s", consumedCapacity={"memory": "1Gi"})])
    )

    assert taken(cluster) == ["p/a"]
    assert (cluster.allocated_state().shared, cluster.allocated_state().capacity) == (set(), {})


class TestInFlight:
    """cp I-53, alloc A-4: decisions count before they are written."""

    @pytest.fixture(autouse=True)
    def pending(self, cluster: Cluster) -> None:
        cluster.apply("ADDED", claim("c", 1))

    def test_a_decision_takes_its_devices_and_is_no_fact_yet(self, cluster: Cluster) -> None:
        cluster.reserve("uid-c", allocation("p/a"))

        assert taken(cluster) == ["p/a"]
        assert cluster.is_reserved("uid-c")
        assert cluster.holders(device_id("p/a")) == ()

    def test_a_decision_that_is_dropped_gives_them_back(self, cluster: Cluster) -> None:
        cluster.reserve("uid-c", allocation("p/a"))
        cluster.unreserve("uid-c")
        cluster.unreserve("uid-c")

        assert taken(cluster) == []
        assert not cluster.is_reserved("uid-c")

    def test_a_second_decision_replaces_the_first(self, cluster: Cluster) -> None:
        cluster.reserve("uid-c", allocation("p/a"))
        cluster.reserve("uid-c", allocation("p/b"))

        assert taken(cluster) == ["p/b"]

    def test_the_written_allocation_takes_over(self, cluster: Cluster) -> None:
        cluster.reserve("uid-c", allocation("p/a"))
        cluster.assume(claim("c", 2, devices=["p/a"]))

        assert not cluster.is_reserved("uid-c")
        assert taken(cluster) == ["p/a"]
        assert cluster.doubles() == {}
        cluster.apply("MODIFIED", claim("c", 3))
        assert taken(cluster) == []

    def test_an_allocation_by_somebody_else_takes_over(self, cluster: Cluster) -> None:
        """By cp V-53: an allocation does not change, so ours can no longer be written."""
        cluster.reserve("uid-c", allocation("p/a"))
        cluster.apply("MODIFIED", claim("c", 2, devices=["p/z"]))

        assert taken(cluster) == ["p/z"]

    def test_a_change_that_allocates_nothing_leaves_the_decision(self, cluster: Cluster) -> None:
        """The mark and the finalizer are written first."""
        cluster.reserve("uid-c", allocation("p/a"))
        cluster.assume(claim("c", 2, finalizers=["resource.kubernetes.io/delete-protection"]))

        assert taken(cluster) == ["p/a"]

    def test_it_ends_with_the_claim(self, cluster: Cluster) -> None:
        cluster.reserve("uid-c", allocation("p/a"))
        cluster.apply("DELETED", claim("c", 2))

        assert taken(cluster) == []

    def test_the_namesake_of_a_claim_that_is_gone_inherits_nothing(self, cluster: Cluster) -> None:
        cluster.reserve("uid-c", allocation("p/a"))
        cluster.apply("MODIFIED", claim("c", 2, uid="other"))

        assert taken(cluster) == []
        assert not cluster.is_reserved("other")

    def test_nothing_is_reserved_for_a_claim_that_is_gone_or_allocated(self, cluster: Cluster) -> None:
        cluster.apply("MODIFIED", claim("c", 2, devices=["p/z"]))

        cluster.reserve("uid-c", allocation("p/a"))
        cluster.reserve("uid-unknown", allocation("p/b"))

        assert taken(cluster) == ["p/z"]

    def test_a_device_written_for_another_claim_meanwhile_is_no_double_before_ours_is_written(
        self, cluster: Cluster
    ) -> None:
        cluster.reserve("uid-c", allocation("p/a"))
        cluster.apply("ADDED", claim("other", 2, devices=["p/a"]))

        assert cluster.doubles() == {}
        assert cluster.holders(device_id("p/a")) == ("ns/other",)
        cluster.unreserve("uid-c")
        assert taken(cluster) == ["p/a"]


def test_claims_are_found_by_the_pod_that_controls_them(cluster: Cluster) -> None:
    """By cp C-22: controller owner reference with apiVersion v1, kind Pod."""
    cluster.apply("ADDED", claim("b", ownerReferences=[owner("pod-1")]))
    cluster.apply("ADDED", claim("a", ownerReferences=[owner("pod-1")]))
    cluster.apply(
        "ADDED", claim("group", ownerReferences=[owner("pod-1", "PodGroup", "scheduling.k8s.io/v1")])
    )
    cluster.apply("ADDED", claim("plain", ownerReferences=[owner("pod-1") | {"controller": False}]))
    cluster.apply("ADDED", claim("other", ownerReferences=[owner("pod-2")]))

    assert [found.metadata.name for found in cluster.claims_owned_by(pod("p", uid="pod-1"))] == ["a", "b"]


def test_a_claim_of_another_namespace_is_no_pods(cluster: Cluster) -> None:
    """Owners are of the claim's own namespace; whoever may write in another one may write any uid there."""
    forged = {"name": "forged", "namespace": "elsewhere", "uid": "f", "ownerReferences": [owner("pod-1")]}
    cluster.apply("ADDED", from_object(ResourceClaim, {"metadata": forged}))

    assert cluster.claims_owned_by(pod("p", uid="pod-1")) == ()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (claim("c", 1, devices=["p/a", "p/b"]), claim("c", 2), ["a", "b"]),
        (claim("c", 1, devices=["p/a"]), None, ["a"]),
        (claim("c", 1, devices=[result("p/a", adminAccess=True)]), None, []),
        (claim("c", 1), claim("c", 2, devices=["p/a"]), []),
        (None, claim("c", 1, devices=["p/a"]), []),
    ],
)
def test_a_change_tells_what_it_frees(
    old: ResourceClaim | None, new: ResourceClaim | None, expected: list[str]
) -> None:
    assert sorted(found.device for found in freed_devices(Change("ResourceClaim", old, new))) == expected


def test_changes_of_other_kinds_free_nothing() -> None:
    assert freed_devices(Change("DeviceClass", device_class("a"), None)) == frozenset()
    assert used_devices(None) == frozenset()
