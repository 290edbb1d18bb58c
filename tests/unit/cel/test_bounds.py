"""What expressions may cost: nobody's text takes the operator's time or memory beyond a known amount, and what is refused is no guess."""

from __future__ import annotations

import pytest

from dra_operator.cel import default_compiler
from dra_operator.cel.costs.units import LIMIT
from dra_operator.cel.evaluation.counted import WORK
from dra_operator.cel.evaluation.running import BUDGET, CUT
from dra_operator.cel.functions.patterns import KEPT, Patterns
from dra_operator.errors import (
    CelCompileError,
    CelError,
    CelRuntimeError,
    CelUnsupported,
    WorkLimitReached,
)
from dra_operator.features import DEFAULT_1_37

from .build import GPU, slice_of

DIGITS = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
ATTRIBUTES = 'device.attributes["gpu.example.com"]'


def doubled(times: int, text: str = "a" * 5000) -> str:
    """A text that is twice as long with each binding."""
    made = f'"{text}"'
    for number in range(times):
        made = f"cel.bind(s{number}, {made}, s{number} + s{number})"
    return made


def nested(depth: int, body: str) -> str:
    for variable in "abcdefgh"[:depth]:
        body = f"{DIGITS}.all({variable}, {body})"
    return body


def twice(times: int, start: str, form: str) -> str:
    """A value that holds the one before it twice."""
    made = start
    for number in range(times):
        made = f"cel.bind(l{number}, {made}, {form.replace('@', f'l{number}')})"
    return made


def again(body: str, text: str) -> str:
    """The same about a long text, ten times."""
    return f"cel.bind(s, {text}, {nested(1, body)})"


TOO_MUCH = {
    "lists that hold one another": f"cel.bind(q, {twice(30, '[1]', '[dyn(@), dyn(@)]')}, q == q)",
    "membership": f"cel.bind(q, {twice(30, '[1]', '[dyn(@), dyn(@)]')}, q in [q, q])",
    "texts replaced": f"cel.bind(s, {doubled(6)}, s.replace('a', s).size() > 0)",
    "searches from the end": f'cel.bind(s, {doubled(4)}, s.lastIndexOf("b" + s) == -1)',
    "patterns": nested(3, '"a".matches("(x{1,900})" + string(100 * a + 10 * b + c)) || true'),
    "large patterns": nested(2, f'"a".matches("{"(x{1,900}y)" * 150}" + string(10 * a + b)) || true'),
    "slow patterns": f'cel.bind(s, {doubled(4)}, s.matches("(a|b)*a(a|b){{900}}c"))',
    "matches": f'cel.bind(s, {doubled(6)}, s.findAll("a").size() > 0)',
    "quantities": nested(5, 'quantity(string(a * 1000 + b)) != quantity("1")'),
    "versions": nested(5, 'semver(string(a * 1000 + b) + ".0.0") != semver("1.0.0")'),
    "addresses": again("isIP(s) || isCIDR(s) || a > 0", doubled(4)),
    "URLs": again("isURL('/' + s)", doubled(4)),
    "queries": again("url('/?' + s).getQuery().size() > 0", doubled(3)),
    "durations": again("duration(s) > duration('1s')", doubled(4, "1s" * 2500)),
    "lists": f"cel.bind(f, {twice(10, '[1, 2, 3, 4, 5, 6, 7, 8]', '@ + @')}, {nested(3, '(f + f).size() > a')})",
    "loops that are free upstream": nested(
        5, f"{DIGITS}.filter(x, {DIGITS}.exists_one(y, false)).size() == 0"
    ),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_work_on_one_device_ends_at_the_budget_where_upstream_would_go_on(name: str) -> None:
    compiler, slice_ = default_compiler(), slice_of(GPU)
    selector = compiler.compile(TOO_MUCH[name], DEFAULT_1_37)
    before = compiler.meter.spent
    with pytest.raises(CelUnsupported, match=r"too much work|too large|so large"):
        selector.matches(slice_, slice_.spec.devices[0])
    assert compiler.meter.spent - before <= BUDGET + WORK * LIMIT


TOO_EXPENSIVE = {
    "loops": nested(7, "true"),
    "failures": nested(6, f"{ATTRIBUTES}.nope == 1 || true"),
    "long texts compared": f"cel.bind(s, {doubled(6)}, {nested(3, 's == s.lowerAscii()')})",
    "long texts made": f"cel.bind(s, {doubled(6)}, {DIGITS}.map(a, {DIGITS}.map(b, s + string(a) + string(b))).size() > 0)",
    "long texts joined": f"cel.bind(s, {doubled(4)}, {nested(2, '[s, s].join(s).size() > a')})",
    "long texts split": f"cel.bind(s, {doubled(4)}, {nested(2, 's.split(string(a)).size() >= 1')})",
    "formats": f"cel.bind(s, {doubled(4)}, format.uri().validate(s).hasValue())",
    "searches": f"cel.bind(s, {doubled(4)}, {nested(2, '!s.contains(string(a) + s)')})",
    "what decides anyway": f"{nested(7, 'true')} || true",
}


@pytest.mark.parametrize("name", TOO_EXPENSIVE)
def test_an_evaluation_ends_at_upstreams_limit_whatever_it_is_made_of(name: str) -> None:
    compiler, slice_ = default_compiler(), slice_of(GPU)
    selector = compiler.compile(TOO_EXPENSIVE[name], DEFAULT_1_37)
    before = compiler.meter.spent
    with pytest.raises(CelRuntimeError, match=r"^operation cancelled: actual cost limit exceeded$"):
        selector.matches(slice_, slice_.spec.devices[0])
    assert compiler.meter.spent - before <= BUDGET + WORK * LIMIT


@pytest.mark.parametrize(
    "expression", [nested(4, "a + b + c + d < 100"), nested(5, f"{ATTRIBUTES}.index < 100")]
)
def test_what_upstream_finishes_is_finished(expression: str) -> None:
    slice_ = slice_of(GPU)
    assert default_compiler().compile(expression, DEFAULT_1_37).matches(slice_, slice_.spec.devices[0])


@pytest.mark.parametrize(
    ("expression", "units"),
    [
        ('device.driver == "gpu.example.com"', 20),
        (f'{ATTRIBUTES}.model.matches("^(a100|h100)-.*$") && {ATTRIBUTES}.names.exists(n, n == "b")', 150),
        (
            f'{ATTRIBUTES}.driverVersion.isGreaterThan(semver("1.0.0")) && "model" in {ATTRIBUTES}',
            30,
        ),
    ],
)
def test_what_people_write_costs_next_to_nothing(expression: str, units: int) -> None:
    compiler, slice_ = default_compiler(), slice_of(GPU)
    selector = compiler.compile(expression, DEFAULT_1_37)
    compiler.answers.inputs(slice_)  # converting devices is other work
    before = compiler.meter.spent
    selector.matches(slice_, slice_.spec.devices[0])
    assert 0 < compiler.meter.spent - before <= units


MAPS_OF_MAPS = f"{twice(40, '{1: 1}', '{@: @}')}.size() > 0"
LATE_TYPES = "&&".join([*(f"a{n} == [{{a{n + 1}[0]: a{n + 1}[0]}}]" for n in range(30)), "a0 == a0"])
for _number in range(31):
    LATE_TYPES = f"cel.bind(a{_number}, [], {LATE_TYPES})"


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        (MAPS_OF_MAPS, CelUnsupported),
        (LATE_TYPES, CelUnsupported),
        (f'double("{"1" * 10_000}x") > 0.0', CelCompileError),
        (f'"a".matches("{"(x{1,1000}y)" * 800}")', CelUnsupported),
    ],
    ids=["types of types", "types found late", "double", "pattern"],
)
def test_compiling_ends_whatever_it_is(expression: str, error: type[CelError]) -> None:
    with pytest.raises(error):
        default_compiler().compile(expression, DEFAULT_1_37)


@pytest.mark.parametrize(("text", "infinite"), [("1e400", True), ("1e390", True), ("-1e400", False)])
def test_quantities_beyond_doubles_are_infinite(text: str, infinite: bool) -> None:  # noqa: FBT001 -- an answer
    slice_ = slice_of(GPU)
    selector = default_compiler().compile(
        f'quantity("{text}").asApproximateFloat() == double("inf")', DEFAULT_1_37
    )
    assert selector.matches(slice_, slice_.spec.devices[0]) is infinite


def test_a_failure_keeps_no_more_than_the_beginning_of_its_text() -> None:
    slice_ = slice_of(GPU)
    selector = default_compiler().compile(f"{ATTRIBUTES}[{doubled(6)}] == 1", DEFAULT_1_37)
    with pytest.raises(CelRuntimeError, match="no such key: aaa") as caught:
        selector.matches(slice_, slice_.spec.devices[0])
    assert len(str(caught.value)) < 2 * CUT


def test_patterns_are_forgotten_and_bad_ones_remembered() -> None:
    patterns = Patterns()
    for number in range(KEPT + 10):
        patterns.get(f"a{number}")
    assert len(patterns._known) == KEPT
    for _ in range(2):
        with pytest.raises(CelRuntimeError, match="error parsing regexp"):
            patterns.get("(")
    before = patterns.work
    with pytest.raises(CelRuntimeError):
        patterns.get("(")
    assert patterns.work == before


def test_compiled_expressions_are_kept_by_their_length() -> None:
    compiler = default_compiler()
    for number in range(60):
        compiler.compile(f'"{"a" * 9000}" == "{number}"', DEFAULT_1_37)
    assert len(compiler._known) < 30
    assert compiler._text == sum(len(expression) for expression, *_ in compiler._known)


def test_a_decision_ends_with_its_allowance_and_the_next_goes_on() -> None:
    compiler, slice_ = default_compiler(), slice_of(*[GPU] * 20)
    selector = compiler.compile(nested(4, "a < 100"), DEFAULT_1_37)
    done: list[int] = []
    for _ in range(20):
        compiler.meter.allow(BUDGET // 20)
        try:
            for number, device in enumerate(slice_.spec.devices):
                selector.matches(slice_, device)
                if number not in done:
                    done.append(number)
        except WorkLimitReached:
            continue
        break
    assert done == list(range(20))


def test_an_allowance_that_is_used_up_is_no_answer() -> None:
    compiler, slice_ = default_compiler(), slice_of(GPU)
    compiler.meter.allow(1)
    compiler.compile("true", DEFAULT_1_37)
    with pytest.raises(WorkLimitReached):
        compiler.compile("1 == 1", DEFAULT_1_37)
    with pytest.raises(WorkLimitReached):
        compiler.compile("true", DEFAULT_1_37).matches(slice_, slice_.spec.devices[0])
    compiler.meter.allow(None)
    assert compiler.compile("1 == 1", DEFAULT_1_37).matches(slice_, slice_.spec.devices[0])
    assert compiler.compile("true", DEFAULT_1_37).matches(slice_, slice_.spec.devices[0])


def test_what_takes_long_is_done_aside_and_then_known() -> None:
    compiler, slice_ = default_compiler(), slice_of(GPU)
    selector = compiler.compile(nested(4, "true"), DEFAULT_1_37)
    compiler.answers.inputs(slice_)
    compiler.meter.patience = 1_000
    before = compiler.meter.spent
    for _ in range(3):
        with pytest.raises(WorkLimitReached):
            selector.matches(slice_, slice_.spec.devices[0])
    assert compiler.meter.spent - before <= 3 * 1_100
    (errand,) = compiler.meter.errands()
    assert errand() > 10_000
    assert not compiler.meter.errands()
    before = compiler.meter.spent
    assert selector.matches(slice_, slice_.spec.devices[0])
    assert compiler.meter.spent == before


def test_impatience_is_no_error_that_an_expression_could_absorb() -> None:
    compiler, slice_ = default_compiler(), slice_of(GPU)
    selector = compiler.compile(f"{nested(4, 'true')} || {nested(1, 'true')}", DEFAULT_1_37)
    compiler.meter.patience = 1_000
    with pytest.raises(WorkLimitReached):
        selector.matches(slice_, slice_.spec.devices[0])


def test_long_expressions_are_compiled_aside() -> None:
    compiler = default_compiler()
    compiler.meter.patience = 1_000
    long = " || ".join(["true"] * 100)
    with pytest.raises(WorkLimitReached):
        compiler.compile(long, DEFAULT_1_37)
    for errand in compiler.meter.errands():
        errand()
    slice_ = slice_of(GPU)
    assert compiler.compile(long, DEFAULT_1_37).matches(slice_, slice_.spec.devices[0])
