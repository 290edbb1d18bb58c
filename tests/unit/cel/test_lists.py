"""Functions of lists and sets, sorting included, and optionals in lists."""

from __future__ import annotations

import re

import pytest

from dra_operator.errors import CelCompileError, CelRuntimeError

from .build import matches

TRUE = [
    "[1, 2, 3].slice(1, 3) == [2, 3] && [1].slice(1, 1) == []",
    "[[1], [2, 3], []].flatten() == [1, 2, 3] && dyn([1, 2]).flatten() == [1, 2]",
    "[dyn(1), dyn([[2], [3]])].flatten(2) == [1, 2, 3] && [[1]].flatten(0) == [[1]]",
    "lists.range(3) == [0, 1, 2] && lists.range(0) == []",
    "[1, 2].reverse() == [2, 1] && [].reverse() == []",
    "[2, 1, 2, 1].distinct() == [2, 1] && [double('nan'), double('nan')].distinct().size() == 2",
    "[dyn(1), dyn(1.0), dyn(1u), dyn('1'), dyn(true)].distinct().size() == 3",
    "[quantity('1Ki'), quantity('1024')].distinct().size() == 1",
    "[3, 1, 2].sort() == [1, 2, 3] && ['b', 'a'].sort() == ['a', 'b'] && [b'b', b'a'].sort() == [b'a', b'b']",
    "[true, false].sort() == [false, true] && [duration('1h'), duration('1s')].sort()[0] == duration('1s')",
    "$a.numbers.sort() == [1, 2, 3] && [].sort() == []",
    "[1, 2, 2].isSorted() && !['b', 'a'].isSorted() && [].isSorted() && [dyn(1), dyn('a')].isSorted()",
    "[1, 2].sum() == 3 && [1u].sum() == 1u && [0.5, 1.0].sum() == 1.5 && [].sum() == 0",
    "[duration('1h'), duration('1m')].sum() == duration('61m')",
    "[3, 1, 2].min() == 1 && [3, 1, 2].max() == 3 && ['a', 'b'].max() == 'b' && [dyn(1), dyn('a')].max() == 1",
    "[1.0, double('nan')].max() == 1.0 && [dyn(1), dyn(2.5)].max() == 2.5",
    "[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && [1].indexOf(2) == -1",
    "sets.contains([1, 2], [2]) && !sets.contains([1], [1, 2]) && sets.contains([], [])",
    "sets.equivalent([1, 1, 2], [2, 1]) && !sets.equivalent([1], [1, 2])",
    "sets.intersects([1, 2], [2, 3]) && !sets.intersects([1], [2]) && sets.contains([1], [dyn(1.0)])",
    "sets.contains([dyn(quantity('1')), dyn('a')], [dyn('a')])",
    "optional.unwrap([optional.of(1), optional.none()]) == [1] && [optional.of(1)].unwrapOpt() == [1]",
    "lists.range(60).includes(59) && !{'a': 1}.includes('a') && null.includes(null)",
]


@pytest.mark.parametrize("expression", TRUE)
def test_true_upstream(expression: str) -> None:
    assert matches(expression)


FAILS = {
    "[1].slice(-1, 1)": "cannot slice(-1, 1), negative indexes not supported",
    "[1].slice(1, 0)": "cannot slice(1, 0), start index must be less than or equal to end index",
    "[1].slice(0, 2)": "cannot slice(0, 2), list is length 1",
    "[1].flatten(-1)": "level must be non-negative",
    "dyn({'a': 1}).flatten()": "no such overload: map(dyn, dyn).flatten()",
    "dyn('a').flatten(1)": "no such overload: string.flatten(int)",
    "dyn([1]).flatten(dyn('a'))": "internal error: interface conversion: ref.Val is types.String, not types.Int",
    "lists.range(-1)": "lists.range: size must be non-negative, got -1",
    "lists.range(1000001)": "lists.range: size 1000001 exceeds maximum allowed (1000000)",
    "[dyn(1), dyn(2u)].sort()": "list elements must have the same type",
    "dyn([quantity('1')]).sort()": "list elements must be comparable",
    "dyn({'a': 1}).sort()": "no such overload: sort",
    "[dyn(1), dyn(quantity('1'))].isSorted()": "no such overload",
    "[9223372036854775807, 1].sum()": "integer overflow",
    "[dyn(1.0), dyn(1)].sum()": "no such overload",
    "dyn(['a']).sum()": "no such overload: sum(list)",
    "[].min()": "min called on empty list",
    "sets.contains(dyn('a'), [1])": "no such overload: sets.contains(string, list)",
    "[dyn(optional.of(1)), dyn(1)].unwrapOpt()": "value 1 is not optional",
    # Only the first member is looked at before a function is called.
    "dyn([1]).unwrapOpt()": "no such overload: unwrapOpt(list)",
    "dyn(1).path('x')": "no such overload: path(int, string)",
}


@pytest.mark.parametrize(("expression", "message"), FAILS.items())
def test_fails_in_upstreams_words(expression: str, message: str) -> None:
    with pytest.raises(CelRuntimeError, match=f"{re.escape(message)}$"):
        matches(f"dyn({expression}) == 1")


REFUSED = {
    "[1].flatten() == []": "found no matching overload for 'flatten' applied to 'list(int).()'",
    "[quantity('1')].sort() == []": "found no matching overload for 'sort' applied to 'list(kubernetes.Quantity).()'",
    "sets.contains([1], ['a'])": "found no matching overload for 'sets.contains' applied to '(list(int), list(string))'",
    "'abc'.reverse() == ''": "found no matching overload for 'reverse' applied to 'string.()'",
    "math.abs(1) == 1": "undeclared reference to 'math'",
}


@pytest.mark.parametrize(("expression", "message"), REFUSED.items())
def test_refused_in_upstreams_words(expression: str, message: str) -> None:
    with pytest.raises(CelCompileError, match=re.escape(message)):
        matches(expression)


SORTED = {
    "lists.range(20).sortBy(x, x / 10)": [
        0,
        1,
        2,
        3,
        4,
        5,
        6,
        7,
        8,
        9,
        10,
        11,
        12,
        13,
        14,
        15,
        16,
        17,
        18,
        19,
    ],
    "lists.range(60).sortBy(x, x % 3)": [
        21,
        57,
        54,
        3,
        51,
        48,
        6,
        45,
        42,
        9,
        39,
        36,
        12,
        33,
        0,
        15,
        30,
        27,
        18,
        24,
        31,
        10,
        22,
        58,
        19,
        25,
        1,
        55,
        28,
        52,
        16,
        4,
        49,
        13,
        34,
        46,
        7,
        37,
        43,
        40,
        50,
        41,
        8,
        38,
        44,
        11,
        35,
        47,
        32,
        5,
        29,
        14,
        20,
        53,
        2,
        17,
        56,
        26,
        23,
        59,
    ],
    "lists.range(55).sortBy(x, (x * 37) % 5)": [
        10,
        30,
        50,
        25,
        20,
        5,
        45,
        0,
        15,
        35,
        40,
        38,
        53,
        13,
        33,
        8,
        23,
        28,
        18,
        43,
        48,
        3,
        26,
        36,
        1,
        21,
        51,
        46,
        6,
        41,
        16,
        31,
        11,
        39,
        49,
        54,
        14,
        24,
        19,
        34,
        9,
        29,
        4,
        44,
        7,
        17,
        27,
        47,
        42,
        22,
        2,
        32,
        52,
        37,
        12,
    ],
    "lists.range(30).sortBy(x, -(x / 4))": [
        28,
        29,
        24,
        27,
        26,
        25,
        23,
        22,
        21,
        20,
        16,
        19,
        18,
        17,
        14,
        12,
        15,
        13,
        9,
        11,
        10,
        8,
        7,
        6,
        5,
        4,
        0,
        3,
        2,
        1,
    ],
    "lists.range(15).sortBy(x, x % 2 == 0 ? double('nan') : double(x))": [
        0,
        1,
        2,
        3,
        4,
        5,
        6,
        7,
        8,
        9,
        10,
        11,
        12,
        13,
        14,
    ],
}
"""Where keys are equal, Go's sort leaves the elements in the order that it happens to come by; recorded."""


@pytest.mark.parametrize(("expression", "numbers"), SORTED.items())
def test_equal_keys_end_up_where_upstream_leaves_them(expression: str, numbers: list[int]) -> None:
    assert matches(f"{expression} == {numbers}")


CRASHES = {
    "[1].slice(5, 0).sort() == [] || true": "*types.Err is not traits.Lister: missing method Add",
    "dyn('a').distinct() == [] || true": "types.String is not traits.Lister: missing method Contains",
    "dyn(device).distinct() == [] || true": "*types.baseMap is not traits.Lister: missing method Add",
    "[1].sortBy(x, int('a' + $a.model)) == [] || true": "*types.Err is not traits.Lister: missing method Add",
    "dyn([1]).flatten(dyn('a')) == [] || true": "ref.Val is types.String, not types.Int",
    "[1].slice(5, 0) == [1].slice(5, 0).sort() || true": "*types.Err is not traits.Lister: missing method Add",
}
"""Upstream counts some calls by looking at arguments that are no lists: nothing absorbs that."""


@pytest.mark.parametrize(("expression", "message"), CRASHES.items())
def test_upstream_crashes_counting(expression: str, message: str) -> None:
    with pytest.raises(CelRuntimeError, match=re.escape(f"internal error: interface conversion: {message}")):
        matches(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "cel.bind(x, [1].slice(5, 0).sort(), true)",
        "!(false && [1].slice(5, 0).sort() == [])",
        # Which sort it is, is known only when it runs, and then it has no price.
        "$a.missing.sort() == [] || true",
        "[1].slice(5, 0).reverse() == [] || true",
    ],
)
def test_and_does_not_where_it_does_not_count(expression: str) -> None:
    assert matches(expression)


ONLY_ONE = {
    "[$a.numbers].flatten().map(x, string(x)) == ['1']": "no such overload: string(int)",
    "[$a.names].flatten().isSorted()": "no such overload: isSorted(list)",
    "[$a.versions].flatten().exists(x, x.isGreaterThan(x))": "no such overload: isGreaterThan(kubernetes.Semver, kubernetes.Semver)",
}


@pytest.mark.parametrize(("expression", "message"), ONLY_ONE.items())
def test_an_open_type_is_bound_to_the_one_overload_that_was_found(expression: str, message: str) -> None:
    with pytest.raises(CelRuntimeError, match=re.escape(message)):
        matches(expression)
