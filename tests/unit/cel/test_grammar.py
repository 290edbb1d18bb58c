"""The extended grammar still fits the installed cel-python."""

from __future__ import annotations

from dra_operator.cel import grammar


def test_every_replacement_is_found_in_the_packages_grammar() -> None:
    assert "member_opt" in grammar.extended()


def test_no_old_string_terminal_is_left() -> None:
    assert [line for line in grammar.extended().splitlines() if line.startswith("STRING_LIT ")] == [
        "STRING_LIT : _SHORT | /[rR]/ _RAW_SHORT"
    ]
