"""Rows as text, ages as kubectl tells them, and label selectors as one types them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dra_operator.cli.labels import read
from dra_operator.cli.shown import Column, age, print_table, show

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


class Row:
    def __init__(self, name: str) -> None:
        self.name = name

    def to_object(self) -> dict[str, Any]:
        return {"name": self.name, "size": 2}


COLUMNS = (Column[Row]("NAME", lambda row: row.name), Column[Row]("SIZE", lambda _: "2", wide=True))


def shown(capsys: pytest.CaptureFixture[str], output: str, *names: str) -> tuple[str, str]:
    show([Row(name) for name in names], COLUMNS, output, lambda row: f"row/{row.name}", "Nothing.")
    return capsys.readouterr()


def test_a_table_is_aligned_without_blanks_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("NAME", "X"), (("a", "1"), ("long-name", "")))

    assert capsys.readouterr().out == "NAME        X\na           1\nlong-name\n"


def test_letters_of_two_cells_are_counted_as_two(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("N", "X"), (("名前", "1"), ("ab", "2")))

    assert capsys.readouterr().out == "N      X\n名前   1\nab     2\n"


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("table", "NAME\na\n"),
        ("wide", "NAME   SIZE\na      2\n"),
        ("name", "row/a\n"),
        ("json", '[\n  {\n    "name": "a",\n    "size": 2\n  }\n]\n'),
        ("yaml", "- name: a\n  size: 2\n"),
    ],
)
def test_rows_are_shown_in_each_form(capsys: pytest.CaptureFixture[str], output: str, text: str) -> None:
    assert shown(capsys, output, "a") == (text, "")


@pytest.mark.parametrize(
    ("output", "text"),
    [("table", ("", "Nothing.\n")), ("name", ("", "")), ("json", ("[]\n", "")), ("yaml", ("[]\n", ""))],
)
def test_nothing_is_said_where_only_people_read_it(
    capsys: pytest.CaptureFixture[str], output: str, text: tuple[str, str]
) -> None:
    assert shown(capsys, output) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (47 * 3600, "47h"),
        (48 * 3600, "2d"),
        (800 * 86400, "2y"),
    ],
)
def test_ages_are_told_in_the_unit_that_suits(seconds: int, text: str) -> None:
    since = (NOW - timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")

    assert age(since, NOW) == text


def test_an_age_that_is_not_known_is_empty() -> None:
    assert age("", NOW) == ""


@pytest.mark.parametrize(
    ("text", "labels", "meets"),
    [
        ("", {}, True),
        ("a=b", {"a": "b"}, True),
        ("a==b", {"a": "b"}, True),
        ("a=b", {"a": "c"}, False),
        ("a!=b", {}, True),
        ("a!=b", {"a": "b"}, False),
        ("a", {"a": ""}, True),
        ("a", {}, False),
        ("!a", {}, True),
        ("! a", {"a": "x"}, False),
        ("a in (b, c)", {"a": "c"}, True),
        ("a in (b,c)", {"a": "d"}, False),
        ("a notin (b,c)", {}, True),
        ("a notin (b,c)", {"a": "c"}, False),
        ("a in (b,c),example.com/d=e", {"a": "b", "example.com/d": "e"}, True),
        ("a in (b,c),example.com/d=e", {"a": "b"}, False),
        ("a=", {"a": ""}, True),
    ],
)
def test_label_selectors_mean_what_they_mean_to_kubectl(
    text: str, labels: dict[str, str], *, meets: bool
) -> None:
    assert read(text).matches(labels) is meets


@pytest.mark.parametrize("text", ["a=b=c", "a b", ",", "a in b", "=b", "a in (b"])
def test_what_is_no_label_selector_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match=r"selects no labels; write a=b"):
        read(text)
