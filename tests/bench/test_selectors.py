"""The bench of selectors runs, and what it counts is so: answers that are known cost no evaluation."""

from __future__ import annotations

from dra_operator.allocator import AllocatedState, Allocator, Inputs, Options, SliceList
from dra_operator.cel import default_compiler
from dra_operator.features import Features
from dra_operator.model import DeviceClass, Node, ResourceClaim, ResourceSlice, from_object
from dra_operator.testing import builders as make

from .celpython import interpreter
from .selectors import DRIVER, NEW, PLAIN, SELECTORS, device, fleet, slices


def test_a_claim_of_a_known_selector_evaluates_nothing() -> None:
    compiler = default_compiler()
    fleet_of = [
        make.device(f"d{number}", attributes={"type": "mig", "index": number}) for number in range(20)
    ]
    published = from_object(ResourceSlice, make.resource_slice("s", DRIVER, fleet_of, node="n1"))
    node = from_object(Node, make.node("n1"))
    device_class = from_object(DeviceClass, make.device_class("c", SELECTORS["(a)"], driver=DRIVER))
    evaluated = []
    for name in ("first", "second"):
        inputs = Inputs(
            features=Features(),
            classes={"c": device_class},
            slices=SliceList([published]),
            allocated=AllocatedState(),
            selectors=compiler,
        )
        claim = make.claim(name, make.request("r", "c", NEW, count=1, allocationMode="ExactCount"))
        before = compiler.answers.tally.evaluated
        Allocator(inputs, Options()).allocate(node, [from_object(ResourceClaim, claim)])
        evaluated.append(compiler.answers.tally.evaluated - before)
    assert evaluated[0] > 0
    assert evaluated[1] == 0


def test_a_fleet_is_asked_once() -> None:
    assert fleet(260).evaluated == 0


def test_all_engines_find_that_the_devices_match() -> None:
    compiler = default_compiler()
    (slice_,) = slices(2)
    for name, expression in SELECTORS.items():
        assert compiler.compile(expression, Features()).matching(slice_) == 0b11
        interpreter(PLAIN[name], DRIVER, [device(0), device(1)])()
