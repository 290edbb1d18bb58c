"""Features that are not built: never half-allocated, always named."""

from __future__ import annotations

from typing import Any

import pytest

from dra_operator.allocator import Collector, Rejection, RequestRef, Why
from dra_operator.errors import FeatureUnsupported, InvalidClaim, NoSolution
from dra_operator.features import Features
from dra_operator.testing import builders as make

from .worlds import DRIVER, allocate, alternative, claim, gpus, inputs, request

COUNTERS = {"consumesCounters": [{"counterSet": "c", "counters": {"m": {"value": "1"}}}]}
SETS = make.resource_slice(
    "t",
    DRIVER,
    [],
    node="n1",
    resourceSliceCount=2,
    sharedCounters=[{"name": "c", "counters": {"m": {"value": "4"}}}],
)
POLICY = {"capacity": {"m": {"value": "4", "requestPolicy": {"default": "1"}}}}

DEVICES: list[tuple[dict[str, Any], str]] = [
    ({"allowMultipleAllocations": True}, "DRAConsumableCapacity"),
    (POLICY, "DRAConsumableCapacity"),
    ({"nodeAllocatableResourceMappings": {"cpu": {}}}, "DRANodeAllocatableResources"),
]


@pytest.mark.parametrize(
    ("fields", "gate"), DEVICES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_device_that_needs_it_is_no_candidate(fields: dict[str, Any], gate: str) -> None:
    world = inputs([gpus({"name": "new", **fields}, make.device("plain"))])
    collector = Collector()
    assert allocate(world, claim(request("r")), reporter=collector) == [["plain"]]
    rejections = list(collector.devices[RequestRef("default/c", "r")].values())
    assert rejections == [Rejection(Why.NOT_BUILT, gate)]


@pytest.mark.parametrize(
    ("fields", "gate"), DEVICES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_mode_all_counts_it_and_fails(fields: dict[str, Any], gate: str) -> None:
    """All without one of them would be less than all."""
    world = inputs([gpus(make.device("plain"), {"name": "new", **fields})])
    with pytest.raises(NoSolution):
        allocate(world, claim(request("r", allocationMode="All")))
    assert gate


def test_devices_that_draw_on_counters() -> None:
    world = inputs([gpus({"name": "part", **COUNTERS}, make.device("plain"), resourceSliceCount=2), SETS])
    collector = Collector()
    assert allocate(world, claim(request("r")), reporter=collector) == [["plain"]]
    assert (
        Rejection(Why.NOT_BUILT, "DRAPartitionableDevices")
        in collector.devices[RequestRef("default/c", "r")].values()
    )


def test_devices_that_draw_on_counters_and_name_their_nodes() -> None:
    """Node selection per device is built, what its gate also stands for is not."""
    slice_ = make.resource_slice(
        "s",
        DRIVER,
        [{"name": "part", "nodeName": "n1", **COUNTERS}, {"name": "plain", "nodeName": "n1"}],
        pool="n1",
        perDeviceNodeSelection=True,
        resourceSliceCount=2,
    )
    collector = Collector()
    assert allocate(inputs([slice_, SETS]), claim(request("r")), reporter=collector) == [["plain"]]
    assert list(collector.devices[RequestRef("default/c", "r")].values()) == [
        Rejection(Why.NOT_BUILT, "DRAPartitionableDevices")
    ]


@pytest.mark.parametrize(
    ("more", "gate"),
    [
        ({"capacity": {"requests": {"m": "1"}}}, "DRAConsumableCapacity"),
    ],
)
def test_a_request_that_needs_it_is_refused_by_name(more: dict[str, Any], gate: str) -> None:
    path = rf"ResourceClaim default/c: spec\.devices\.requests\[0\]\.exactly\.{next(iter(more))}"
    with pytest.raises(FeatureUnsupported, match=f"{path}: request r: {gate} is not supported yet") as caught:
        allocate(inputs([gpus(make.device("a"))]), claim(request("r", **more)))
    assert caught.value.feature == gate


def test_an_alternative_that_needs_it_is_not_passed_over() -> None:
    """The second choice would be a wrong answer while the first may be possible."""
    wanted = make.first_available("r", alternative("a", capacity={"requests": {"m": "1"}}), alternative("b"))
    with pytest.raises(FeatureUnsupported, match="DRAConsumableCapacity"):
        allocate(inputs([gpus(make.device("a"))]), claim(wanted))


def test_distinct_attribute() -> None:
    with pytest.raises(
        FeatureUnsupported, match=r"default/c: spec\.devices\.constraints\[0\]\.distinctAttribute: DRA"
    ):
        allocate(inputs([]), claim(request("r"), constraints=[{"distinctAttribute": f"{DRIVER}/numa"}]))


def test_derived_attributes_with_the_gate_on() -> None:
    derived = [{"name": "x.test/y", "expression": "1"}]
    world = inputs([gpus(make.device("a"))], features=Features(derived_attributes=True))
    with pytest.raises(FeatureUnsupported, match="DRADerivedAttributes"):
        allocate(world, claim(request("r", derivedAttributes=derived)))


def test_list_values_under_a_constraint_with_the_gate_on() -> None:
    world = inputs(
        [gpus({"name": "a", "attributes": {"numa": {"ints": [0, 1]}}})],
        features=Features(list_type_attributes=True),
    )
    collector = Collector()
    with pytest.raises(NoSolution):
        allocate(world, claim(request("r"), match=[f"{DRIVER}/numa"]), reporter=collector)
    assert list(collector.devices[RequestRef("default/c", "r")].values()) == [
        Rejection(Why.NOT_BUILT, "DRAListTypeAttributes")
    ]


def test_what_is_wrong_with_the_claim_comes_first() -> None:
    with pytest.raises(InvalidClaim, match="missing"):
        allocate(inputs([]), claim(request("r", capacity={"requests": {"m": "1"}}), request("q", "missing")))
