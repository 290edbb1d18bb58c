"""Expressions as bad as the API takes them: an answer or a clear message, bounded work, and never an exhausted stack."""

from __future__ import annotations

import contextlib
import threading

import pytest

from dra_operator.cel import default_compiler
from dra_operator.cel.checking.checks import check
from dra_operator.cel.checking.environment import stored_expressions
from dra_operator.cel.costs.estimate import estimate
from dra_operator.cel.parsing.parser import MAX_BYTES
from dra_operator.errors import CelCompileError, CelError, CelRuntimeError, CelUnsupported
from dra_operator.features import DEFAULT_1_37

from .build import GPU, slice_of

STACK = 4 << 20
"""Half of what a thread has by default."""


def answer(expression: str) -> bool | CelError:
    """What a new compiler says of an expression on a device."""
    slice_ = slice_of(GPU)
    try:
        return default_compiler().compile(expression, DEFAULT_1_37).matches(slice_, slice_.spec.devices[0])
    except CelError as error:
        return error


def on_a_small_stack(*expressions: str) -> list[tuple[bool | CelError, int]]:
    """Answers and estimated costs, found by a thread with little room."""
    found: list[tuple[bool | CelError, int]] = []
    before = threading.stack_size(STACK)
    try:
        thread = threading.Thread(
            target=lambda: found.extend(
                (answer(text), estimate(check(text, stored_expressions())).max) for text in expressions
            )
        )
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    return found


LONG = {
    "2,000 terms that are true": ("&&".join(["1>0"] * 2000), True),
    "1,700 comparisons for equality": ("&&".join(["1==1"] * 1700), True),
    "2,000 terms that are false": ("||".join(["1>2"] * 2000), False),
    "2,000 negations": ("!" * 2000 + "true", True),
    "200 parentheses": ("(" * 200 + "true" + ")" * 200, True),
    "2,000 elements": (f"2 in [{','.join(['1'] * 2000)}]", False),
    "a long text": (f"'{'x' * 10_000}'.size() == 10000", True),
    "leading zeros": (f"{'0' * 9_000}1 == 1", True),
}


@pytest.mark.parametrize("name", LONG)
def test_ten_kibibytes_have_an_answer(name: str) -> None:
    expression, wanted = LONG[name]
    assert len(expression) <= MAX_BYTES
    assert answer(expression) is wanted


def nested(start: str, middle: str, end: str, times: int = 124) -> str:
    """A part in itself."""
    return start * times + middle + end * times


DEEP = {
    "everything": (nested("[false||true&&!(", "[]==[]", ")]!=[]"), True, 2624),
    "choices": (nested("true?false||true&&!(", "true", "):true", 249), False, 249),
    "conversions": (nested("dyn(false||true&&!", "true", ")", 249), False, 498),
    "maps": (nested("{1:false||true&&!", "true", "}[1]", 249), False, 7968),
    "loops": (nested("[1].all(x,false||true&&", "true", ")", 249), True, 3486),
    "counts": (nested("[1].exists_one(x,false||true&&", "true", ")", 249), True, 3486),
    "lists made": (nested("[1].map(x,", "true", ")[0]", 125), True, 4250),
    "sorts": (nested("[1].sortBy(x,", "1", ")[0]", 124) + " == 1", True, 7317),
    "bindings": (nested("cel.bind(x,1,false||true&&", "true", ")", 249), True, 2490),
    "optional values": (nested("optional.of(1).optMap(x,", "true", ").orValue(false)", 124), True, 1984),
    "lists": (f"{nested('[', '1', ']', 248)} == {nested('[', '1', ']', 248)}", True, 4961),
    "texts of lists": (f"'%s'.format([{nested('[', '1', ']', 247)}]) != ''", True, 2481),
}
"""As deep as upstream takes it, with upstream's answer and its estimate."""


@pytest.mark.parametrize("name", DEEP)
def test_what_is_nested_as_deeply_as_can_be_has_upstreams_answer_and_cost(name: str) -> None:
    expression, wanted, cost = DEEP[name]
    assert on_a_small_stack(expression) == [(wanted, cost)]


REFUSED: dict[str, tuple[str, type[CelError], str]] = {
    "sums": ("+".join(["1"] * 2000) + " > 0", CelCompileError, "max recursion depth exceeded"),
    "selections": ("device" + ".a" * 2000, CelCompileError, "max recursion depth exceeded"),
    "parentheses": ("(" * 2000 + "true" + ")" * 2000, CelCompileError, "expression recursion limit exceeded: 250"),
    "too long": ("true" + " || true" * 2000, CelCompileError, "Too long: may not be more than 10240 bytes"),
    "int": ("9" * 9000 + " > 1", CelCompileError, "1:1: invalid int literal"),
    "hexadecimal int": ("0x" + "f" * 9000 + " > 1", CelCompileError, "1:1: invalid int literal"),
    "half a character": ("'\ud800' == ''\ud83d", CelCompileError, "token recognition error"),
    "large quantity": ('quantity("1e999999999").compareTo(quantity("1")) > 0', CelUnsupported, "so large a quantity"),
    "larger quantity": (f'quantity("1e{"9" * 5000}").isInteger()', CelRuntimeError, "unable to parse quantity's suffix"),
    "quantity of many digits": (f'quantity("{"9" * 9000}").isInteger()', CelUnsupported, "so long a quantity"),
    "large number of digits": (f'int("{"9" * 9000}") > 1', CelCompileError, "type conversion error from 'string' to 'int'"),
    "pattern that grows": (f'"a".matches("{"(x{1,1000}y)" * 800}")', CelUnsupported, "too large|so large"),
    "pattern that RE2 takes long to compile": (f'"a".matches("{"x{1,1000}" * 20}")', CelUnsupported, "so large"),
    "pattern of many optional characters": (f'"a".matches("{"x?" * 3000}")', CelUnsupported, "so large"),
    "pattern of many classes": ('"a".matches("' + "[\\\\p{L}]" * 200 + '")', CelUnsupported, "so large"),
    "pattern in pattern": ('"a".matches("((a{1,100}){1,100}){1,100}")', CelCompileError, "invalid matches argument"),
    "open brackets": ("[" * MAX_BYTES, CelCompileError, "expression recursion limit exceeded"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_the_rest_is_refused_with_a_clear_message(name: str) -> None:
    expression, kind, words = REFUSED[name]
    found = answer(expression)
    assert isinstance(found, kind)
    assert any(word in str(found) for word in words.split("|"))


def quantified(levels: int, body: str) -> str:
    """A loop over ten numbers in a loop in a loop, and so on."""
    for variable in "abcde"[:levels]:
        body = f"[0,1,2,3,4,5,6,7,8,9].all({variable},{body})"
    return body


UNDER = f"{quantified(5, 'a<99&&a>-1&&1==1&&1==1')} && {quantified(4, '1==1&&1==1')}"
"""998,882 of upstream's units."""


def test_nested_loops_just_under_upstreams_limit_have_an_answer() -> None:
    assert answer(UNDER) is True


def test_nested_loops_just_over_upstreams_limit_end_there() -> None:
    found = answer(f"{UNDER} && {quantified(3, 'true')}")
    assert isinstance(found, CelRuntimeError)
    assert "actual cost limit exceeded" in str(found)


BACKTRACKING = ["(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(.*)*b", "^(([a-z])+.)+[A-Z]([a-z])+$"]


@pytest.mark.parametrize("pattern", BACKTRACKING)
def test_patterns_that_others_search_for_ever_are_searched_once(pattern: str) -> None:
    text = "a" * 5000 + "!"
    assert answer(f'"{text}".matches("{pattern}")') is False


def test_work_is_counted_whatever_comes_of_it() -> None:
    compiler = default_compiler()
    for expression in (LONG["2,000 terms that are true"][0], REFUSED["sums"][0]):
        before = compiler.meter.spent
        with contextlib.suppress(CelCompileError):
            compiler.compile(expression, DEFAULT_1_37)
        assert compiler.meter.spent - before >= len(expression)
