"""What takes long is left to a thread: whoever is impatient is told so, and finds the answer later. Steps are counted, no time is taken."""

from __future__ import annotations

import contextlib

import pytest

from dra_operator.cel import default_compiler
from dra_operator.cel.answers import SEARCHES
from dra_operator.errors import WorkLimitReached
from dra_operator.features import DEFAULT_1_37

from .build import DRIVER, GPU, slice_of

ATTRIBUTES = f'device.attributes["{DRIVER}"]'
PATIENCE = 15_000


def test_patterns_that_take_long_are_compiled_aside() -> None:
    compiler, slice_ = default_compiler(), slice_of(GPU)
    compiler.meter.patience = PATIENCE
    expression = r'"x".matches("\\p{L}{1,19}")'
    with pytest.raises(WorkLimitReached):
        compiler.compile(expression, DEFAULT_1_37)
    (errand,) = compiler.meter.errands()
    errand()
    assert compiler.compile(expression, DEFAULT_1_37).matches(slice_, slice_.spec.devices[0])


def test_patterns_that_people_write_are_compiled_at_once() -> None:
    compiler, slice_ = default_compiler(), slice_of(GPU)
    compiler.meter.patience = 2 * PATIENCE  # a long text
    selector = compiler.compile(
        f'{ATTRIBUTES}.model.matches("^[a-z0-9]([-a-z0-9]{{0,61}}[a-z0-9])?$")', DEFAULT_1_37
    )
    assert selector.matches(slice_, slice_.spec.devices[0])


def test_what_does_not_fit_into_a_portion_any_more_is_for_the_next_one() -> None:
    compiler = default_compiler()
    compiler.meter.patience = PATIENCE
    sums = ["+".join(["1"] * 68) + f">{number}" for number in range(10)]
    compiled, portions = 0, 0
    while compiled < len(sums):
        compiler.meter.allow(PATIENCE)
        portions += 1
        with contextlib.suppress(WorkLimitReached):
            for expression in sums:
                compiler.compile(expression, DEFAULT_1_37)
        assert compiler.expressions == compiled + 1
        compiled = compiler.expressions
    assert portions == len(sums)


def test_patterns_of_devices_that_take_long_are_compiled_aside() -> None:
    slice_ = slice_of({"attributes": {"pattern": {"string": r"^\p{L}{1,18}$"}}})
    compiler = default_compiler()
    selector = compiler.compile(f'"abc".matches({ATTRIBUTES}.pattern)', DEFAULT_1_37)
    compiler.meter.patience = PATIENCE
    compiler.answers.inputs(slice_)
    with pytest.raises(WorkLimitReached):
        selector.matches(slice_, slice_.spec.devices[0])
    (errand,) = compiler.meter.errands()
    errand()
    assert selector.matches(slice_, slice_.spec.devices[0])


def test_searches_of_many_texts_end_with_the_allowance_and_what_they_found_is_kept() -> None:
    slice_ = slice_of(*({"attributes": {"serial": {"string": f"s{number}"}}} for number in range(40)))
    compiler = default_compiler()
    selector = compiler.compile(f'{ATTRIBUTES}.serial.matches("^s[0-9]+$")', DEFAULT_1_37)
    compiler.answers.inputs(slice_)
    looks: list[int] = []
    found: int | None = None
    for _ in range(3):
        before = compiler.answers.tally.evaluated
        compiler.meter.allow(1)
        with contextlib.suppress(WorkLimitReached):
            found = selector.matching(slice_)
        looks.append(compiler.answers.tally.evaluated - before)
    assert looks == [SEARCHES, SEARCHES, 40 - 2 * SEARCHES]
    assert found == (1 << 40) - 1


def test_an_attribute_that_takes_long_to_derive_is_derived_aside() -> None:
    compiler, slice_ = default_compiler(), slice_of(GPU)
    body = "a + b + c"
    for variable in "abc":
        body = f"[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map({variable}, {body}).sum()"
    derivation = compiler.compile_derived(body, DEFAULT_1_37)
    compiler.answers.inputs(slice_)
    compiler.meter.patience = 1_000
    before = compiler.meter.spent
    with pytest.raises(WorkLimitReached):
        derivation.attribute(slice_, slice_.spec.devices[0])
    assert compiler.meter.spent - before < 1_100
    (errand,) = compiler.meter.errands()
    assert errand() > 1_000
    assert derivation.attribute(slice_, slice_.spec.devices[0]).int_value == 16_500


def test_large_values_made_of_small_ones_and_first_evaluations_count() -> None:
    compiler, slice_ = default_compiler(), slice_of(GPU)
    selectors = [
        compiler.compile("[999999].all(x, lists.range(x).size() > 0)", DEFAULT_1_37),
        compiler.compile("&&".join(["1>0"] * 500), DEFAULT_1_37),
    ]
    compiler.answers.inputs(slice_)
    compiler.meter.patience = PATIENCE
    for selector in selectors:
        with pytest.raises(WorkLimitReached):
            selector.matches(slice_, slice_.spec.devices[0])
