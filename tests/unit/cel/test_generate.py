"""What has generated source, and what is left to the closures; that both agree is for `tests/properties/generated.py`."""

from __future__ import annotations

import pytest

from dra_operator.cel import default_compiler
from dra_operator.cel.checking.environment import stored_expressions
from dra_operator.cel.compiler import compile_selector
from dra_operator.cel.evaluation.memo import REMEMBERED, ElsewhereError, Memo
from dra_operator.errors import CelRuntimeError
from dra_operator.features import DEFAULT_1_37

from .build import DRIVER, GPU, matches, slice_of

A = f'device.attributes["{DRIVER}"]'
C = f'device.capacity["{DRIVER}"]'

USUAL = [
    f'device.driver == "{DRIVER}"',
    f'device.driver == "{DRIVER}" && {A}.model == "a100-sxm" && {A}.index >= 3',
    f'{C}.memory.compareTo(quantity("10Gi")) >= 0',
    f'{A}.?model.orValue("").matches("^(a|h)100") && {A}.driverVersion.isGreaterThan(semver("550.0.0"))',
    f'!(has({A}.nope) || "nope" in {A}) && {A}.ecc',
    f'{A}.model in ["a100-sxm", "h100"] && {A}.names.exists(n, n == "b") && "a" in {A}.names',
    f'{A}.ecc ? {C}.memory.isGreaterThan(quantity("1Gi")) : {A}.index != -3',
    f'cel.bind(a, {A}, a.model.startsWith("a100") && a.?nope.orValue(a.index) == 3)',
    f'{A}[?"nope"].or({A}.?model).optMap(m, m.contains("100")).orValue(false) && {A}.names.includes("b")',
    f"device.allowMultipleAllocations == false && {A}.numbers.filter(n, n > 1).size() == 2",
    f'[1, 2, 3].all(n, n > 0) && {A}.driverVersion.compareTo(semver("1.0.0")) > 0 && {A}.driverVersion.major() == 550',
]


@pytest.mark.parametrize("expression", USUAL)
def test_usual_shapes_are_answered_by_source(expression: str) -> None:
    compiler, slice_ = default_compiler(), slice_of(GPU, GPU)
    assert compiler.compile(expression, DEFAULT_1_37).matches(slice_, slice_.spec.devices[1])
    assert compiler.answers.tally.evaluated == compiler.answers.tally.generated == 2


@pytest.mark.parametrize(
    "expression",
    [
        f'{A}.model + "x" == "y"',
        "cel.bind(l, [[1]], cel.bind(m, [l, l], [m, m] == [m, m]))",
        "[1].map(x, [x, x]).map(y, [y]) == []",
        f"{A}.numbers.all(a, {A}.numbers.all(b, {A}.numbers.all(c, a + b + c > 0)))",
        f"{A}.numbers.all(a, {A}.numbers.all(b, {A}.numbers.all(c, a == c)))",
        f'{A}.names.exists(n, n.matches("{"a|" * 2000}"))',
        f'{A}.names.exists(n, "{"a" * 5000}".contains(n))',
        "!(" * 80 + "true" + ")" * 80,
        "&&".join(f"device.attributes.d.a{number}=='1'" for number in range(300)),
    ],
    ids=[
        "unknown",
        "lists of lists",
        "mapped lists",
        "loops with sums",
        "loops",
        "long pattern",
        "long text",
        "deep",
        "long",
    ],
)
def test_what_is_unusual_or_dear_is_left_to_the_closures(expression: str) -> None:
    assert compile_selector(expression, stored_expressions())[1] is None


def test_nothing_that_is_written_gets_into_the_source() -> None:
    evil = "'); import os; ("
    program = compile_selector(
        f'cel.bind(os, "{evil}", os == {A}["{evil}"] && device.attributes["{evil}"].exec.exists(K0, K0 == os))',
        stored_expressions(),
    )[1]
    assert program is not None
    for word in ("import", "os", "exec", "exists", DRIVER):
        assert word not in program.source.replace("for v", "").split("found.append")[1]


def test_a_memo_answers_for_one_class_and_is_bounded() -> None:
    memo = Memo(str, lambda text: len(text) > 2)
    assert [memo["abc"], memo["a"]] == [True, False]
    for value in (1, True, ("a",), "a" * 1000):
        with pytest.raises(ElsewhereError):
            memo[value]
    for number in range(REMEMBERED + 10):
        memo[f"a{number}"]
    assert len(memo) <= REMEMBERED


@pytest.mark.parametrize(
    "expression",
    [
        "-(-9223372036854775808) > 0",
        "-(-9223372036854775808) == 1",
        "-(-9223372036854775808) in [1]",
        "-(-0x8000000000000000) == 1",
        "$a.index == 3 && -(-9223372036854775808) != 0",
    ],
)
def test_the_smallest_number_has_no_negative(expression: str) -> None:
    with pytest.raises(CelRuntimeError, match="integer overflow"):
        matches(expression)
