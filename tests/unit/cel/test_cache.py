"""Compiled selectors and their answers are kept, as long as they are right."""

from __future__ import annotations

import gc
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import msgspec
import pytest

from dra_operator.cel import Compiler, default_compiler
from dra_operator.cel.adapter import SPARE
from dra_operator.errors import CelCompileError, CelRuntimeError
from dra_operator.features import DEFAULT_1_37, Features
from dra_operator.model import ObjectMeta, ResourceSlice

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
    compiler = default_compiler()
    selector = compiler.compile(INDEX, DEFAULT_1_37)
    slice_ = slice_of(GPU)
    assert selector.matches(slice_, slice_.spec.devices[0])
    assert len(compiler.answers.adapters.all()) == 1
    gone = weakref.ref(slice_)
    del slice_
    gc.collect()
    assert gone() is None
    assert not compiler.answers.adapters.all()


def generation(uid: str, number: int, *devices: dict[str, Any], label: str = "") -> ResourceSlice:
    """A slice as an API server has it."""
    metadata = ObjectMeta(name="s", uid=uid, generation=number, labels={"l": label})
    return msgspec.structs.replace(slice_of(*devices), metadata=metadata)


def evaluated(compiler: Compiler, slice_: ResourceSlice) -> int:
    """How many devices are evaluated to have all answers."""
    before = compiler.answers.tally.evaluated
    selector = compiler.compile(INDEX, DEFAULT_1_37)
    for device in slice_.spec.devices:
        assert selector.matches(slice_, device) is (device.attributes["index"].int_value == 3)
    return compiler.answers.tally.evaluated - before


OTHER = {**GPU, "attributes": {**GPU["attributes"], "index": {"int": 4}}}


def test_a_new_object_of_the_same_generation_is_not_evaluated_again() -> None:
    compiler = default_compiler()
    first = generation("u", 1, GPU, OTHER)
    assert evaluated(compiler, first) == 2
    del first
    gc.collect()
    second = generation("u", 1, GPU, OTHER, label="new")
    assert evaluated(compiler, second) == 0


def test_a_new_generation_keeps_the_answers_of_devices_that_are_the_same() -> None:
    compiler = default_compiler()
    assert evaluated(compiler, generation("u", 1, GPU, GPU, GPU)) == 3
    converted = compiler.answers.adapters.converted
    assert evaluated(compiler, generation("u", 2, GPU, OTHER, GPU)) == 1
    assert compiler.answers.adapters.converted - converted == 1
    assert evaluated(compiler, generation("u", 2, GPU, OTHER, GPU, label="new")) == 0


def test_slices_without_uid_are_told_apart() -> None:
    compiler = default_compiler()
    assert [evaluated(compiler, generation("", 1, device)) for device in (GPU, OTHER)] == [1, 1]


def test_slices_that_went_are_kept_in_a_bounded_number() -> None:
    compiler = default_compiler()
    for number in range(40):
        evaluated(compiler, generation(f"u{number}", 1, *[GPU] * 100))
    gc.collect()
    evaluated(compiler, generation("last", 1, GPU))
    assert sum(len(inputs.devices) for inputs in compiler.answers.adapters.all()) <= SPARE + 1


def test_a_compiler_keeps_a_bounded_number_of_answers() -> None:
    compiler = Compiler(max_kept=30)
    slices = [slice_of(GPU, OTHER) for _ in range(10)]
    for number in range(8):
        selector = compiler.compile(f"{INDEX} || {number} < 0", DEFAULT_1_37)
        assert [selector.matches(each, each.spec.devices[0]) for each in slices] == [True] * 10
    assert compiler.answers.kept <= 30
    assert sum(len(inputs.vectors) for inputs in compiler.answers.adapters.all()) <= 30


def test_an_error_of_one_device_is_raised_when_that_device_is_asked_for() -> None:
    slice_ = slice_of(GPU, {"attributes": {}}, {"attributes": {"index": {"version": "bad"}}}, OTHER)
    selector = default_compiler().compile(INDEX, DEFAULT_1_37)
    devices = slice_.spec.devices
    assert selector.matches(slice_, devices[0])
    assert not selector.matches(slice_, devices[3])
    for _ in range(2):
        with pytest.raises(CelRuntimeError, match="no such key"):
            selector.matches(slice_, devices[1])
        with pytest.raises(CelRuntimeError, match="parse semantic version"):
            selector.matches(slice_, devices[2])


def test_threads_share_answers_and_get_the_right_ones() -> None:
    slices = [slice_of(*([GPU, OTHER] * 20)) for _ in range(10)]
    selector = default_compiler().compile(f"{INDEX} && has(device.attributes.d.x) == false", DEFAULT_1_37)

    def all_of(_: int) -> list[bool]:
        return [selector.matches(slice_, device) for slice_ in slices for device in slice_.spec.devices]

    with ThreadPoolExecutor(4) as pool:
        assert all(found == [True, False] * 200 for found in pool.map(all_of, range(8)))


def test_all_devices_are_told_at_once_where_none_fails() -> None:
    compiler = default_compiler()
    selector = compiler.compile(INDEX, DEFAULT_1_37)
    assert selector.matching(slice_of(OTHER, GPU, GPU, OTHER)) == 0b0110
    assert selector.matching(slice_of()) == 0
    broken = slice_of(GPU, {"attributes": {}})
    assert selector.matching(broken) is None
    assert selector.matches(broken, broken.spec.devices[0])
    one_by_one = compiler.compile(f'{INDEX} && "a" + "b" == "ab"', DEFAULT_1_37)
    slice_ = slice_of(GPU, OTHER)
    assert one_by_one.matching(slice_) is None
    assert [one_by_one.matches(slice_, device) for device in slice_.spec.devices] == [True, False]
    assert one_by_one.matching(slice_) == 0b01


@pytest.mark.parametrize("most", [2, 3, 4, 7, 50])
def test_a_selector_whose_own_answers_make_others_go_still_answers(most: int) -> None:
    compiler = Compiler(max_kept=most)
    selector = compiler.compile("device.attributes['gpu.example.com'].missing == 1", DEFAULT_1_37)
    slices = [slice_of(GPU) for _ in range(2 * most + 3)]
    for slice_ in slices:
        with pytest.raises(CelRuntimeError, match="no such key"):
            selector.matches(slice_, slice_.spec.devices[0])


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("missing == 1", ["fails"] * 6),
        ("index / device.attributes['gpu.example.com'].index == 1", ["fails", *["true"] * 5]),
    ],
)
def test_threads_get_the_same_answers(expression: str, expected: list[str]) -> None:
    """Devices are evaluated one by one here, as one fails; answers of one thread must not be taken for those of another."""
    slice_ = slice_of(*({"attributes": {"index": {"int": number}}} for number in range(6)))
    compiler = default_compiler()
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(6) as pool:
            for round_ in range(400):
                text = f"device.attributes['gpu.example.com'].{expression} && {round_} == {round_}"
                selector = compiler.compile(text, DEFAULT_1_37)
                start = Barrier(6)
                found = [pool.submit(answers, selector, slice_, start) for _ in range(6)]
                assert [each.result() for each in found] == [expected] * 6
    finally:
        sys.setswitchinterval(before)


def answers(selector: Any, slice_: ResourceSlice, start: Barrier) -> list[str]:
    found = []
    start.wait()
    for device in slice_.spec.devices:
        try:
            found.append(str(selector.matches(slice_, device)).lower())
        except CelRuntimeError:
            found.append("fails")
    return found
