"""Keys of maps and what stands in brackets, as Go's maps have it; all of it is upstream's behaviour, recorded."""

from __future__ import annotations

import pytest

from dra_operator.errors import CelCompileError, CelRuntimeError

from .build import matches

TRUE = [
    # a later entry takes the place of an earlier one
    '{"a": 1, "a": 2}["a"] == 2',
    '{"a": 1, ?"a": optional.none()}.size() == 0',
    # keys of different types are different keys, and found by numbers of the same value
    "{dyn(1): 1, dyn(1u): 2}.size() == 2",
    "{dyn(1): 1, dyn(1u): 2}[1u] == 2",
    "{1: 1}[dyn(1.0)] == 1 && {1u: 1}[dyn(1)] == 1 && {1: 1}[dyn(1u)] == 1",
    "{1.5: 1}[1.5] == 1",
    "!({true: 1} == dyn({1: 1})) && {1: 1} == dyn({1u: 1})",
    # lists, optionals and quantities are keys, and equal to themselves alone
    "!({[1]: 1} == {[1]: 1})",
    "cel.bind(x, [device.driver], x in {x: 1})",
    "!({optional.none(): 1} == {})",
    # what is no text is not in a domain of the device, be it such as is no key of other maps
    '!(dyn(semver("1.0.0")) in $a) && !(dyn(b"a") in $a) && !(dyn(quantity("1")) in dyn($a)) && !(dyn(1) in $a)',
    # each access to a list or map of the device gives a new one, a variable keeps it
    "{$a.numbers: 1, $a.numbers: 2}.size() == 2 && {$a: 1, $a: 2}.size() == 2",
    "{dyn($a.numbers): 1, [$a.numbers][0]: 2}.size() == 2 && !({$a.numbers: 1} == {$a.numbers: 1})",
    "[1, 2].transformMapEntry(i, v, {$a.numbers: v}).size() == 2 && !($a.numbers in {$a.numbers: 1})",
    "cel.bind(x, $a.numbers, {x: 1, dyn(x): 2}.size() == 1 && x in {x: 1})",
    "cel.bind(m, {$a.numbers: 1}, m == m && m.all(k, k in m))",
    "{device.attributes: 1, device.attributes: 2}.size() == 1 && {$c.memory: 1, $c.memory: 2}.size() == 1",
    '{device.capacity["nope"]: 1, device.capacity["nope"]: 2}.size() == 1',
    '{quantity("1"): 1}.all(q, q == quantity("1"))',
    "{null: 1}.all(k, k == null)",
    # an optional that is not there is not asked for the key
    "optional.none()[1 / 0] == optional.none() && optional.none()[?1 / 0] == optional.none()",
    "dyn(1)[?0] == optional.none()",
    # domains
    "device.attributes[dyn(1)].size() == 0 && !(dyn(1) in device.attributes)",
    '!(semver("1.0.0") in dyn(device.attributes)) && !(b"a" in dyn(device.capacity))',
    # members that cannot be compared count as equal
    '[quantity("1")] == [dyn(1)] && {"a": dyn(quantity("1"))} == {"a": dyn(1)}',
    'quantity("1").add(1) == quantity("2") && quantity("2") != quantity("1").add(1)',
    '!(quantity("2") in [quantity("1").add(1)]) && quantity("1").add(1) in [quantity("2")]',
    # the device is a map
    "device == device && !(device == dyn(1)) && dyn(device).size() == 4",
    'dyn(device).exists(k, k == "driver") && type(dyn(device)) == map',
    # a list of constants is a set; an empty one is not asked
    "!(1 / 0 in [])",
    "dyn(9007199254740992.0) in [9007199254740993]",
    "dyn(1u) in [1] && dyn(1) in [1.0] && dyn(1.0) in [1u]",
    "!(dyn(null) in [1]) && !(dyn([1]) in [1])",
]


@pytest.mark.parametrize("expression", TRUE)
def test_keys(expression: str) -> None:
    assert matches(expression)


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        (
            "{bytes(device.driver): 1} == {}",
            "internal error: runtime error: hash of unhashable type types.Bytes",
        ),
        ('{semver("1.0.0"): 1} == {}', "internal error: runtime error: hash of unhashable type cel.Semver"),
        # upstream panics there, which nothing absorbs
        (
            '{semver("1.0.0"): 1}.size() == 1 || true',
            "internal error: runtime error: hash of unhashable type cel.Semver",
        ),
        (
            "[1].exists(x, {bytes(device.driver): x}.size() == 1) || true",
            "internal error: runtime error: hash of unhashable type types.Bytes",
        ),
        ('dyn(b"a") in [1, 2]', "internal error: runtime error: hash of unhashable type types.Bytes"),
        ("{1: 1}[dyn([device.driver])] == 1", "invalid qualifier type"),
        ('{1: 1}[dyn(quantity("1"))] == 1', "invalid qualifier type"),
        ('quantity("2") == quantity("1").add(1)', "no such overload"),
        ('double(dyn(quantity("1"))) == 1.0', "no such overload: double"),
    ],
)
def test_what_cannot_be_a_key_fails(expression: str, error: str) -> None:
    with pytest.raises(CelRuntimeError, match=error):
        matches(expression)


@pytest.mark.parametrize(
    "expression", ["{null: 1}[null] == 1", "{type(1): 1}[int] == 1", "dyn({})[?[1]] == optional.none()"]
)
def test_constants_that_no_container_is_indexed_by_do_not_compile(expression: str) -> None:
    with pytest.raises(CelCompileError, match="program instantiation failed: invalid qualifier type"):
        matches(expression)


@pytest.mark.parametrize(
    "expression",
    ["bool(dyn(1))", "int(dyn([1])) == 1", 'uint(dyn("a")) == 1u', 'double(dyn({"a": 1})) == 1.0'],
)
def test_conversions_of_constants_behind_dyn_are_computed_at_once(expression: str) -> None:
    with pytest.raises(CelCompileError, match="program instantiation failed"):
        matches(expression)


@pytest.mark.parametrize(
    "expression",
    ["optional.none().value() - dyn(1)", "[][0] + [][0]", "-optional.none().value()", "[][0] * dyn(1)"],
)
def test_an_open_type_becomes_that_of_the_first_overload_that_fits(expression: str) -> None:
    """Upstream's first ones are of doubles and bytes, which are no attributes."""
    with pytest.raises(
        CelCompileError, match=r"must evaluate to bool or the unknown type, not (double|bytes)"
    ):
        matches(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "cel.bind(x, int, x == int)",
        "cel.bind(x, type(device.driver), true)",
        "[int].exists(x, x == int)",
        '{"a": int}.all(k, v, v == int)',
        "optional.of(int).optMap(x, 1).hasValue()",
    ],
)
def test_a_variable_that_is_a_type_is_taken_for_its_name(expression: str) -> None:
    with pytest.raises(
        CelCompileError, match=r"program instantiation failed: reference to undefined type: [xv]"
    ):
        matches(expression)


@pytest.mark.parametrize(
    "expression",
    ["[int].exists(x, true)", "cel.bind(x, dyn(int), x == int)"],
)
def test_a_variable_that_is_a_type_is_fine_where_nobody_asks_for_it(expression: str) -> None:
    assert matches(expression)


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("[?optional.none(), true].flatten(3) == []", "'dyn' but found 'bool'"),
        ("cel.bind(x, [true, [][0]], x.flatten(3) == [])", "'bool' but found 'dyn'"),
    ],
)
def test_a_literal_is_open_until_all_is_checked(expression: str, found: str) -> None:
    with pytest.raises(CelCompileError, match=f"expected type {found}"):
        matches(expression)
