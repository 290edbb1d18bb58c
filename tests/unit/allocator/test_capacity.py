"""Consumable capacity: what a share takes, and whether it is still there (alloc section 8)."""

from __future__ import annotations

from typing import Any

import pytest

from dra_operator.allocator import AllocatedState, Allocator, Collector, Options, Rejection, RequestRef, Why
from dra_operator.allocator.capacity import Rules, consumed
from dra_operator.errors import InvalidClaim, NoSolution
from dra_operator.features import DEFAULT_1_37, Features
from dra_operator.model import DeviceCapacity, DeviceId, from_object
from dra_operator.quantity import Quantity
from dra_operator.testing import builders as make

from .worlds import DRIVER, NODE, allocate, claim, gpus, inputs, request

REQUEST = RequestRef("default/c", "r")
RANGE = {"validRange": {"min": "2Gi", "max": "8Gi", "step": "2Gi"}, "default": "4Gi"}
VALUES = {"validValues": ["1Gi", "2Gi", "8Gi"], "default": "1Gi"}


def shared(name: str, value: str = "16Gi", policy: dict[str, Any] | None = None, **fields: Any) -> Any:
    """A device with memory that several may use."""
    capacity = {"value": value} | ({"requestPolicy": policy} if policy else {})
    return {"name": name, "allowMultipleAllocations": True, "capacity": {"memory": capacity}, **fields}


def asks(name: str, memory: str | None = None, **more: Any) -> Any:
    asked: dict[str, Any] = {"capacity": {"requests": {"memory": memory}}} if memory else {}
    return request(name, **asked, **more)


def taken(device: Any, memory: str | None, features: Features = DEFAULT_1_37) -> str:
    """What a share of the device consumes; `none` if there is none."""
    try:
        (result,) = Allocator(inputs([gpus(device)], features=features), Options()).allocate(
            NODE, [claim(asks("r", memory))]
        )
    except NoSolution:
        return "none"
    return str(result.devices.results[0].consumed_capacity["memory"])


@pytest.mark.parametrize(
    ("policy", "asked", "expected"),
    [
        (None, None, "16Gi"),
        (None, "3Gi", "3Gi"),
        (None, "17Gi", "none"),
        (RANGE, None, "4Gi"),
        (RANGE, "1", "2Gi"),
        (RANGE, "3Gi", "4Gi"),
        (RANGE, "8Gi", "8Gi"),
        (RANGE, "8193Mi", "none"),
        (VALUES, None, "1Gi"),
        (VALUES, "1536Mi", "2Gi"),
        (VALUES, "3Gi", "8Gi"),
        (VALUES, "9Gi", "none"),
        ({"default": "0"}, None, "0"),
    ],
)
def test_amounts_follow_the_policy(policy: dict[str, Any] | None, asked: str | None, expected: str) -> None:
    """By alloc Q-2…Q-6."""
    assert taken(shared("a", policy=policy), asked) == expected


@pytest.mark.parametrize(("fractional", "expected"), [(True, "750m"), (False, "1")])
def test_ranges_count_in_thousandths_where_the_gate_allows(*, fractional: bool, expected: str) -> None:
    """By alloc Q-4; without it steps of a quarter are steps of one."""
    policy = {"validRange": {"min": "250m", "step": "250m"}, "default": "250m"}
    features = Features(consumable_capacity=True, fractional_capacity_range=fractional)
    assert taken(shared("a", "4", policy), "600m", features) == expected


def test_shares_are_taken_as_long_as_their_sum_is_there() -> None:
    """Of claims that hold some, and of this call (alloc Q-1, Q-11)."""
    state = AllocatedState(capacity={DeviceId(DRIVER, "n1", "a"): {"memory": Quantity.parse("6Gi")}})
    world = inputs([gpus(shared("a"), shared("b"))], state=state)
    wanted = claim(asks("r", "5Gi"), asks("q", "5Gi"), asks("x", "5Gi"))
    assert allocate(world, wanted) == [["a", "a", "b"]]


def test_what_is_short_is_told_with_what_is_left() -> None:
    state = AllocatedState(capacity={DeviceId(DRIVER, "n1", "a"): {"memory": Quantity.parse("12Gi")}})
    collector = Collector()
    with pytest.raises(NoSolution):
        allocate(inputs([gpus(shared("a"))], state=state), claim(asks("r", "5Gi")), reporter=collector)
    assert list(collector.devices[REQUEST].values()) == [
        Rejection(Why.CAPACITY, "memory: 5Gi asked for, 4Gi of 16Gi left")
    ]


@pytest.mark.parametrize(
    ("device", "memory", "text"),
    [
        ({"name": "a"}, "1", "memory: the device has no such capacity"),
        (shared("a", policy=VALUES), "9Gi", "memory: its request policy does not allow 9Gi"),
        (shared("a"), "17Gi", "memory: 17Gi asked for, 16Gi there"),
    ],
)
def test_why_a_free_device_does_not_do(device: Any, memory: str, text: str) -> None:
    collector = Collector()
    with pytest.raises(NoSolution):
        allocate(inputs([gpus(device)]), claim(asks("r", memory)), reporter=collector)
    assert list(collector.devices[REQUEST].values()) == [Rejection(Why.CAPACITY, text)]


def test_dedicated_devices_are_chosen_by_capacity_too() -> None:
    """By alloc Q-7; and nothing is recorded (Q-9)."""
    small, large = (
        make.device(name, capacity={"memory": value}) for name, value in (("s", "8Gi"), ("l", "80Gi"))
    )
    (result,) = Allocator(inputs([gpus(small, large)]), Options()).allocate(NODE, [claim(asks("r", "40Gi"))])
    (found,) = result.devices.results
    assert (found.device, found.share_id, found.consumed_capacity) == ("l", None, {})


def test_a_count_is_of_different_devices() -> None:
    """By alloc R-9."""
    world = inputs([gpus(shared("a", policy={"default": "1Gi"}), shared("b", policy={"default": "1Gi"}))])
    assert allocate(world, claim(asks("r", count=2))) == [["a", "b"]]


def test_mode_all_leaves_out_what_is_too_small_and_fails_on_what_is_used_up() -> None:
    """As upstream 1.37 has it: members are told by what they have, not by what is left (alloc R-5 is of an earlier one)."""
    small, large = shared("small", "1Gi"), shared("large", "8Gi")
    wanted = claim(asks("r", "2Gi", allocationMode="All"))
    assert allocate(inputs([gpus(small, large)]), wanted) == [["large"]]
    state = AllocatedState(capacity={DeviceId(DRIVER, "n1", "large"): {"memory": Quantity.parse("7Gi")}})
    with pytest.raises(NoSolution):
        allocate(inputs([gpus(small, large)], state=state), wanted)


def test_share_ids_are_uuids_of_their_own_and_the_same_for_the_same_decision() -> None:
    """By alloc Q-9; no chance is needed: a claim that is allocated anew has another version."""
    world = inputs([gpus(shared("a", policy={"default": "1Gi"}))])

    def ids(version: str) -> list[str | None]:
        made = make.claim("c", asks("r"), asks("q"))
        made["metadata"] |= {"uid": "u", "resourceVersion": version}
        (result,) = Allocator(world, Options()).allocate(NODE, [claim_of(made)])
        return [entry.share_id for entry in result.devices.results]

    assert ids("1") == ids("1")
    assert len({*ids("1"), *ids("2")}) == 4


def claim_of(raw: Any) -> Any:
    """A claim out of its JSON form."""
    from dra_operator.model import ResourceClaim, from_object

    return from_object(ResourceClaim, raw)


@pytest.mark.parametrize(
    ("device", "asked"),
    [
        (shared("a", "-1"), None),
        (
            shared("a", "16", {"validRange": {"min": "1", "step": "2"}, "default": "1"}),
            "30000000000000000000",
        ),
        (shared("a", "16", {"validRange": {"step": "2"}, "default": "1"}), "3"),
        (shared("a", "16", {"validRange": {"min": "1", "step": "0"}, "default": "1"}), "3"),
    ],
    ids=["negative", "beyond 64 bits", "no minimum", "no step"],
)
def test_amounts_that_cannot_be_counted_are_that_devices_fault_alone(device: Any, asked: str | None) -> None:
    """Fatal for the pod upstream (alloc Q-4b), where it does not crash (oracle 7 no. 2)."""
    world = inputs([gpus(device, shared("b", "40E"))])
    assert allocate(world, claim(asks("r", asked))) == [["b"]]
    with pytest.raises(InvalidClaim, match="checking capacity for device"):
        allocate(world, claim(asks("r", asked)), options=Options(upstream_0_37=True))


@pytest.mark.parametrize(
    ("requested", "policy", "taken"),
    [
        ("0", {"validRange": {"min": "-9E", "step": "2"}}, "0"),
        ("1", {"validRange": {"min": "-9E", "step": "2"}}, "2"),
        ("8E", {"validRange": {"min": "-9E", "step": "3"}}, "8000000000000000001"),
    ],
)
def test_ours_counts_beyond_64_bits(requested: str, policy: Any, taken: str) -> None:
    """Where upstream's numbers overflow, ours do not; the switch follows upstream, as recorded problems have it."""
    capacity = from_object(DeviceCapacity, {"value": "40E", "requestPolicy": policy})
    assert consumed(Quantity.parse(requested), capacity, Rules()) == Quantity.parse(taken)


def test_without_the_feature_devices_are_dedicated_and_requests_refused() -> None:
    """By alloc E-7b."""
    world = inputs([gpus(shared("a"))], features=Features())
    assert allocate(world, claim(asks("r"))) == [["a"]]
    with pytest.raises(NoSolution):
        allocate(world, claim(asks("r"), asks("q")))
    with pytest.raises(InvalidClaim, match="DRAConsumableCapacity feature is disabled"):
        allocate(world, claim(asks("r", "1Gi")))
