"""What an expression looks up, and what it insists on."""

from __future__ import annotations

import pytest

from dra_operator.lint.lookups import facts


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('device.attributes["d"].a == 1', {("attributes", "d", ""), ("attributes", "d", "a")}),
        ('device.capacity["d"]["a"].isInteger()', {("capacity", "d", ""), ("capacity", "d", "a")}),
        ('has(device.attributes["d"].a)', {("attributes", "d", ""), ("attributes", "d", "a")}),
        ('"a" in device.attributes["d"]', {("attributes", "d", ""), ("attributes", "d", "a")}),
        ('device.attributes["d"].?a.orValue(1) == 1', {("attributes", "d", ""), ("attributes", "d", "a")}),
        ('cel.bind(x, device.attributes["d"], x.a == 1)', {("attributes", "d", ""), ("attributes", "d", "a")}),
        ("device.attributes[device.driver].a == 1", set()),
        ("device.attributes.exists(d, d == 'x')", set()),
        ("device.driver ==", set()),
    ],
)  # fmt: skip
def test_lookups(expression: str, expected: set[tuple[str, str, str]]) -> None:
    assert {(one.map, one.domain, one.name) for one in facts(expression).lookups} == expected


@pytest.mark.parametrize(
    ("expression", "guarded"),
    [
        ('device.attributes["d"].a == 1', False),
        ('has(device.attributes["d"].a) && device.attributes["d"].a == 1', True),
        ('device.attributes["d"].a == 1 || "a" in device.attributes["d"]', True),
        ('device.attributes["d"].?a.orValue(1) == 1', True),
        ('device.attributes["d"][?"a"].hasValue()', True),
    ],
)
def test_guards_are_seen(expression: str, guarded: bool) -> None:  # noqa: FBT001 -- what is expected
    (lookup,) = [one for one in facts(expression).lookups if one.name]

    assert lookup.guarded is guarded
    assert expression[lookup.start : lookup.start + lookup.length] == "a"


def test_only_what_has_to_hold_is_insisted_on() -> None:
    found = facts('device.driver == "d" && (1 == device.attributes["d"].a && (device.driver == "x" || true))')

    assert [(one.what, one.value) for one in found.equalities] == [("driver", "d"), ("d/a", 1)]
    assert not found.denials
    assert facts('device.driver == "d" && false').denials == (24,)
