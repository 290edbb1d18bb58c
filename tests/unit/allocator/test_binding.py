"""Binding conditions and devices to avoid, as the allocator sees them (alloc section 12)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dra_operator.allocator import Allocator, Collector, Options, Rejection, RequestRef, Why
from dra_operator.errors import NoSolution
from dra_operator.features import DEFAULT_1_37, Features
from dra_operator.model import DeviceId
from dra_operator.testing import builders as make

from .worlds import DRIVER, NODE, allocate, claim, gpus, inputs, request

CONDITIONS = {"bindingConditions": ["up", "booted"], "bindingFailureConditions": ["down"]}
REF = RequestRef("default/c", "r")


def test_conditions_come_into_the_result() -> None:
    world = inputs([gpus({"name": "fabric", **CONDITIONS})])
    (result,) = Allocator(world, Options()).allocate(NODE, [claim(request("r"))])
    (device,) = result.devices.results
    assert device.binding_conditions == ("up", "booted")
    assert device.binding_failure_conditions == ("down",)


def test_with_the_gate_off_such_a_device_is_no_candidate() -> None:
    """Nobody would wait for it (alloc L-1.1)."""
    world = inputs([gpus({"name": "fabric", **CONDITIONS}, make.device("plain"))], features=Features())
    heard = Collector()
    assert allocate(world, claim(request("r")), reporter=heard) == [["plain"]]
    assert list(heard.devices[REF].values()) == [Rejection(Why.GATE_OFF, "DRADeviceBindingConditions")]


@pytest.mark.parametrize("features", [DEFAULT_1_37, Features()], ids=["gate on", "gate off"])
def test_a_device_that_binds_to_its_node_is_allocated_for_that_node_alone(features: Features) -> None:
    """Published for all nodes, attached to one (alloc O-17, B-3); the form is the one that lets its driver report (cp V-80)."""
    world = inputs(
        [gpus({"name": "fabric", "bindsToNode": True}, node=None, allNodes=True)], features=features
    )
    (result,) = Allocator(world, Options()).allocate(NODE, [claim(request("r"))])
    assert result.node_selector is not None
    (term,) = result.node_selector.node_selector_terms
    assert term.match_expressions == ()
    assert [(need.key, need.operator, need.values) for need in term.match_fields] == [
        ("metadata.name", "In", ("n1",))
    ]


def test_a_device_to_avoid_is_passed_over() -> None:
    world = inputs([gpus(make.device("a"), make.device("b"))])
    world = replace(world, avoided=frozenset({DeviceId(DRIVER, "n1", "a")}))
    heard = Collector()
    assert allocate(world, claim(request("r")), reporter=heard) == [["b"]]
    assert list(heard.devices[REF].values()) == [Rejection(Why.AVOIDED)]


def test_mode_all_does_without_no_device_that_is_avoided() -> None:
    """All without one of them would be less than all."""
    world = inputs([gpus(make.device("a"), make.device("b"))])
    world = replace(world, avoided=frozenset({DeviceId(DRIVER, "n1", "a")}))
    with pytest.raises(NoSolution):
        allocate(world, claim(request("r", allocationMode="All")))


def test_what_is_in_use_is_said_first() -> None:
    world = replace(
        inputs([gpus(make.device("a"))], used=["a"]), avoided=frozenset({DeviceId(DRIVER, "n1", "a")})
    )
    heard = Collector()
    with pytest.raises(NoSolution):
        allocate(world, claim(request("r")), reporter=heard)
    assert list(heard.devices[REF].values()) == [Rejection(Why.IN_USE)]
