"""Markdown out of values: the few forms that the pages need."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def generated(source: str) -> str:
    """The note for whoever would edit the page: where its text comes from."""
    return f"<!-- Written by `make docs` out of {source}. Edit there. -->"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a bar in a cell is escaped."""
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def block(language: str, text: str) -> str:
    """A block of code."""
    return f"```{language}\n{text.rstrip()}\n```"


def joined(*parts: str) -> str:
    """Paragraphs, tables and blocks as a whole page."""
    return "\n\n".join(part.strip() for part in parts) + "\n"
