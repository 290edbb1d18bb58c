"""What makes an expression too costly, and what to write instead."""

from __future__ import annotations

import pytest

from dra_operator.lint import Finding, documents, look
from tests.mistakes import selecting

A = 'device.attributes["gpu.test"]'
UNKNOWN = "does not know how long a value out of an optional one"
INSTEAD = f"write `has({A}.x) && {A}.x.matches(…)`"
BESIDE = f"write `has({A}.x) && …`, and `{A}.x` in the place"


def finding(expression: str) -> tuple[Finding, str]:
    """The only finding, and what it is under."""
    (found,) = look(documents("made.yaml", selecting(f"'{expression}'")))
    return found, found.source[found.column - 1 : found.end_column - 1]


@pytest.mark.parametrize(
    ("expression", "part", "words"),
    [
        (f'{A}.?x.orValue("").matches("a")', "matches", INSTEAD),
        (f'{A}.?x.orValue("").contains("a")', "contains", "`contains` as if it had no end"),
        (f'{A}.?x.orValue("").lowerAscii() == "a"', "lowerAscii", UNKNOWN),
        (f'{A}[?"x"].orValue("").matches("a")', "matches", INSTEAD),
        (f'{A}.?x.or({A}.?y).orValue("").matches("a")', "matches", INSTEAD),
        (f'{A}.?x.optMap(v, v.matches("a")).orValue(false)', "matches", BESIDE),
        (f'cel.bind(v, {A}.?x.orValue(""), v.matches("a"))', "matches", BESIDE),
        (f'dyn({A}.?x.orValue("")).matches("a")', "matches", INSTEAD),
        (f'{A}.y.matches({A}.?x.orValue(""))', "matches", BESIDE),
        (f'"a" + {A}.?x.orValue("") == "a"', "+", BESIDE),
        (f'{A}.?x.orValue("").split(",").all(v, v == "a")', "split", UNKNOWN),
        (f'[1, 2].all(v, {A}.?x.orValue("").matches("a"))', "matches", INSTEAD),
        (f'{A}.y == "b" || {A}.?x.orValue("").matches("a")', "matches", INSTEAD),
        ('device.attributes.?x.orValue({}).all(k, k == "a")', "all", "ask with `has(…)`"),
        (f'{A}.y.split(",").exists(v, v.matches("a"))', "matches", "how long `v` is, an element of a list"),
        (f'{A}.y.split(",")[0].matches("a")', "matches", "use the attribute as it is"),
        (f"{A}.all(a, {A}.all(b, {A}.all(c, {A}.all(d, {A}[a] == {A}[b]))))", "all", "round up to 32 times"),
        ("lists.range(100000000).all(v, v > 0)", "range", "`range` alone"),
        (" && ".join([f"{A}.all(a, {A}.all(b, {A}[a] == {A}[b]))"] * 60), "&", "as several selectors"),
        (" || ".join([f"{A}.all(a, {A}.all(b, {A}[a] == {A}[b]))"] * 60), "|", "use fewer"),
    ],
)  # fmt: skip
def test_what_makes_an_expression_costly_is_told_where_it_stands(
    expression: str, part: str, words: str
) -> None:
    found, shown = finding(expression)

    assert (found.code, found.message) == ("CelTooCostly", "Forbidden: too complex, exceeds cost limit")
    assert shown == part
    assert words in found.remedy


@pytest.mark.parametrize(
    "use", ['matches("a")', 'contains("a")', 'lowerAscii() == "a"', 'split(",").size() == 2']
)
def test_what_is_advised_is_not_too_costly(use: str) -> None:
    found, _ = finding(f'{A}.?x.orValue("").{use}')
    name = use.partition("(")[0]
    advised = found.remedy.partition("write `")[2].rstrip("`").replace(f"{name}(…)", use)

    assert advised == f"has({A}.x) && {A}.x.{use}"
    assert look(documents("made.yaml", selecting(f"'{advised}'"))) == []
