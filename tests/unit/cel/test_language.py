"""What expressions mean: operators, logic, comprehensions, optionals, literals (CEL language definition)."""

from __future__ import annotations

import pytest

from dra_operator.errors import CelRuntimeError

from .build import matches

TRUE = [
    # equality over types that only the device tells
    "$a.index == 3",
    "$a.index == 3.0",
    "$a.index == 3u",
    '$a.index != "3"',
    '!($a.index == "3")',
    "$a.ecc != 1",
    "dyn(1) == 1.0",
    "$a.numbers == [1, 2, 3]",
    "null == null",
    '{"a": 1} == {"a": 1}',
    "type($a.index) == int && type($a.model) == string && type($a.numbers) == list",
    # order
    "$a.index > 2.5",
    "$a.index >= 3u",
    '$a.model < "b"',
    "1 < 2.5 && 2u > 1 && false < true",
    'b"a" < b"b"',
    # arithmetic
    "$a.index + 1 == 4 && $a.index - 5 == -2 && $a.index * 2 == 6",
    "-7 / 2 == -3 && -7 % 2 == -1 && 7 % -2 == 1",
    "1.0 / 0.0 > 1.0",
    "7u / 2u == 3u && 7u % 4u == 3u && 1u + 2u * 3u - 1u == 6u",
    "--1 == 1 && -$a.index == -3",
    "0.5 + 0.25 == 0.75 && 1.5 - 0.5 == 1.0 && 2.0 * 3.0 == 6.0",
    # logic absorbs errors
    "true || $a.missing",
    "$a.missing || true",
    "!($a.missing && false)",
    "$a.missing == 1 || $a.index == 3",
    "$a.ecc ? true : $a.missing",
    # membership
    "2 in $a.numbers && !(4 in $a.numbers) && 2.0 in $a.numbers",
    '"model" in $a && !("missing" in $a)',
    '"a" in {"a": 1} && !(true in {dyn(1): 1})',
    # comprehensions
    "[1, 2, 3].exists(x, x > 2) && [1, 2, 3].all(x, x > 0)",
    "[1, 2, 3].exists_one(x, x > 2) && [1, 2].existsOne(i, x, x == 1)",
    "[1, 2, 3].map(x, x * 2) == [2, 4, 6]",
    "[1, 2, 3].map(x, x > 1, x * 2) == [4, 6]",
    "[1, 2, 3].filter(x, x > 1) == [2, 3]",
    '{"a": 1}.all(k, k == "a")',
    '$a.exists(name, name == "model")',
    "[1, 0].exists(x, 1 / x > 0)",
    "![0, 1].all(x, 1 / x < 0)",
    "[[1, 2], [3]].exists(l, l.exists(x, x == 3))",
    "[].all(x, x > 1) && ![].exists(x, x > 1)",
    "[1].exists(device, device == 1)",
    "cel.bind(x, 5, x * x == 25)",
    "cel.bind(x, $a.missing, true)",
    # fields and optionals
    "has(device.driver) && has($a.model) && !has($a.missing) && !has($a.model.deeper)",
    '$a.?model.orValue("z") == "a100-sxm" && $a.?missing.orValue("z") == "z"',
    '$a[?"missing"].orValue(5) == 5',
    'device.attributes[?"nope"].?x.orValue(true)',
    "device.?driver.hasValue() && !$a.?missing.hasValue()",
    "$a.?index.orValue($a.missing) == 3",
    '$a.?missing.or($a.?model).orValue("q") == "a100-sxm"',
    "$a.?index.optMap(x, x * 2).orValue(0) == 6",
    "$a.?index.optFlatMap(x, optional.none()).orValue(1) == 1",
    "optional.of(1).value() == 1 && !optional.ofNonZeroValue(0).hasValue()",
    "[?optional.of(1), ?optional.none()] == [1]",
    '{?"a": optional.of(1), ?"b": optional.none()} == {"a": 1}',
    "!([1, 2][?5].hasValue())",
    "[1, 2].first().value() == 1 && !([].last().hasValue())",
    '$a.`model` == "a100-sxm"',
    # literals
    '"\\x41\\u0042\\103" == "ABC"',
    "'single' == \"single\"",
    'r"\\d" == "\\\\d"',
    '"""multi\nline""" == "multi\\nline"',
    'b"\\xff\\103" == b"\\377C"',
    "0x1F == 31 && 0x1fu == 31u && 1e3 == 1000.0 && .5 == 0.5",
    "-9223372036854775808 < 0",
    "[1, 2,][1] == 2",
    "// a comment\ntrue",
    # conversions
    'int("12") == 12 && int(2.9) == 2 && uint(3) == 3u && double(1) == 1.0',
    'string(12) == "12" && string(1.5) == "1.5" && string(1e6) == "1e+06" && string(true) == "true"',
    'bool("true") && string(b"a") == "a" && bytes("a") == b"a"',
    'type(1) == int && type("") == string && type(type(1)) == type',
    # sizes
    'size($a.uni) == 5 && $a.numbers.size() == 3 && size({1: 2}) == 1 && size(b"ab") == 2',
]  # fmt: skip


@pytest.mark.parametrize("expression", TRUE)
def test_holds(expression: str) -> None:
    assert matches(expression) is True


ERRORS = {
    "$a.missing": "no such key: missing",
    '$a["missing"] == 1': "no such key: missing",
    "$a.missing || false": "no such key: missing",
    "$a.missing ? true : false": "no such key: missing",
    '$a.model["x"] == 1': "no such key: x",
    "$a.numbers[7] == 1": "index out of bounds: 7",
    '$a.numbers["x"] == 1': "unsupported index type 'string' in list",
    "$a.index": "CEL result of type int could not be converted to bool",
    "$a.numbers": "CEL result of type list could not be converted to bool",
    "$a.index / 0 == 1": "division by zero",
    "$a.index % 0 == 1": "modulus by zero",
    "9223372036854775807 + $a.index > 0": "integer overflow",
    "-9223372036854775808 / (2 - $a.index) > 0": "integer overflow",
    "0u - uint($a.index) > 0u": "unsigned integer overflow",
    "$a.index > 'a'": "no such overload",
    "$a.numbers > 1": "no such overload: _>_",
    "$a.model + 1 == 2": "no such overload",
    "$a.index.lowerAscii() == 'x'": r"no such overload: lowerAscii\(int\)",
    "1 in $a.model": "no such overload",
    "$a.model ? true : false": "no such overload",
    "$a.model && true": "no such overload",
    "$a.model.exists(x, x == 'a')": "got 'types.String', expected iterable type",
    "[1, 2].exists(x, x / 0 > 1)": "division by zero",
    "[1].exists_one(x, 1 / 0 > x)": "division by zero",
    "$a.?missing.value() == 1": r"optional.none\(\) dereference",
    "cel.bind(x, $a.missing, x == 1)": "no such key: missing",
    "int($a.model) == 1": "type conversion error from 'string' to 'int'",
    "uint(-$a.index) == 1u": "unsigned integer overflow",
    "0.0 / (double($a.index) - 3.0) < 1.0": "NaN values cannot be ordered",
}


@pytest.mark.parametrize(("expression", "message"), ERRORS.items())
def test_fails_on_this_device_in_upstreams_words(expression: str, message: str) -> None:
    """Alloc L-4."""
    with pytest.raises(CelRuntimeError, match=message):
        matches(expression)


NO_BOOL = {
    "1": "unsupported type conversion from 'int' to bool",
    "1u": "unsupported type conversion from 'uint' to bool",
    "1.5": "type conversion error from Double to 'bool'",
    "$a.model": "unsupported native conversion from string to 'bool'",
    "b'x'": "type conversion error from Bytes to 'bool'",
    "null": "type conversion error from 'null_type' to 'bool'",
    "$a.numbers": "type conversion error from list to 'bool'",
    "{'a': 1}": "type conversion error from map to 'bool'",
    "device": "type conversion error from map to 'bool'",
    "duration('1s')": "type conversion error from 'Duration' to 'bool'",
    "semver('1.0.0')": "type conversion error from 'Semver' to 'bool'",
    "type(1)": "type conversion not supported for 'type'",
    "optional.none()": "optional.none() dereference",
    "optional.of('x')": "unsupported native conversion from string to 'bool'",
    "optional.of(optional.of(1))": "unsupported type conversion from 'int' to bool",
}


@pytest.mark.parametrize("expression", NO_BOOL)
def test_what_is_no_bool_is_told_in_upstreams_words_for_its_type(expression: str) -> None:
    """Alloc L-4."""
    with pytest.raises(CelRuntimeError) as caught:
        matches(f"dyn({expression})")
    assert str(caught.value).endswith(f" could not be converted to bool: {NO_BOOL[expression]}")


@pytest.mark.parametrize("value", [True, False])
def test_a_bool_in_an_optional_of_open_type_is_taken_as_upstream_takes_it(value: bool) -> None:  # noqa: FBT001 -- the value
    inner = "$a.index == 3" if value else "$a.index == 4"
    assert matches(f"dyn(optional.of({inner}))") is value
    assert matches(f"dyn(optional.of(optional.of({inner})))") is value


def test_a_missing_key_comes_with_advice() -> None:
    """Alloc L-5."""
    with pytest.raises(CelRuntimeError) as caught:
        matches("$a.missing == 1")
    assert str(caught.value) == (
        "no such key: missing. consider using CEL optional chaining (.? followed by orValue()) or guarding the check with "
        "has() for optional fields"
    )


def test_long_chains_of_logic_do_not_nest() -> None:
    assert matches(" && ".join(["true"] * 1000)) is True
    assert matches(" || ".join(["false"] * 1000)) is False
