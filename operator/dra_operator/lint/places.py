"""Where values stand in a file, and parts of strings in them, however they are written: looked for when asked, as hardly any of them is.

It must not judge what stands there.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

import yaml

from .scalars import MERGE, key_of

if TYPE_CHECKING:
    from collections.abc import Sequence

Step = str | int
Path = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a file: from (line, column) to (end_line, end_column), all from 0; the end is not part of it."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value stands, and its key.

    Attributes:
        value: of the value.
        key: of its key; of the value itself for items of lists.
        scalar: whether the value is one.
    """

    value: Span
    key: Span
    scalar: bool


class Places:
    """Where the values of a document stand.

    Args:
        chunk: its text.
        first: line in the file that it begins at.
        shift: columns by which its first line is moved to the right there.
    """

    def __init__(self, chunk: str = "", first: int = 0, shift: int = 0) -> None:
        self.root: yaml.Node | None = None
        self._first = first
        self._shift = shift
        self._starts = [0, *(found.end() for found in re.finditer("\n", chunk))]
        self._members: dict[int, dict[str, tuple[yaml.Node, yaml.Node]]] = {}

    def __contains__(self, path: Path) -> bool:
        return self._found(path) is not None

    def __getitem__(self, path: Path) -> Place:
        place = self.get(path)
        if place is None:
            raise KeyError(path)
        return place

    def get(self, path: Path) -> Place | None:
        """Of the value at a path; None if there is none."""
        found = self._found(path)
        if found is None:
            return None
        key, value = found
        return Place(self.span(value), self.span(key), isinstance(value, yaml.ScalarNode))

    def span(self, node: yaml.Node) -> Span:
        """Of a node."""
        (line, column), (end_line, end_column) = self.at(node.start_mark), self.at(node.end_mark)
        return Span(line, column, end_line, end_column)

    def start(self, node: yaml.Node) -> Span:
        """Of the first line of a node."""
        span = self.span(node)
        end = span.end_column if span.end_line == span.line else span.column + 1
        return Span(span.line, span.column, span.line, end)

    def at(self, mark: yaml.Mark) -> tuple[int, int]:
        """Line and column, by its character alone: to YAML, lines end at more than line feeds."""
        line = bisect_right(self._starts, mark.index) - 1
        return self.moved(line, mark.index - self._starts[line])

    def moved(self, line: int, column: int) -> tuple[int, int]:
        """A place of the text as a place of the file."""
        return self._first + line, column + (0 if line else self._shift)

    def _found(self, path: Path) -> tuple[yaml.Node, yaml.Node] | None:
        """Key (of items of lists the value itself) and value."""
        if self.root is None:
            return None
        found = (self.root, self.root)
        for step in path:
            node = found[1]
            if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
                found = (node.value[step], node.value[step])
            elif isinstance(node, yaml.MappingNode) and step in self._of(node):
                found = self._of(node)[str(step)]
            else:
                return None
        return found

    def _of(self, node: yaml.MappingNode) -> dict[str, tuple[yaml.Node, yaml.Node]]:
        """The members of a mapping; what it merges gives way."""
        known = self._members.get(id(node))
        if known is None:
            known = self._members[id(node)] = {}
            for key, item in reversed(node.value):
                if key.tag == MERGE:
                    others = item.value if isinstance(item, yaml.SequenceNode) else [item]
                    merged = (self._of(one) for one in reversed(others) if isinstance(one, yaml.MappingNode))
                    known.update({name: found for one in merged for name, found in one.items()})
            known.update({key_of(key): (key, item) for key, item in node.value if key.tag != MERGE})
        return known


def part_of(lines: Sequence[str], place: Place, value: str, start: int, length: int) -> Span | None:
    """The place of a part of a string, such as of an expression; None if it cannot be told.

    Args:
        lines: of the file.
        place: of the string.
        value: the string.
        start: of the part, in characters.
        length: of the part, in characters; it ends with its line at the latest.
    """
    if not place.scalar:
        return None
    spots = _spots(lines, place.value, value[: start + length + 1])
    if start >= len(spots):
        line, column = spots[-1] if spots else (place.value.line, place.value.column)
        return Span(line, column + 1, line, column + 2)
    line, column = spots[start]
    last = next((spot for spot in reversed(spots[start : start + length]) if spot[0] == line), (line, column))
    return Span(line, column, line, max(column, last[1]) + 1)


def _spots(lines: Sequence[str], span: Span, value: str) -> list[tuple[int, int]]:
    """The place of each character of a scalar's value: found one after the other in its text, past indentation, quotes, escapes."""
    line, column = span.line, span.column
    if line < len(lines) and lines[line][column : column + 1] in {"|", ">"}:
        line, column = line + 1, 0
    spots = []
    for character in value:
        if character.isspace():
            spots.append((line, column))
            if character == "\n" or line >= len(lines):
                continue
            column += lines[line][column : column + 1] == character
            continue
        found = _next(lines, span, (line, column), character)
        if found is None:
            break
        spots.append(found)
        line, column = found[0], found[1] + 1
    return spots


def _next(lines: Sequence[str], span: Span, at: tuple[int, int], character: str) -> tuple[int, int] | None:
    line, column = at
    while line < len(lines) and line <= span.end_line:
        found = lines[line].find(character, column)
        if found >= 0:
            return line, found
        line, column = line + 1, 0
    return None
