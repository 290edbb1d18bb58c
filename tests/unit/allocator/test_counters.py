"""Partitionable devices: what the parts of one device draw from it, and which of them go together (alloc sections 7 and 10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.allocator import AllocatedState, Collector, Options, Rejection, RequestRef, Why
from dra_operator.errors import NoSolution
from dra_operator.features import DEFAULT_1_37, Features
from dra_operator.model import DeviceId
from dra_operator.testing import builders as make

from .worlds import DRIVER, allocate, claim, gpus, inputs, request

if TYPE_CHECKING:
    from dra_operator.allocator import Inputs

REQUEST = RequestRef("default/c", "r")
WITH_GROUPS = Features(partitionable_devices=True, compatibility_groups=True)


def part(name: str, memory: str, *groups: str, counter_set: str = "gpu-0", **fields: Any) -> dict[str, Any]:
    """A device that draws memory from a counter set."""
    taken = {"counterSet": counter_set, "counters": {"memory": {"value": memory}}}
    if groups:
        taken["compatibilityGroups"] = list(groups)
    return {"name": name, "consumesCounters": [taken], **fields}


def sets(driver: str = DRIVER, node: str = "n1", **memory: str) -> Any:
    """The slice of pool `n1` that has the counter sets; names have dashes for underscores."""
    counters = [
        {"name": name.replace("_", "-"), "counters": {"memory": {"value": value}}}
        for name, value in memory.items()
    ]
    return make.resource_slice(
        f"{driver}-sets", driver, [], node=node, pool="n1", resourceSliceCount=2, sharedCounters=counters
    )


def world(*devices: Any, features: Features = DEFAULT_1_37, used: tuple[str, ...] = ()) -> Inputs:
    """Devices that draw on 80Gi of `gpu-0`."""
    return inputs([gpus(*devices, resourceSliceCount=2), sets(gpu_0="80Gi")], features=features, used=used)


def test_parts_are_taken_as_long_as_their_sum_is_there() -> None:
    here = world(part("a", "40Gi"), part("b", "50Gi"), part("c", "40Gi"))
    assert allocate(here, claim(request("r", count=2))) == [["a", "c"]]


def test_what_is_short_is_told_with_both_amounts() -> None:
    collector = Collector()
    with pytest.raises(NoSolution):
        allocate(
            world(part("a", "50Gi"), part("b", "50Gi"), used=("a",)), claim(request("r")), reporter=collector
        )
    assert collector.devices[REQUEST][DeviceId(DRIVER, "n1", "b")] == Rejection(
        Why.COUNTERS, "gpu-0/memory: 50Gi needed, 30Gi left"
    )


def test_a_device_that_is_given_back_gives_its_counters_back() -> None:
    """The first choice, the whole, leaves nothing for the second request (alloc S-20)."""
    here = world(part("whole", "80Gi"), part("half-0", "40Gi"), part("half-1", "40Gi"))
    assert allocate(here, claim(request("r"), request("q"))) == [["half-0", "half-1"]]


def test_an_overdrawn_counter_keeps_back_all_that_draw_from_the_pool_and_no_others() -> None:
    """By alloc K-7: also those that draw from another set of it."""
    devices = (part("a", "100Gi"), part("b", "1Gi", counter_set="gpu-1"), make.device("plain"))
    slices = [gpus(*devices, resourceSliceCount=2), sets(gpu_0="80Gi", gpu_1="80Gi")]
    assert allocate(inputs(slices, used=("a",)), claim(request("r"))) == [["plain"]]


def test_pools_of_the_same_name_have_counters_of_their_own() -> None:
    """By alloc K-5: drivers name pools after nodes."""
    other = make.resource_slice(
        "other", "nic.dra.test", [part("nic", "80Gi")], node="n1", pool="n1", resourceSliceCount=2
    )
    slices = [
        gpus(part("gpu", "80Gi"), resourceSliceCount=2),
        sets(gpu_0="80Gi"),
        other,
        sets("nic.dra.test", gpu_0="80Gi"),
    ]
    assert allocate(inputs(slices), claim(request("r"), request("q", "nic"))) == [["gpu", "nic"]]


def test_devices_of_other_nodes_draw_from_the_same_counters() -> None:
    """By alloc K-3, K-11: a device across hosts."""
    devices = [
        part("here", "50Gi", nodeName="n1"),
        part("there", "50Gi", nodeName="n2"),
    ]
    slice_ = make.resource_slice(
        "s", DRIVER, devices, pool="n1", perDeviceNodeSelection=True, resourceSliceCount=2
    )
    counters = sets(gpu_0="80Gi")
    assert allocate(inputs([slice_, counters]), claim(request("r"))) == [["here"]]
    with pytest.raises(NoSolution):
        allocate(inputs([slice_, counters], used=("there",)), claim(request("r")))


def test_further_shares_of_a_device_do_not_pay_again() -> None:
    """By alloc K-8, K-4: in use by shares with and without capacity, and by a share of the same call."""
    shared = part("a", "80Gi", allowMultipleAllocations=True)
    device_id = DeviceId(DRIVER, "n1", "a")
    for state in (AllocatedState(shared=frozenset({device_id})), AllocatedState(capacity={device_id: {}})):
        slices = [gpus(shared, resourceSliceCount=2), sets(gpu_0="80Gi")]
        assert allocate(inputs(slices, state=state), claim(request("r"))) == [["a"]]
    assert allocate(world(shared), claim(request("r"), request("q"))) == [["a", "a"]]


def test_the_last_share_that_is_given_back_gives_the_counters_back() -> None:
    """By alloc K-9, K-10: the search leaves the shared device twice before the halves are had."""
    shared = part("a", "80Gi", allowMultipleAllocations=True)
    here = world(shared, part("half-0", "40Gi"), part("half-1", "40Gi"))
    half = "device.allowMultipleAllocations == false"
    wanted = claim(request("r"), request("q"), request("x", "gpu", half), request("y", "gpu", half))
    with pytest.raises(NoSolution):
        allocate(here, wanted)
    two = claim(request("r", "gpu", half), request("q", "gpu", half))
    assert allocate(here, two) == [["half-0", "half-1"]]


def test_admin_access_needs_no_counters() -> None:
    """By alloc BUG-9: upstream charges what is in use a second time."""
    here = world(part("a", "80Gi"), used=("a",))
    looks = claim(request("r", adminAccess=True))
    assert allocate(here, looks) == [["a"]]
    with pytest.raises(NoSolution):
        allocate(here, looks, options=Options(upstream_0_37=True))
    both = [claim(request("r", adminAccess=True)), claim(request("r"), name="d")]
    assert allocate(world(part("a", "80Gi"), part("b", "80Gi")), *both) == [["a"], ["b"]]


def test_without_the_feature_devices_that_draw_are_not_taken() -> None:
    """By alloc K-12; slices with counters are not read (P-2), so the pool is whole only where nobody counts them."""
    here = inputs([gpus(part("a", "1Gi"), make.device("plain"))], features=Features())
    assert allocate(here, claim(request("r"))) == [["plain"]]


@pytest.mark.parametrize(
    ("first", "second", "third"),
    [
        ((), (), "a b"),
        (("x",), ("x", "y"), "a b"),
        (("x",), ("y",), ""),
        (("x",), (), ""),
        ((), ("x",), ""),
    ],
)
def test_devices_go_together_if_they_have_a_group_in_common_or_none_at_all(
    first: tuple[str, ...], second: tuple[str, ...], third: str
) -> None:
    """By alloc M-3."""
    here = world(part("a", "1Gi", *first), part("b", "1Gi", *second), features=WITH_GROUPS)
    wanted = claim(request("r", count=2))
    if third:
        assert allocate(here, wanted) == [third.split()]
    else:
        with pytest.raises(NoSolution):
            allocate(here, wanted)


def test_groups_must_be_common_to_all_not_to_each_two() -> None:
    """By alloc M-9."""
    here = world(
        part("a", "1Gi", "x", "y"),
        part("b", "1Gi", "y", "z"),
        part("c", "1Gi", "x", "z"),
        features=WITH_GROUPS,
    )
    assert allocate(here, claim(request("r", count=2))) == [["a", "b"]]
    with pytest.raises(NoSolution):
        allocate(here, claim(request("r", count=3)))


def test_a_device_must_go_with_those_that_are_allocated() -> None:
    """By alloc M-4; and the reason names the counter set."""
    here = world(part("a", "1Gi", "x"), part("b", "1Gi", "y"), features=WITH_GROUPS, used=("a",))
    collector = Collector()
    with pytest.raises(NoSolution):
        allocate(here, claim(request("r")), reporter=collector)
    assert collector.devices[REQUEST][DeviceId(DRIVER, "n1", "b")] == Rejection(Why.GROUPS, "gpu-0")


def test_groups_that_a_device_brought_go_with_it() -> None:
    """By alloc M-5: the first choice of the first request leaves none for the second."""
    here = world(part("a", "1Gi", "x"), part("b", "1Gi", "y"), part("c", "1Gi", "y"), features=WITH_GROUPS)
    assert allocate(here, claim(request("r", count=2))) == [["b", "c"]]


def test_a_refusal_by_groups_draws_nothing_and_one_by_counters_brings_no_groups() -> None:
    here = world(
        part("a", "50Gi", "x"),
        part("b", "50Gi", "x", "y"),
        part("c", "30Gi", "y"),
        part("d", "30Gi", "x"),
        features=WITH_GROUPS,
    )
    assert allocate(here, claim(request("r", count=2))) == [["a", "d"]]
