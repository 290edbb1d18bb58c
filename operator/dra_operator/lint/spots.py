"""The place of each character of a scalar, however it is written: quoted with escapes and over several lines, plain, or as a block.

Text and places only; it must not know documents.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(frozen=True, slots=True)
class Spot:
    """Where one character of a value is written: from `start` to `end` of a line, all from 0. An escape is as wide as its text."""

    line: int
    start: int
    end: int


_PROPERTIES: Final = re.compile(r"(?:[&!]\S*\s+)*")
"""An anchor and a tag, which stand before the value."""

_PAIR: Final = r"u[dD][89abAB][\dA-Fa-f]{2}\\u[dD][c-fC-F][\dA-Fa-f]{2}"
"""Of JSON, for one character."""

_UNITS: Final = {
    '"': re.compile(
        rf'(?P<end>")|(?P<joined>\\\r?$)|(?P<blank>\s+$)|\\(?:{_PAIR}|x[\dA-Fa-f]{{2}}|u[\dA-Fa-f]{{4}}|U[\dA-Fa-f]{{8}}|.)|.'
    ),
    "'": re.compile(r"(?P<joined>(?!))|(?P<blank>\s+$)|''|(?P<end>')|."),
}
"""Quote → what stands between two such: its end, ends of lines, or one character."""


def spots(lines: Sequence[str], start: tuple[int, int], last: int, value: str) -> list[Spot]:
    """The places of the characters of a value, as far as they can be told.

    Args:
        lines: of the file.
        start: line and column of the scalar.
        last: its last line.
        value: what it says, or the beginning of that.
    """
    line, column = start
    if line < len(lines):
        found = _PROPERTIES.match(lines[line], column)
        column = found.end() if found else column
        first = lines[line][column : column + 1]
        if first in _UNITS:
            quoted = _quoted(lines[: last + 1], line, column + 1, _UNITS[first])
            return [spot for spot, _ in zip(quoted, value, strict=False)]
        if first in {"|", ">"}:
            line, column = line + 1, 0
    return _searched(lines, (line, column), last, value)


def _quoted(lines: Sequence[str], line: int, column: int, unit: re.Pattern[str]) -> Iterator[Spot]:
    """Each character between quotes. A line's end is a space, or as many line feeds as empty lines follow; blanks around it are nothing."""
    while line < len(lines):
        joined, end = False, len(lines[line])
        for found in unit.finditer(lines[line], column):
            if found["end"]:
                return
            if found["joined"] or found["blank"]:
                joined, end = bool(found["joined"]), found.start()
                break
            yield Spot(line, found.start(), found.end())
        following = line + 1
        while following < len(lines) and not lines[following].strip():
            yield Spot(following, 0, 1)
            following += 1
        if not joined and following == line + 1:
            yield Spot(line, end, end + 1)
        line = following
        column = len(lines[line]) - len(lines[line].lstrip()) if line < len(lines) else 0


def _searched(lines: Sequence[str], at: tuple[int, int], last: int, value: str) -> list[Spot]:
    """Without quotes: each character is looked for behind the one before it, past indentation."""
    line, column = at
    found = []
    for character in value:
        if character.isspace():
            found.append(Spot(line, column, column + 1))
            if character == "\n" or line >= len(lines):
                continue
            column += lines[line][column : column + 1] == character
            continue
        spot = _next(lines, last, (line, column), character)
        if spot is None:
            break
        found.append(spot)
        line, column = spot.line, spot.end
    return found


def _next(lines: Sequence[str], last: int, at: tuple[int, int], character: str) -> Spot | None:
    line, column = at
    while line < len(lines) and line <= last:
        found = lines[line].find(character, column)
        if found >= 0:
            return Spot(line, found, found + 1)
        line, column = line + 1, 0
    return None
