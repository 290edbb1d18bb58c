"""Macros: what they become, what they refuse, what they make of errors inside."""

from __future__ import annotations

import re

import pytest

from dra_operator.errors import CelCompileError, CelRuntimeError

from .build import matches

TRUE = [
    "[1, 2].exists(i, v, i + 1 == v && v == 2)",
    "[1, 2, 3].all(i, v, i + 1 == v)",
    "[1, 2, 3].existsOne(i, v, i == 1)",
    "[1, 2, 3].exists_one(i, v, v == 3)",
    "{'a': 1}.exists(k, v, k == 'a' && v == 1)",
    "[1, 2, 3].transformList(i, v, i * v) == [0, 2, 6]",
    "[1, 2, 3].transformList(i, v, v > 1, i * v) == [2, 6]",
    "{'a': 1}.transformList(k, v, k) == ['a']",
    "{'a': 1}.transformMap(k, v, v + 1) == {'a': 2}",
    "{'a': 1, 'b': 2}.transformMap(k, v, v > 1, v + 1) == {'b': 3}",
    "[5, 6].transformMap(i, v, v) == {0: 5, 1: 6}",
    "{'a': 1}.transformMapEntry(k, v, {v: k}) == {1: 'a'}",
    "[7, 7].transformMapEntry(i, v, i == 0, {v: i}) == {7: 0}",
    "$a.numbers.transformList(i, v, v - i) == [1, 1, 1]",
    "device.attributes.exists(domain, names, domain == 'gpu.example.com' && names.exists(n, v, n == 'index' && v == 3))",
    "device.capacity.all(domain, names, names.size() > 0)",
    "[3, 1, 2].sortBy(x, -x) == [3, 2, 1]",
    "$a.names.sortBy(x, x == 'a') == ['b', 'a']",
    "[1].all((x), x == 1)",
    "[1].map(optional, optional.of(1).value()) == [1]",
    "[1].map(device, .device.driver) == ['gpu.example.com']",
]


@pytest.mark.parametrize("expression", TRUE)
def test_true_upstream(expression: str) -> None:
    assert matches(expression)


REFUSED = {
    "[1].exists(i, i, true)": "1:15: duplicate variable name: i",
    "[1].exists(i, 1, true)": "1:15: argument must be a simple name",
    "[1].exists(a.b, i, true)": "1:13: argument must be a simple name",
    "[1].exists(i, __result__, true)": "1:15: iteration variable overwrites accumulator variable",
    "[1].map(1, true)": "1:9: argument is not an identifier",
    "[1].filter(__result__, true)": "1:12: iteration variable overwrites accumulator variable",
    "cel.bind(1, 2, 3)": "1:10: cel.bind() variable names must be simple identifiers",
    "optional.of(1).optFlatMap(x.y, 2)": "1:28: optFlatMap() variable name must be a simple identifier",
    "{'a': 1}.sortBy(x, x)": "1:1: sortBy can only be applied to a list, identifier, comprehension, call or select expression",
    "[1].sortBy(x, [x])": "1:11: found no matching overload for '@sortByAssociatedKeys' applied to 'list(int).(list(list(int)))'",
    "[1].transformMapEntry(k, v, 1)": "1:22: found no matching overload for 'cel.@mapInsert' applied to '(map(dyn, dyn), int)'",
    "[1].filter(k, 1)": "1:11: found no matching overload for '_?_:_' applied to '(int, list(int), list(int))'",
    "[1].transformList(i, v, i, v)": "1:18: found no matching overload for '_?_:_' applied to '(int, list(int), list(int))'",
    "[1].all(k, v, 1)": "1:15: expected type 'bool' but found 'int'",
    "1.all(k, v, true)": "1:1: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)",
    "[1].existsOne(x, true)": "1:14: undeclared reference to 'existsOne'",
    "[1].transformList(x, x)": "1:18: undeclared reference to 'transformList'",
    "[1].all(.x, .x == 1)": "1:14: undeclared reference to '.x'",
    "has(1)": "1:5: invalid argument to has() macro",
}


@pytest.mark.parametrize(("expression", "message"), REFUSED.items())
def test_refused_where_upstream_points(expression: str, message: str) -> None:
    with pytest.raises(CelCompileError, match=re.escape(message)):
        matches(expression)


FAILS = {
    "[1, 1].transformMapEntry(i, v, {v: i}) == {}": "insert failed: key 1 already exists",
    "[1, 2].transformMapEntry(i, v, {dyn({'a': [1]}): i}) == {}": "insert failed: key {a: [1]} already exists",
    "dyn('a').transformList(k, v, v) == []": "unsupported comprehension range type: types.String",
    "dyn(int).all(k, true)": "got '*types.Type', expected iterable type",
    "[1, 0].exists(i, v, 1 / v > 1)": "division by zero",
    # What was gathered is an error after the first one; a predicate that fails later takes its place, a body does not.
    "[0, 1].filter(v, v == 0 ? [1][v + 7] == 1 : 1 / 0 > 0) == []": "division by zero",
    "[0, 1].map(v, v == 0 ? [1][v + 7] : 1 / 0) == []": "index out of bounds: 7",
    "$a.versions.sortBy(x, x) == []": "list elements must be comparable",
    "[dyn(1), dyn('a')].sortBy(x, x) == []": "list elements must have the same type",
}


@pytest.mark.parametrize(("expression", "message"), FAILS.items())
def test_fails_in_upstreams_words(expression: str, message: str) -> None:
    with pytest.raises(CelRuntimeError, match=re.escape(message)):
        matches(expression)
