"""Slices that leave it to their devices to name nodes (alloc P-4, L-1, O-15)."""

from __future__ import annotations

from typing import Any

import pytest

from dra_operator.allocator import Allocator, Collector, Options, Rejection, RequestRef, Why
from dra_operator.errors import InvalidPool, NodeFailure, NoSolution
from dra_operator.features import Features
from dra_operator.model import to_object
from dra_operator.testing import builders as make

from .worlds import DRIVER, NODE, allocate, claim, inputs, request

EAST = {"key": "zone", "operator": "In", "values": ["east"]}
BROKEN = {"key": "zone", "operator": "Near", "values": ["east"]}


def selecting(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [term]} for term in terms]}}


def spread(*devices: dict[str, Any], **spec: Any) -> Any:
    return make.resource_slice("s", DRIVER, devices, pool="p", **({"perDeviceNodeSelection": True} | spec))


HERE = {"name": "here", "nodeName": "n1"}
THERE = {"name": "there", "nodeName": "n2"}
ZONAL = {"name": "zonal", **selecting(EAST)}
ANYWHERE = {"name": "anywhere", "allNodes": True}
NOWHERE = {"name": "nowhere"}
STRANGE = {"name": "strange", **selecting(BROKEN)}
TORN = {"name": "torn", **selecting(EAST, EAST)}


def test_only_devices_for_the_node_are_taken() -> None:
    collector = Collector()
    world = inputs([spread(THERE, NOWHERE, HERE)])
    assert allocate(world, claim(request("r")), reporter=collector) == [["here"]]
    assert {
        device.device: rejection
        for device, rejection in collector.devices[RequestRef("default/c", "r")].items()
    } == {"there": Rejection(Why.NODE), "nowhere": Rejection(Why.NODE)}


def test_mode_all_means_all_for_the_node() -> None:
    world = inputs([spread(THERE, HERE, ZONAL, ANYWHERE, NOWHERE)])
    assert allocate(world, claim(request("r", allocationMode="All"))) == [["here", "zonal", "anywhere"]]


def test_no_device_for_the_node() -> None:
    with pytest.raises(NoSolution):
        allocate(inputs([spread(THERE, NOWHERE)]), claim(request("r")))


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        (HERE, [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]),
        (ZONAL, [{"matchExpressions": [EAST]}]),
        (ANYWHERE, None),
    ],
    ids=["nodeName", "nodeSelector", "allNodes"],
)
def test_the_result_selects_nodes_as_its_device_does(device: dict[str, Any], expected: Any) -> None:
    """Alloc O-15, O-17 to O-19."""
    (result,) = Allocator(inputs([spread(THERE, device)]), Options()).allocate(NODE, [claim(request("r"))])
    selector = to_object(result).get("nodeSelector")
    assert (selector and selector["nodeSelectorTerms"]) == expected


@pytest.mark.parametrize("value", [True, False])
def test_without_the_gate_such_a_slice_is_not_seen(value: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """Alloc P-2: even where the field is false."""
    world = inputs([spread(HERE, perDeviceNodeSelection=value)], features=Features())
    collector = Collector()
    with pytest.raises(NoSolution):
        allocate(world, claim(request("r")), reporter=collector)
    assert collector.devices == {}


@pytest.mark.parametrize("devices", [(HERE, STRANGE), (STRANGE, HERE)])
def test_a_selector_that_cannot_be_parsed_spoils_its_pool_only(devices: tuple[dict[str, Any], ...]) -> None:
    """Alloc P-4, decision 4: whatever the order of the devices, and other pools serve."""
    broken = spread(*devices)
    other = make.resource_slice("t", DRIVER, [make.device("good")], node="n1")
    with pytest.raises(NodeFailure, match="failed to parse node selector"):
        allocate(inputs([broken]), claim(request("r")))
    assert allocate(inputs([broken, other]), claim(request("r"))) == [["good"]]


@pytest.mark.parametrize("devices", [(THERE, HERE, STRANGE), (STRANGE, HERE)])
def test_upstream_fails_the_pod(devices: tuple[dict[str, Any], ...]) -> None:
    """Alloc E-4, P-4."""
    options = Options(upstream_0_37=True)
    with pytest.raises(InvalidPool, match="failed to parse node selector"):
        allocate(inputs([spread(*devices)]), claim(request("r", count=2)), options=options)


def test_a_device_with_two_terms_fails_this_node_only() -> None:
    """Alloc O-21."""
    with pytest.raises(NodeFailure, match="2 terms"):
        allocate(inputs([spread(TORN)]), claim(request("r")))
