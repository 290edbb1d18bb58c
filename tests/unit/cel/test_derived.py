"""Derived attributes: what their expressions may give, and what becomes of it (alloc D-1…D-4)."""

from __future__ import annotations

from typing import Any

import pytest

from dra_operator.cel import Compiler
from dra_operator.cel.checking.environment import new_expressions
from dra_operator.errors import CelCompileError, CelRuntimeError
from dra_operator.features import DEFAULT_1_37, Features
from dra_operator.model import DeviceAttribute

from .build import COMPILER, DRIVER, GPU, slice_of

NEW = Compiler(new_expressions)


def derived(expression: str, device: dict[str, Any] | None = None) -> DeviceAttribute:
    slice_ = slice_of(GPU if device is None else device)
    text = expression.replace("$a", f'device.attributes["{DRIVER}"]')
    return COMPILER.compile_derived(text, DEFAULT_1_37).attribute(slice_, slice_.spec.devices[0])


GIVES = {
    "42": DeviceAttribute(int_value=42),
    "true": DeviceAttribute(bool_value=True),
    "device.driver + '!'": DeviceAttribute(string=f"{DRIVER}!"),
    "semver('1.2.3-a+b')": DeviceAttribute(version="1.2.3-a+b"),
    "$a.driverVersion": DeviceAttribute(version="550.54.15-rc.1+b5"),
    "$a.model": DeviceAttribute(string="a100-sxm"),
    "$a.index": DeviceAttribute(int_value=3),
    "$a.numbers": DeviceAttribute(ints=(1, 2, 3)),
    "$a.flags": DeviceAttribute(bools=(True, False)),
    "$a.names": DeviceAttribute(strings=("a", "b")),
    "$a.versions": DeviceAttribute(versions=("1.0.0", "2.0.0")),
    "[1, 2].map(x, x * 2)": DeviceAttribute(ints=(2, 4)),
    "[$a.model, $a.model]": DeviceAttribute(strings=("a100-sxm", "a100-sxm")),
    "[]": DeviceAttribute(strings=()),
    "dyn([true])": DeviceAttribute(bools=(True,)),
    "dyn(optional.of('x'))": DeviceAttribute(string="x"),
    "dyn(type(1))": DeviceAttribute(string="int"),
    "$a.?nothing.orValue('none')": DeviceAttribute(string="none"),
}


@pytest.mark.parametrize("expression", GIVES)
def test_a_scalar_or_a_list_becomes_an_attribute(expression: str) -> None:
    assert derived(expression) == GIVES[expression]


FAILS = {
    "$a.nothing": "no such key: nothing",
    "$a.index + 'x'": "no such overload",
    "dyn(null)": "unsupported CEL return type: structpb.NullValue",
    "dyn(1u)": "unsupported CEL return type: uint64",
    "dyn(1.5)": "unsupported CEL return type: float64",
    "dyn(b'a')": "unsupported CEL return type: []uint8",
    "dyn(optional.none())": "unsupported CEL return type: <nil>",
    "dyn(quantity('1'))": "unsupported CEL return type: *resource.Quantity",
    "dyn({'a': 1})": "unsupported CEL return type: map[ref.Val]ref.Val",
    "dyn([1.5])": "unsupported list element type: float64",
    "[dyn(1), dyn('a')]": "expected list element at index 1 to be int, got string",
    "[dyn('a'), dyn('b'), dyn(1)]": "expected list element at index 2 to be string, got int64",
    "[dyn(true), dyn(semver('1.0.0'))]": "expected list element at index 1 to be bool, got semver.Version",
    "[$a.driverVersion, $a.ecc]": "expected list element at index 1 to be semver, got bool",
}


@pytest.mark.parametrize("expression", FAILS)
def test_other_values_fail_on_the_device(expression: str) -> None:
    for _ in range(2):
        with pytest.raises(CelRuntimeError) as caught:
            derived(expression)
        assert FAILS[expression] in str(caught.value)


SCALARS = "must evaluate to a primitive scalar (string, integer, boolean, semver)"
REFUSED = {
    "null": f"{SCALARS} or a list of these scalars, not null_type",
    "1.5": f"{SCALARS} or a list of these scalars, not double",
    "[1.5]": f"{SCALARS} or a list of these scalars, not list(double)",
    "[[1]]": f"{SCALARS} or a list of these scalars, not list(list(int))",
    "{'a': 1}": f"{SCALARS} or a list of these scalars, not map(string, int)",
    "optional.of(1)": "not optional_type(int)",
    "quantity('1')": "not kubernetes.Quantity",
    "device.attributes": "not map(string, map(string, dyn))",
    "nope": "undeclared reference to 'nope'",
}


@pytest.mark.parametrize("expression", REFUSED)
def test_other_types_do_not_compile(expression: str) -> None:
    with pytest.raises(CelCompileError) as caught:
        COMPILER.compile_derived(expression, DEFAULT_1_37)
    assert REFUSED[expression] in str(caught.value)


def test_new_expressions_give_lists_only_where_devices_have_them() -> None:
    without, with_lists = Features(list_type_attributes=False), Features(list_type_attributes=True)
    NEW.compile_derived("1", without)
    NEW.compile_derived("[1]", with_lists)
    with pytest.raises(CelCompileError) as caught:
        NEW.compile_derived("[1]", without)
    assert str(caught.value) == f"{SCALARS}, not list(int)"


def test_one_text_may_be_a_selector_and_a_derived_attribute() -> None:
    slice_ = slice_of(GPU)
    device = slice_.spec.devices[0]
    assert COMPILER.compile("1 == 1", DEFAULT_1_37).matches(slice_, device)
    assert COMPILER.compile_derived("1 == 1", DEFAULT_1_37).attribute(slice_, device).bool_value is True
