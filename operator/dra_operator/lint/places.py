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
from .spots import spots

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
    span = place.value
    known = spots(lines, (span.line, span.column), span.end_line, value[: start + length + 1])
    if start >= len(known):
        line, column = (known[-1].line, known[-1].end) if known else (span.line, span.column + 1)
        return Span(line, column, line, column + 1)
    first = known[start]
    end = next((spot.end for spot in reversed(known[start : start + length]) if spot.line == first.line), 0)
    return Span(first.line, first.start, first.line, max(first.end, end))
