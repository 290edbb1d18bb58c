"""What expressions see of a device (alloc L-6, L-7)."""

from __future__ import annotations

from typing import Any

import pytest

from dra_operator.errors import CelRuntimeError

from .build import DRIVER, GPU, matches

SEEN = [
    f'device.driver == "{DRIVER}"',
    '$a.model == "a100-sxm"',
    'device.attributes["resource.kubernetes.io"].pcieRoot == "pci0000:00"',
    'device.attributes["other.example.com"].name == "x"',
    '!("name" in $a)',
    f'"{DRIVER}" in device.attributes && size(device.attributes) == 3',
    'device.capacity["other.example.com"].bw.isGreaterThan(quantity("9G"))',
    "!device.allowMultipleAllocations",
]


@pytest.mark.parametrize("expression", SEEN)
def test_unqualified_names_belong_to_the_driver(expression: str) -> None:
    assert matches(expression) is True


UNKNOWN_DOMAIN = [
    'device.attributes["nope"].size() == 0',
    'device.capacity["nope"].size() == 0',
    '!("nope" in device.attributes)',
    'has(device.attributes.nope) && !has(device.attributes["nope"].x)',
    'device.attributes[?"nope"].hasValue()',
]


@pytest.mark.parametrize("expression", UNKNOWN_DOMAIN)
def test_an_unknown_domain_is_an_empty_map_when_looked_up_and_not_there_otherwise(expression: str) -> None:
    assert matches(expression) is True


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(CelRuntimeError, match="no such key: y"):
        matches('device.attributes["nope"].y == 1')


def test_multiple_allocations_are_seen() -> None:
    assert matches("device.allowMultipleAllocations", {"allowMultipleAllocations": True}) is True


PRECEDENCE: list[dict[str, Any]] = [
    {"ints": [1]},
    {"bools": [True]},
    {"strings": ["a"]},
    {"versions": ["1.0.0"]},
    {"int": 1},
    {"bool": True},
    {"string": "a"},
    {"version": "1.0.0"},
]
TYPES = ["list", "list", "list", "list", "int", "bool", "string", "type(semver('1.0.0'))"]


@pytest.mark.parametrize("first", range(len(PRECEDENCE)))
def test_the_first_kind_of_value_in_upstreams_order_counts(first: int) -> None:
    """Alloc L-7: only malformed devices have more than one."""
    merged = {name: value for kind in PRECEDENCE[first:] for name, value in kind.items()}
    assert matches(f"type($a.x) == {TYPES[first]}", {"attributes": {"x": merged}}) is True


def test_an_empty_list_is_a_list() -> None:
    assert matches("$a.x == [] && !(1 in $a.x)", {"attributes": {"x": {"ints": [], "int": 1}}}) is True


BAD: list[tuple[dict[str, Any], str]] = [
    ({}, "attribute bad: unsupported attribute value"),
    ({"version": "1.0"}, "attribute bad: parse semantic version: No Major.Minor.Patch elements found"),
    ({"versions": ["1.0.0", "v1.0.0"]}, 'attribute bad: parse semantic version: Invalid character(s) found in major number "v1"'),
]  # fmt: skip


@pytest.mark.parametrize(("attribute", "message"), BAD)
def test_one_bad_attribute_fails_every_selector_on_the_device(
    attribute: dict[str, Any], message: str
) -> None:
    """Alloc L-7."""
    device = {"attributes": {**GPU["attributes"], "bad": attribute}}
    with pytest.raises(CelRuntimeError) as caught:
        matches("true", device)
    assert str(caught.value) == message
