"""Devices, pools and claims are counted as field report FR-100 wants it, and counting changes gives what counting anew would."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from dra_operator.cluster import Cluster
from dra_operator.features import DEFAULT_1_37
from dra_operator.metrics import Inventory
from dra_operator.metrics.labels import DRIVER_LIMIT, NAME_LIMIT, POOL_LIMIT
from dra_operator.model import (
    OWNED_TAINT,
    CounterSet,
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
)
from dra_operator.quantity import Quantity
from tests.unit.cluster.build import claim, policy, result, slice_, taint_rule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dra_operator.model import ResourceClaim, ResourceSlice

GPU = "gpu.example.com"
ALL = {"driver": GPU}


class Counted:
    """A model and its inventory."""

    def __init__(self, *objects: Any, everything_is_ours: bool = False) -> None:
        self.cluster = Cluster()
        self.inventory = Inventory(self.cluster, DEFAULT_1_37, everything_is_ours=everything_is_ours)
        self.cluster.on_change(self.inventory.changed)
        self.add(*objects)

    def add(self, *objects: Any) -> None:
        for obj in objects:
            self.cluster.apply("ADDED", obj)

    def gone(self, obj: Any) -> None:
        self.cluster.apply("DELETED", obj)

    @property
    def devices(self) -> dict[tuple[str, ...], float]:
        return without_zeros(self.inventory.devices())

    @property
    def pools(self) -> dict[tuple[str, ...], float]:
        return without_zeros(self.inventory.pools())

    @property
    def claims(self) -> dict[tuple[str, ...], float]:
        return without_zeros(self.inventory.claims())


def without_zeros(found: Mapping[tuple[str, ...], float]) -> dict[tuple[str, ...], float]:
    return {series: number for series, number in found.items() if number}


def part(name: str, devices: tuple[str, ...], of: int, generation: int = 1) -> ResourceSlice:
    """One of several slices of pool `pool`."""
    made = slice_(name, devices, pool="pool", generation=generation)
    pool = msgspec.structs.replace(made.spec.pool, resource_slice_count=of)
    return msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, pool=pool))


def used(made: ResourceClaim) -> ResourceClaim:
    """The claim, reserved for a pod."""
    consumers = (ResourceClaimConsumerReference(resource="pods", name="p", uid="u"),)
    return msgspec.structs.replace(made, status=msgspec.structs.replace(made.status, reserved_for=consumers))


def test_devices_are_free_allocated_or_tainted_and_ours_or_not() -> None:
    here = Counted(
        slice_("a", ("0", "1", "2"), node="n1"),
        slice_("b", ("0",), node="n2"),
        claim("c", devices=["n1/0"]),
        taint_rule("broken", {"driver": GPU, "pool": "n1", "device": "1"}),
        policy("p", [{"driver": GPU, "pool": "n1"}]),
    )
    assert here.devices == {
        (GPU, "true", "allocated"): 1,
        (GPU, "true", "tainted"): 1,
        (GPU, "true", "free"): 1,
        (GPU, "false", "free"): 1,
    }


def test_our_own_taint_makes_no_device_tainted() -> None:
    here = Counted(slice_("a", ("0",), node="n1"), taint_rule(OWNED_TAINT, {"driver": GPU}))
    assert here.devices == {(GPU, "false", "free"): 1}


def test_a_tainted_device_that_is_held_is_allocated() -> None:
    here = Counted(slice_("a", ("0",), node="n1"), taint_rule("x", ALL), claim("c", devices=["n1/0"]))
    assert here.devices == {(GPU, "false", "allocated"): 1}


def test_shares_of_one_device_are_one_device() -> None:
    shares = [claim(name, devices=[result("n1/0", shareID=f"s-{name}")]) for name in ("a", "b", "c")]
    here = Counted(slice_("s", ("0", "1"), node="n1"), *shares)
    assert here.devices == {(GPU, "false", "allocated"): 1, (GPU, "false", "free"): 1}


def test_admin_access_does_not_count() -> None:
    here = Counted(slice_("s", ("0",), node="n1"), claim("c", devices=[result("n1/0", adminAccess=True)]))
    assert here.devices == {(GPU, "false", "free"): 1}


def test_an_incomplete_pool_has_no_numbers_until_it_is_complete() -> None:
    here = Counted(part("a", ("0", "1"), of=2))
    assert (here.devices, here.pools) == ({}, {(GPU, "false", "incomplete"): 1})
    here.add(part("b", ("2",), of=2))
    assert (here.devices, here.pools) == ({(GPU, "false", "free"): 3}, {(GPU, "false", "complete"): 1})


def test_an_invalid_pool_has_no_numbers() -> None:
    here = Counted(part("a", ("0",), of=2), part("b", ("0",), of=2))
    assert (here.devices, here.pools) == ({}, {(GPU, "false", "invalid"): 1})


def test_only_the_newest_generation_counts() -> None:
    here = Counted(part("old", ("0", "1", "2"), of=1), part("new", ("0",), of=1, generation=2))
    assert here.devices == {(GPU, "false", "free"): 1}


def test_in_mode_replace_all_pools_are_ours() -> None:
    here = Counted(slice_("a", ("0",), node="n1"), everything_is_ours=True)
    assert here.devices == {(GPU, "true", "free"): 1}


def test_a_driver_that_goes_leaves_nothing_and_one_that_is_used_up_a_zero() -> None:
    last = slice_("a", ("0",), node="n1")
    here = Counted(last, claim("c", devices=["n1/0"]))
    assert here.inventory.devices()[GPU, "false", "free"] == 0
    here.gone(last)
    assert (here.inventory.devices(), here.inventory.pools()) == ({}, {})


def test_drivers_beyond_the_limit_are_counted_together() -> None:
    many = [
        slice_(f"s{number:03}", ("0",), node="n1", driver=f"d{number:03}")
        for number in range(DRIVER_LIMIT + 7)
    ]
    here = Counted(*many)
    assert len({series[0] for series in here.devices}) == DRIVER_LIMIT + 1
    assert here.devices["other", "false", "free"] == 7
    assert here.pools["other", "false", "complete"] == 7


@pytest.mark.parametrize(
    ("made", "state"),
    [
        (claim("c"), "pending"),
        (claim("c", devices=["n1/0"]), "allocated"),
        (used(claim("c", devices=["n1/0"])), "reserved"),
        (claim("c", devices=["n1/0"], deletionTimestamp="2026-11-01T12:00:00Z"), "deleting"),
        (claim("c", deletionTimestamp="2026-11-01T12:00:00Z"), "deleting"),
    ],
)
def test_a_claim_has_one_state(made: ResourceClaim, state: str) -> None:
    here = Counted(made)
    assert here.claims == {(state,): 1}
    here.gone(made)
    assert here.claims == {}


def test_much_work_is_done_in_portions() -> None:
    here = Counted(*(slice_(f"s{number}", ("0", "1"), node=f"n{number}") for number in range(7)))
    assert [here.inventory.count_some(3) for _ in range(4)] == [True, True, False, False]
    here.add(policy("p", [{"driver": GPU}]))
    assert here.inventory.count_some(3)
    here.gone(slice_("s0", ("0", "1"), node="n0"))  # in the midst of it
    assert here.devices == {(GPU, "true", "free"): 12}


def test_counting_changes_gives_what_counting_anew_would() -> None:
    first, second = slice_("a", ("0", "1"), node="n1"), slice_("b", ("0", "1", "2"), node="n2")
    ours, rule = (
        policy("p", [{"driver": GPU, "pool": "n2"}]),
        taint_rule("broken", {"driver": GPU, "pool": "n1"}),
    )
    held = claim("c", devices=["n1/0", "n2/2"])
    here = Counted()
    story: list[Callable[[], None]] = [
        lambda: here.add(first),
        lambda: here.add(held),
        lambda: here.add(second),
        lambda: here.add(ours),
        lambda: here.add(claim("d", devices=["n2/0"])),
        lambda: here.add(rule),
        lambda: here.add(claim("c", 2)),  # given back
        lambda: here.add(policy("p", [{"driver": GPU}], 2)),
        lambda: here.add(slice_("b", ("0",), node="n2", version=2, generation=2)),
        lambda: here.gone(rule),
        lambda: here.gone(ours),
        lambda: here.gone(first),
    ]
    for step in story:
        step()
        anew = Counted()
        for objects in (
            here.cluster.published,
            here.cluster.claims,
            here.cluster.policies,
            here.cluster.taint_rules,
        ):
            anew.add(*objects.values())
        assert (here.devices, here.pools, here.claims) == (anew.devices, anew.pools, anew.claims)


def shared(name: str, **capacity: str) -> dict[str, Any]:
    """A device that several claims may share."""
    amounts = {key: {"value": value} for key, value in capacity.items()}
    return {"name": name, "allowMultipleAllocations": True, "capacity": amounts}


def share(text: str, share_id: str, **consumed: str) -> dict[str, Any]:
    return result(text, shareID=share_id, consumedCapacity=consumed)


def test_capacity_is_counted_of_shared_devices_alone_fr100() -> None:
    whole = {"name": "whole", "capacity": {"memory": {"value": "80Gi"}}}
    here = Counted(
        slice_("s", (shared("a", memory="40Gi"), shared("b", memory="40Gi"), whole), node="n1"),
        claim("c", devices=[share("n1/a", "1", memory="10Gi"), share("n1/a", "2", memory="5Gi")]),
        claim("d", devices=[share("n1/a", "3", memory="1Gi"), "n1/whole"]),
        claim("admin", devices=[result("n1/b", adminAccess=True)]),
    )
    total, used_up, *counters = here.inventory.amounts()
    assert total == {(GPU, "memory"): 80 * 2**30}
    assert used_up == {(GPU, "memory"): 16 * 2**30}
    assert counters == [{}, {}]
    here.gone(claim("c", devices=[share("n1/a", "1", memory="10Gi"), share("n1/a", "2", memory="5Gi")]))
    assert here.inventory.amounts()[1] == {(GPU, "memory"): 2**30}


def test_a_shared_device_without_a_share_is_held_whole() -> None:
    here = Counted(slice_("s", (shared("a", memory="40"),), node="n1"), claim("c", devices=["n1/a"]))
    assert here.inventory.amounts()[1] == {(GPU, "memory"): 40}


def partition(name: str, amount: str) -> dict[str, Any]:
    return {
        "name": name,
        "consumesCounters": [{"counterSet": "gpu", "counters": {"memory": {"value": amount}}}],
    }


def partitions(node: str, *devices: dict[str, Any]) -> ResourceSlice:
    made = slice_(node, devices, node=node)
    counters = msgspec.convert(
        [{"name": "gpu", "counters": {"memory": {"value": "80"}}}],
        tuple[CounterSet, ...],
        dec_hook=lambda _, raw: Quantity.parse(raw),
    )
    return msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, shared_counters=counters))


def test_counters_are_used_by_what_is_allocated_fr100() -> None:
    here = Counted(
        partitions("n1", partition("half", "40"), partition("quarter", "20")),
        partitions("n2", partition("half", "40")),
        claim("c", devices=["n1/quarter"]),
    )
    capacity, capacity_used, counters, counters_used = here.inventory.amounts()
    assert (capacity, capacity_used) == ({}, {})
    assert (counters, counters_used) == ({(GPU, "memory"): 160}, {(GPU, "memory"): 20})
    by_pool = here.inventory.by_pool()
    assert by_pool.amounts[2] == {(GPU, "n1", "memory"): 80, (GPU, "n2", "memory"): 80}
    assert by_pool.amounts[3] == {(GPU, "n1", "memory"): 20, (GPU, "n2", "memory"): 0}


def test_amounts_go_with_their_pool() -> None:
    published = partitions("n1", partition("half", "40"))
    here = Counted(published)
    here.gone(published)
    assert list(here.inventory.amounts()) == [{}, {}, {}, {}]


def test_names_and_drivers_beyond_the_limits_have_no_amounts() -> None:
    names = {f"c{number:03}": "1" for number in range(NAME_LIMIT + 3)}
    many = [
        slice_(f"s{number:03}", (shared("a", **names),), node="n1", driver=f"d{number:03}")
        for number in range(DRIVER_LIMIT + 2)
    ]
    found = Counted(*many).inventory.amounts()[0]
    assert len(found) == DRIVER_LIMIT * NAME_LIMIT
    assert ("d000", f"c{NAME_LIMIT - 1:03}") in found
    assert ("d000", f"c{NAME_LIMIT:03}") not in found


def test_figures_by_pool_are_bounded_and_say_so() -> None:
    pools = [slice_(f"s{number:04}", ("0", "1"), node=f"n{number:04}") for number in range(POOL_LIMIT + 5)]
    here = Counted(*pools, part("half", ("0",), of=2), claim("c", devices=["n0000/0"]))
    found = here.inventory.by_pool()
    assert len(found.devices) == 3 * POOL_LIMIT
    assert (found.devices[GPU, "n0000", "allocated"], found.devices[GPU, "n0000", "free"]) == (1, 1)
    assert found.left_out == 5, "the incomplete one has no figures"


@pytest.mark.parametrize(
    ("annotations", "source"),
    [
        ({}, ""),
        ({"resource.kubernetes.io/pod-claim-name": "gpu"}, "resource_claim_template"),
        ({"resource.kubernetes.io/extended-resource-claim": "true"}, "extended_resource"),
    ],
)
@pytest.mark.parametrize("admin", [True, False])
def test_claims_are_counted_as_kube_controller_manager_does_m2(
    annotations: dict[str, str],
    source: str,
    admin: bool,  # noqa: FBT001
) -> None:
    def asking(version: int, **more: Any) -> ResourceClaim:
        made = claim("c", version, annotations=annotations, **more)
        request = DeviceRequest(name="gpu", exactly=ExactDeviceRequest(admin_access=admin or None))
        spec = ResourceClaimSpec(devices=DeviceClaim(requests=(request,)))
        return msgspec.structs.replace(made, spec=spec)

    here, word = Counted(asking(1)), str(admin).lower()
    assert without_zeros(here.inventory.claims_by_source()) == {("false", word, source): 1}
    here.add(asking(2, devices=["n1/0"]))
    assert without_zeros(here.inventory.claims_by_source()) == {("true", word, source): 1}
    here.gone(asking(2, devices=["n1/0"]))
    assert without_zeros(here.inventory.claims_by_source()) == {}
