"""Compiled selectors and their answers are kept, as long as they are right."""

from __future__ import annotations

import gc
import weakref

import pytest

from dra_operator.cel import CelPythonCompiler, default_compiler
from dra_operator.cel.cache import _PerDevice
from dra_operator.errors import CelCompileError, CelRuntimeError
from dra_operator.features import DEFAULT_1_37, Features

from .build import GPU, slice_of

INDEX = 'device.attributes["gpu.example.com"].index == 3'


def test_an_expression_is_compiled_once() -> None:
    compiler = default_compiler()
    assert compiler.compile("true", DEFAULT_1_37) is compiler.compile("true", Features())


def test_a_fault_is_raised_each_time_as_a_new_exception() -> None:
    compiler = default_compiler()
    faults = []
    for _ in range(2):
        with pytest.raises(CelCompileError) as caught:
            compiler.compile("nope", DEFAULT_1_37)
        faults.append(caught.value)
    assert faults[0] is not faults[1]
    assert faults[0].args == faults[1].args


def test_a_runtime_error_is_an_answer_too() -> None:
    selector = default_compiler().compile("device.attributes.x.y == 1", DEFAULT_1_37)
    slice_ = slice_of(GPU)
    for _ in range(2):
        with pytest.raises(CelRuntimeError, match="no such key: y"):
            selector.matches(slice_, slice_.spec.devices[0])


def test_answers_belong_to_slice_objects_and_not_to_names() -> None:
    selector = default_compiler().compile(INDEX, DEFAULT_1_37)
    one, other = slice_of(GPU), slice_of({"attributes": {"index": {"int": 4}}})
    assert [selector.matches(slice_, slice_.spec.devices[0]) for slice_ in (one, other, one)] == [
        True,
        False,
        True,
    ]


def test_devices_of_one_name_in_a_slice_have_answers_of_their_own() -> None:
    selector = default_compiler().compile(INDEX, DEFAULT_1_37)
    slice_ = slice_of({**GPU, "name": "same"}, {"name": "same", "attributes": {"index": {"int": 4}}})
    assert [
        selector.matches(slice_, device) for device in (*slice_.spec.devices, slice_.spec.devices[0])
    ] == [True, False, True]


def test_answers_go_with_the_slice() -> None:
    kept: _PerDevice[bool] = _PerDevice()
    slice_ = slice_of(GPU)
    kept.put(slice_, slice_.spec.devices[0], value=True)
    assert kept.get(slice_, slice_.spec.devices[0]) is True
    gone = weakref.ref(slice_)
    del slice_
    gc.collect()
    assert gone() is None
    assert not kept._by_slice


def test_a_compiler_keeps_a_bounded_number_of_answers() -> None:
    compiler = CelPythonCompiler(max_answers=3)
    selector = compiler.compile(INDEX, DEFAULT_1_37)
    slice_ = slice_of(*[GPU] * 10)
    assert all(selector.matches(slice_, device) for device in slice_.spec.devices)
    assert len(selector.answers._by_slice[id(slice_)][1]) <= 3
