"""Selectors of classes and requests outside of a search."""

from __future__ import annotations

from typing import Any

import pytest

from dra_operator.allocator import bound_driver, request_matches
from dra_operator.errors import CelRuntimeError, InvalidClaim
from dra_operator.model import ExactDeviceRequest, ResourceSlice, from_object
from dra_operator.testing import builders as make

from .worlds import COMPILER, DRIVER, inputs


@pytest.mark.parametrize(
    ("expression", "driver"),
    [
        ('device.driver == "a.test"', "a.test"),
        ("device.driver=='a.test'", "a.test"),
        ('  device.driver == "a.test" && device.attributes["a.test"].?x.orValue(1) == 1\n', "a.test"),
        ('device.driver == "a.test" && has(device.attributes["a.test"][?"x"])', "a.test"),
        ('device.driver == "a.test" || true', None),
        ('device.driver == "a.test" && false || true', None),
        ('device.driver == "a.test" ? false : true', None),
        ('device.driver == "a.test" == false', None),
        ('device.driver != "a.test"', None),
        ('!(device.driver == "a.test")', None),
        ('device.driver == "a\\x2etest"', None),
        ('device.attributes["a.test"].x == 1', None),
    ],
)
def test_a_driver_is_read_out_of_the_text_only_where_nothing_else_can_match(
    expression: str, driver: str | None
) -> None:
    """docs/decisions/0004: sound, not complete."""
    assert bound_driver(expression) == driver


def matches(device: Any, *expressions: str, device_class: str = "gpu", driver: str = DRIVER) -> bool:
    world = inputs([])
    slice_ = from_object(ResourceSlice, make.resource_slice("s", driver, [device], node="elsewhere"))
    entry = from_object(
        ExactDeviceRequest, {"deviceClassName": device_class, "selectors": make.cel(*expressions)}
    )
    return request_matches(COMPILER, world.features, world.classes, entry, slice_, slice_.spec.devices[0])


def test_a_device_matches_whatever_its_node_its_taints_and_its_users() -> None:
    assert matches(make.device("a", taints=[{"key": "k", "effect": "NoExecute"}]))


def test_class_and_request_must_both_match() -> None:
    wanted = f'device.attributes["{DRIVER}"].model == "big"'
    assert matches(make.device("a", attributes={"model": "big"}), wanted)
    assert not matches(make.device("a", attributes={"model": "small"}), wanted)
    assert not matches(make.device("a", attributes={"model": "big"}), wanted, driver="other.test")


def test_a_class_that_does_not_exist_is_named() -> None:
    with pytest.raises(InvalidClaim, match="could not retrieve device class none"):
        matches(make.device("a"), device_class="none")


def test_a_selector_that_fails_on_the_device_is_not_an_answer() -> None:
    with pytest.raises(
        CelRuntimeError,
        match=r"selector #0 on device gpu\.dra\.test/elsewhere/a: CEL runtime error: no such key",
    ):
        matches(make.device("a"), f'device.attributes["{DRIVER}"].model == "big"')
