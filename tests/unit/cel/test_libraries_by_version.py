"""Which names new expressions may use at which version of Kubernetes: the newest code, one version back for the sake of a rollback."""

from __future__ import annotations

import pytest

from dra_operator.cel.checking.checks import check
from dra_operator.cel.checking.environment import Environment, new_expressions, stored_expressions
from dra_operator.errors import CelCompileError
from dra_operator.features import Features

SINCE = {
    # Everything of the first Kubernetes with these devices and older.
    "sets.contains([1], [1])": 33,
    "cel.bind(x, 1, x == 1)": 33,
    "quantity('1').isInteger()": 33,
    "[1].isSorted()": 33,
    "'%s'.format(['a']) == 'a'": 33,
    "[optional.of(1)].unwrapOpt() == [1]": 33,
    "[1].all(i, v, true)": 33,
    "[1].transformList(i, v, v) == [1]": 33,
    "dyn(1).fieldSelector('a') == dyn(1)": 33,
    # Version 1.33 brought versions, 1.34 cel-go's lists, 1.37 `includes` without a gate.
    "semver('v1', true).major() == 1": 34,
    "[1].sort() == [1]": 35,
    "[1].sortBy(x, x) == [1]": 35,
    "lists.range(1) == [0]": 35,
    "[[1]].flatten() == [1]": 35,
    "[1].distinct() == [1]": 35,
    "[1].slice(0, 1) == [1]": 35,
    "[1].includes(1)": 38,
}
"""Expression → minor version of the first API server that takes it in a new object."""

GATES = Features(consumable_capacity=True, list_type_attributes=False)


def _takes(environment: Environment, expression: str) -> bool:
    try:
        check(expression, environment)
    except CelCompileError:
        return False
    return True


@pytest.mark.parametrize("minor", [33, 34, 35, 36, 37, 38])
@pytest.mark.parametrize(("expression", "since"), SINCE.items())
def test_new_expressions_of_a_version(expression: str, since: int, minor: int) -> None:
    assert _takes(new_expressions(GATES, (1, minor)), expression) is (minor >= since)


@pytest.mark.parametrize("expression", SINCE)
def test_stored_expressions_have_all(expression: str) -> None:
    assert _takes(stored_expressions(), expression)


@pytest.mark.parametrize("minor", [34, 37])
def test_a_gate_that_is_on_counts_more_than_the_version(minor: int) -> None:
    on = Features(list_type_attributes=True)
    assert _takes(new_expressions(on, (1, minor)), "[1].includes(1)")
    assert not _takes(new_expressions(Features(list_type_attributes=False), (1, minor)), "[1].includes(1)")


def test_the_validators_belong_to_a_version_too() -> None:
    assert _takes(new_expressions(GATES, (1, 29)), "[1, 'a'].size() == 2")
    assert not _takes(new_expressions(GATES, (1, 30)), "[1, 'a'].size() == 2")
