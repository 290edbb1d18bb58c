"""Findings as text with carets, and as annotations of GitHub's workflows."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from dra_operator.lint import Finding
from dra_operator.lint.report import as_github, text


def finding(source: str, start: int, length: int, **others: str) -> Finding:
    fields = {"code": "CelInvalid", "file": "made.yaml", "message": "is wrong", "remedy": "", "name": "made", "path": "", **others}  # fmt: skip
    return Finding(
        line=7, column=start + 1, end_column=start + length + 1, kind="Kind", namespace="", source=source, **fields
    )  # fmt: skip


@pytest.mark.parametrize(
    ("before", "wrong"),
    [
        ("", "wrong"),
        ("a: ", "wrong"),
        ("\ta:\t", "wrong"),
        ("\u6f22\u5b57: ", "wrong"),
        ("a: ", "\u6f22\u5b57"),
        ("\U0001f600\U0001f600: ", "\U0001f600"),
        ("e\u0301e\u0301: ", "wrong"),
        ("\uff21\uff22: ", "wro\uff2eg"),
        ("a\u200db: ", "wrong"),
        ("\u6f22" * 300 + ": ", "wrong"),
        ("a: \x1b[31m", "wrong"),
        ("a\u202eb\ufeff\x85: ", "wrong"),
    ],
)
def test_carets_are_below_what_is_wrong_whatever_its_characters_are_wide(before: str, wrong: str) -> None:
    shown = text([finding(f"{before}{wrong} after", len(before), len(wrong))]).plain.split("\n")

    line, carets = shown[2], shown[3]
    start = line.rindex(wrong)
    assert cell_len(carets.rstrip("^")) == cell_len(line[:start])
    assert carets.count("^") == cell_len(wrong)


@pytest.mark.parametrize("before", ["", "  ", "\t- ", "\u6f22: "])
def test_a_tab_that_is_wrong_is_seen(before: str) -> None:
    line, carets = text([finding(f"{before}\t\ta: 1\tb", len(before), 2)]).plain.split("\n")[2:4]

    assert line.endswith("→→a: 1 b")
    assert line.count("→") == carets.count("^")
    assert carets.index("^") == cell_len(line[: line.index("→")])


def test_a_caret_behind_the_end_of_a_line_is_there() -> None:
    line, carets = text([finding("\u6f22: ", 3, 1)]).plain.split("\n")[2:4]

    assert carets.index("^") == cell_len(line)


@pytest.mark.parametrize(
    "hidden", ["\x1b[2J", "\r", "\b", "\x9b", "\u202e", "\u2066", "\u2028", "\x00", "\x85"]
)
@pytest.mark.parametrize("field", ["message", "remedy", "name", "path", "file", "source"])
def test_what_a_terminal_obeys_is_shown_and_not_sent(hidden: str, field: str) -> None:
    one = {"source": "a: wrong", field: f"a{hidden}b"}
    shown = text([finding(one.pop("source"), 0, 1, **one)]).plain

    assert hidden not in shown
    assert f"a{hidden.encode('unicode_escape').decode()}b" in shown


def test_what_could_not_be_read_has_no_line_to_be_shown() -> None:
    shown = text([finding("", 0, 1, code="Unreadable", remedy="correct it")]).plain

    assert shown == "made.yaml:7:1: error: Unreadable: Kind made\n  is wrong\n  correct it\n"


@pytest.mark.parametrize(
    ("value", "in_text", "in_property"),
    [
        ("100%", "100%25", "100%25"),
        ("a\nb\r\nc", "a%0Ab%0D%0Ac", "a%0Ab%0D%0Ac"),
        ("a,b:c", "a,b:c", "a%2Cb%3Ac"),
        ("%0A", "%250A", "%250A"),
        ("::error::x", "::error::x", "%3A%3Aerror%3A%3Ax"),
    ],
)
def test_annotations_escape_what_github_reads(value: str, in_text: str, in_property: str) -> None:
    shown = as_github([finding("", 0, 1, message=value, name=value, file=value)])

    assert shown == (
        f"::error file={in_property},line=7,endLine=7,col=1,endColumn=2,title=CelInvalid%3A Kind {in_property}::{in_text}"
    )


def test_annotations_of_stdin_name_no_file() -> None:
    assert as_github([finding("", 2, 1, file="-")]) == (
        "::error title=CelInvalid%3A Kind made::stdin:7:3: is wrong"
    )


def test_a_message_with_a_value_of_any_length_is_cut() -> None:
    shown = text([finding("", 0, 1, message="x" * 1_000_000)]).plain

    assert len(shown) < 2000
    assert "(1,000,000 characters)" in shown
