"""What evaluations really cost: the numbers are upstream's answers to expressions of ours; and that counting changes no answer."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from dra_operator.cel.checking.checks import check
from dra_operator.cel.checking.environment import stored_expressions
from dra_operator.cel.compiler import compile_selector
from dra_operator.cel.costs.bound import bound
from dra_operator.cel.costs.expand import expand
from dra_operator.cel.costs.units import LIMIT, MOST
from dra_operator.cel.evaluation.counted import EXCEEDED, counted
from dra_operator.cel.evaluation.evaluate import plan
from dra_operator.cel.meter import Meter
from dra_operator.cel.types.values import device_input
from dra_operator.errors import CelRuntimeError

from .build import DRIVER, GPU, slice_of

DEVICE = device_input(DRIVER, slice_of(GPU).spec.devices[0])


def written(expression: str) -> str:
    """`$a` stands for the attributes of the driver, `$c` for its capacities."""
    return expression.replace("$a", f'device.attributes["{DRIVER}"]').replace(
        "$c", f'device.capacity["{DRIVER}"]'
    )


def measured(expression: str, limit: int = LIMIT) -> tuple[object, int]:
    environment = stored_expressions()
    checked = check(written(expression), environment)
    return counted(checked, environment.functions).measure(DEVICE, limit)


KNOWN = {
    "true": 0,
    'device.driver == "gpu.example.com"': 4,
    '$a.model == "a100-sxm" && $a.index == 3': 10,
    '$a.model == "x" && $a.index == 3': 5,
    '$a.nope == "x"': 5,
    '$a.nope == "x" || true': 5,
    '$a.nope == "x" && $a.nope == "y"': 10,
    "has($a.model)": 3,
    "has($a.nope)": 3,
    "has($a.?nope.x)": 2,
    "!has(device.capacity.x)": 3,
    '$a.?nope.orValue("x") == "x"': 4,
    '$a.?model.orValue("x") == "x"': 5,
    '$a[?"model"].or(optional.of("y")).value() == "x"': 6,
    '$a.model.startsWith("a100")': 5,
    '$a.uni.contains("üß")': 5,
    '$a.model.matches("^a.*m$")': 6,
    '$a.nope.matches("^a.*m$")': 4,
    '$a.nope.matches(dyn("a"))': 4,
    "$a.nope.matches(dyn(true))": 5,
    '$a.nope.find(dyn(1)) == ""': 5,
    '$a.model.find("[0-9]+") == "100"': 7,
    '$a.model in ["a", "b"]': 4,
    "$a.model in []": 0,
    '$a.model in [device.driver, "b"]': 18,
    '"model" in $a': 4,
    '"x" in $a.names': 5,
    '$a.names.exists(n, n == "b")': 17,
    '$a.names.all(n, n == "b")': 12,
    '$a.names.exists_one(n, n == "b")': 12,
    '$a.names.map(n, n + "x").size() == 2': 35,
    '$a.names.filter(n, n == "b").size() == 1': 24,
    '$a.names.map(n, n == "b", n + "x") == ["bx"]': 24,
    '$a.names.exists(n, n.nope || n == "b")': 21,
    "$a.names.map(n, $a.nope).size() == 2": 39,
    "$a.numbers[0] == 1": 6,
    "$a.numbers[$a.index - 3] == 1": 11,
    "[1, 2, 3][0] == 1": 3,
    '{"a": $a.index}.a == 3': 37,
    '{"a": $a.index}["a"] == 3': 37,
    "$a.ecc ? $a.index == 3 : false": 9,
    '($a.ecc ? $a.names : $a.numbers)[0] == "a"': 9,
    "has(($a.ecc ? device : device).driver)": 4,
    'cel.bind(x, $a.model, x == "a" || x == "b")': 8,
    "cel.bind(x, $a.model, true)": 0,
    "cel.bind(x, $a.nope, x == 1 || x == 2 || true)": 8,
    "cel.bind(x, [$a.index], x.exists(y, y == 3) && x.exists(y, y == 4))": 30,
    'optional.of($a.model).optMap(m, m + "x").value() == "x"': 17,
    "$a.?model.optMap(m, m.size()).orValue(0) == 8": 14,
    "$a.?nope.optFlatMap(m, optional.of(m)).hasValue()": 6,
    '$c.memory.compareTo(quantity("10Gi")) >= 0': 7,
    '$c.memory == quantity("40Gi")': 6,
    'quantity("40Gi") == $c.memory': 6,
    '$c.memory.add(quantity("1Gi")) == quantity("41Gi")': 8,
    '$a.driverVersion.isGreaterThan(semver("1.0.0"))': 6,
    '$a.driverVersion == semver("1.0.0")': 6,
    '$a.model.split("-")[1] == "sxm"': 9,
    '$a.model.replace("a", "bb").lowerAscii().upperAscii().trim() == "x"': 10,
    '$a.model.substring(1, 3) == "10"': 6,
    '$a.model.substring(9) == "10"': 6,
    '$a.model.indexOf("-") == 4': 5,
    '$a.names.indexOf("b") == 1': 5,
    '$a.names.includes("b")': 4,
    "string(bytes($a.model)) == $a.model": 11,
    'string($a.index) + "x" == "3x"': 7,
    'int("3") == $a.index': 5,
    "dyn(3) == $a.index": 5,
    "dyn($a.index) == 3": 6,
    "type($a.index) == int": 6,
    "$a.index + 1 < 5": 6,
    "1 / ($a.index - 3) == 1": 7,
    "$a.index / $a.nope == 1": 10,
    "device.attributes == device.attributes": 5,
    "device == device": 3,
    "size($a.names) == 2": 6,
    '{"a": 1, "b": 2}.transformMap(k, v, v + 1)["a"] == 2': 14,
    "[1, 2].transformList(i, v, i + v) == [1, 3]": 32,
    "[3, 1, 2].sortBy(x, -x)[0] == 3": 77,
    '$a.names.exists(i, n, i == 1 && n == "b")': 19,
    "[1, 2].transformMapEntry(i, v, {v: i}).size() == 2": 71,
    "[[1, 2], [3]].flatten().size() == 3": 15,
    "[3, 1].sort()[0] == 1": 22,
    '["b", "a"].distinct().reverse().slice(0, 1) == ["a"]': 45,
    "lists.range(5).all(x, x < 5)": 42,
    "sets.contains([1, 2, 3], [1])": 4,
    '[1, 2, 3].sum() == 6 && [1, 2].max() == 2 && ["a", "b"].isSorted()': 7,
    'ip("10.0.0.1") == ip("10.0.0.2")': 3,
    'ip("2001:db8::1").family() == 6': 4,
    'cidr("10.0.0.0/9").containsIP("10.1.2.3")': 3,
    'cidr("10.0.0.0/9").containsIP(ip("10.1.2.3"))': 3,
    'cidr("10.0.0.0/8").containsCIDR(cidr("10.1.0.0/16"))': 6,
    'cidr("2001:db8::/64").containsCIDR("2001:db8::/96")': 8,
    'cidr("10.0.0.0/8").ip() == ip("10.0.0.0")': 4,
    'cidr("10.0.0.0/8").masked().prefixLength() == 8': 4,
    'isIP("10.0.0.1") && isCIDR("10.0.0.0/8") && ip.isCanonical("10.0.0.1")': 4,
    "isIP($a.model) || isCIDR($a.model)": 10,
    "ip($a.model).isLoopback()": 6,
    'string(ip("10.0.0.1")) == "10.0.0.1"': 3,
    'cidr("10.0.0.0/8") == cidr("10.0.0.0/8")': 3,
    'url("https://a.b/c?d=e").getHost() == "a.b"': 4,
    "isURL($a.model)": 5,
    'url("https://a.b/c") == url("https://a.b/c")': 5,
    'url("https://a.b/c?d=e&d=f").getQuery()["d"].size() == 2': 8,
    "format.dns1123Label().validate($a.model).hasValue()": 14,
    'format.named("uuid").value().validate("x").hasValue()': 21,
    'format.uri().validate("http://x") == optional.none()': 279,
    'format.datetime().validate("x").hasValue() && format.byte().validate("x").hasValue() && format.date().validate("x").hasValue()': 63,
    "format.labelValue() == format.labelValue()": 3,
    "format.qualifiedName().validate($a.nope).hasValue()": 21,
    'timestamp("2024-01-02T03:04:05Z").getFullYear() == 2024': 2,
    'duration("1h") + duration("30m") == duration("90m")': 2,
    'timestamp("2024-01-02T03:04:05Z") < timestamp("2025-01-02T03:04:05Z")': 1,
    'timestamp("2024-01-02T03:04:05Z").getHours("Europe/Berlin") == 4': 2,
    'string(duration("1h")) == "3600s"': 1,
    '"%s is %d".format([$a.model, 3]) == "x"': 16,
    'strings.quote($a.model) == "x"': 6,
    "type($a.index) == google.protobuf.Timestamp": 6,
    "dyn(1).includes(google.protobuf.Duration)": 1,
    "google.protobuf.NullValue.NULL_VALUE == 0": 1,
    "[optional.of(1), optional.none()].unwrapOpt() == [1]": 14,
    "optional.unwrap([optional.of($a.index)]).size() == 1": 18,
    'sets.intersects($a.numbers, [1]) || sets.equivalent($a.names, ["a"])': 8,
    "$a.numbers.sum() == 6": 8,
    '$a.names.min() == "a"': 5,
    '$a.names.sort() == ["a", "b"]': 6,
    "$a.names.isSorted()": 4,
    '["a", "b"].sort()[0] == "a"': 22,
    "$a.numbers.flatten().size() == 3": 20,
    '$a.names.slice(0, $a.index - 2) == ["a"]': 22,
    "lists.range($a.index).size() == 3": 20,
    "$a.nope.reverse() == [1] || true": 17,
}

BREAKING = {
    "$a.nope.distinct().size() == 1": 4,
    "$a.index.distinct() == [1]": 4,
    "$a.ecc.distinct() == [1]": 4,
    "$a.model.distinct() == [1]": 4,
    "$a.driverVersion.distinct() == [1]": 4,
    "$a.nope.distinct() == [1]": 4,
    "$a.nope.distinct() == [1] || true": 4,
    "dyn({1:2}).distinct() == [1]": 0,
    "dyn(device.attributes).distinct() == [1]": 3,
    "dyn(quantity('1').add(1)).distinct() == [1]": 3,
    "dyn(format.uuid()).distinct() == [1]": 2,
    "dyn(url('http://x')).distinct() == [1]": 2,
    "dyn(null).distinct() == [1]": 0,
    "dyn(b'a').distinct() == [1]": 0,
    "$a.numbers.flatten($a.nope) == [1] || true": 8,
    "$a.numbers.flatten($a.model) == [1]": 8,
    "[1].sortBy(x, $a.nope.size())[0] == 1 || true": 20,
}


@pytest.mark.parametrize("expression", [*KNOWN, *BREAKING])
def test_an_evaluation_costs_what_it_costs_upstream(expression: str) -> None:
    assert measured(expression)[1] == (KNOWN | BREAKING)[expression]


def plain(expression: str) -> object:
    """The answer without counting; a failure as its text."""
    text, environment = written(expression), stored_expressions()
    program = plan(check(text, environment), environment.functions)
    try:
        return replace(program, counted=None).evaluate(DEVICE, Meter())
    except CelRuntimeError as error:
        return str(error)


@pytest.mark.parametrize("expression", KNOWN)
def test_counting_does_not_change_the_answer(expression: str) -> None:
    answer, _ = measured(expression)
    assert plain(expression) == (str(answer) if isinstance(answer, CelRuntimeError) else answer)


@pytest.mark.parametrize("expression", KNOWN)
def test_no_evaluation_costs_more_than_the_bound(expression: str) -> None:
    text, environment = written(expression), stored_expressions()
    most = bound(expand(check(text, environment)))
    assert measured(expression, MOST)[1] <= most


@pytest.mark.parametrize("limit", range(7))
def test_the_limit_is_the_last_unit_that_is_allowed(limit: int) -> None:
    answer, cost = measured('$a.model == "a100-sxm"', limit)
    if limit >= 5:
        assert (answer, cost) == (True, 5)
    else:
        assert (str(answer), cost) == (EXCEEDED, limit + 1)


@pytest.mark.parametrize(
    ("expression", "is_counted"),
    [
        ('$a.model == "a" && $c.memory.compareTo(quantity("1Gi")) >= 0', False),
        ('$a.names.exists(n, n == "b")', False),
        ("device.attributes.all(d, device.attributes[d].all(k, k != d))", False),
        ('$a.names.join(",").matches("a.*b")', False),
        ('dyn([$a.names, $a.names]).join(",").matches("a.*b")', True),
        ("[[1, 2], [3]].flatten().all(x, x < 4)", True),
        ("device.includes(1)", True),
        ("device.attributes.includes(1)", True),
        ('{"device": [1, 2, 3]}.device.all(x, x < 4)', True),
        ("[1, 2].transformMapEntry(i, v, {v: i, v + 5: i}).all(k, k < 9)", False),
    ],
)
def test_only_what_could_cost_too_much_is_counted(expression: str, *, is_counted: bool) -> None:
    program, _ = compile_selector(written(expression), stored_expressions())
    assert (program.counted is not None) == is_counted


ONES = f"[{', '.join('1' * 100)}]"


@pytest.mark.parametrize(
    "expression",
    [
        f"[{', '.join([ONES] * 20)}].flatten().all(x, [[x]].flatten().all(y, y == 1 && {ONES}.all(z, z == 1 && {ONES}.size() > 1)))",
        f'{{"device": {ONES}}}.device.all(a, {ONES}.all(b, {ONES}.all(c, a == b)))',
    ],
)
def test_what_upstream_underestimates_ends_at_the_limit_all_the_same(expression: str) -> None:
    with pytest.raises(CelRuntimeError, match=EXCEEDED):
        compile_selector(written(expression), stored_expressions())[0].evaluate(DEVICE, Meter())


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("$a.nope.distinct() == [1] || true", "*types.Err is not traits.Lister: missing method Add"),
        ("$a.index.sort() == [1] || true", None),
        ("$a.index.distinct() == [1] || true", "types.Int is not traits.Lister: missing method Contains"),
        ("$a.numbers.flatten($a.model) == [1] || true", "ref.Val is types.String, not types.Int"),
    ],
)
def test_where_upstream_breaks_while_counting_nothing_absorbs_it(expression: str, text: str | None) -> None:
    program, _ = compile_selector(written(expression), stored_expressions())
    if text is None:
        assert program.evaluate(DEVICE, Meter()) is True
        return
    with pytest.raises(CelRuntimeError, match=re.escape(f"internal error: interface conversion: {text}")):
        program.evaluate(DEVICE, Meter())
