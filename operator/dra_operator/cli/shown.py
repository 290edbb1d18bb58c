"""How rows are shown: as a table, as JSON, as YAML, or as names, the same for all commands that list. It must not know what it shows.

A table is as kubectl prints them: no lines, upper-case headings. What goes to a terminal is folded to its width and coloured; what goes elsewhere is neither.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

import click
import msgspec
import yaml
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .yamls import Quoting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

OUTPUTS: Final = ("table", "wide", "json", "yaml", "name")

WIDE: Final = 10_000
"""Columns of output that goes to no terminal: it must not be cut to a guessed width."""

FOLDED: Final = 1_000
"""Rows up to which a table is fitted to a terminal, which takes a millisecond a row; no one reads longer ones line by line. Arbitrary."""

GAP: Final = "   "

STYLES: Final = {
    "free": "green",
    "in use": "cyan",
    "shared": "blue",
    "tainted": "yellow",
    "blocked": "magenta",
    "unusable": "red",
    "pending": "yellow",
    "deleting": "magenta",
    "unreadable": "red",
}
"""Colours of states, which are also told by their words."""

_AGES: Final = ((2 * 60, 1, "s"), (3 * 3600, 60, "m"), (2 * 86400, 3600, "h"), (2 * 365 * 86400, 86400, "d"))
"""Below so many seconds an age is told in units of so many; above the last one in years."""


class Row(Protocol):
    """What can be shown."""

    def to_object(self) -> dict[str, Any]:
        """Its JSON form."""
        ...


R = TypeVar("R", bound=Row)


@dataclass(frozen=True)
class Column(Generic[R]):
    """A column of a table.

    Attributes:
        heading: in upper case.
        cell: text of a row.
        wide: whether it is shown with `-o wide` only.
    """

    heading: str
    cell: Callable[[R], str]
    wide: bool = False


output_flag = click.option(
    "-o", "--output", type=click.Choice(OUTPUTS), default="table", show_default=True, help="How to show it."
)


def show(
    rows: Sequence[R], columns: Iterable[Column[R]], output: str, name: Callable[[R], str], nothing: str
) -> None:
    """Print rows.

    Args:
        rows: what to show.
        columns: of the table.
        output: one of `OUTPUTS`.
        name: of a row, for `-o name`.
        nothing: to be said on stderr instead of a table without rows.
    """
    if output in {"json", "yaml"}:
        click.echo(dumped([row.to_object() for row in rows], output))
    elif output == "name":
        for line in dict.fromkeys(map(name, rows)):
            click.echo(line)
    elif not rows:
        click.echo(nothing, err=True)
    else:
        shown = [column for column in columns if output == "wide" or not column.wide]
        cells = [[column.cell(row) for column in shown] for row in rows]
        print_table([column.heading for column in shown], cells, fold=output != "wide")


def dumped(value: object, output: str) -> str:
    """A value of dicts, lists and scalars as `json` or `yaml`."""
    if output == "json":
        return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return yaml.dump(value, Dumper=Quoting, sort_keys=False, allow_unicode=True).rstrip()


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, fold: bool = True) -> None:
    """Print a table; on a terminal in colours, and folded to its width unless told otherwise."""
    coloured = sys.stdout.isatty()
    if coloured and fold and len(rows) <= FOLDED:
        Console(highlight=False).print(fitted(headings, rows))
        return
    widths = [max(map(cell_len, cells)) for cells in zip(headings, *rows, strict=True)]
    for cells in (headings, *rows):
        padded = [
            f"{_coloured(cell) if coloured else cell}{' ' * (width - cell_len(cell))}"
            for cell, width in zip(cells, widths, strict=True)
        ]
        sys.stdout.write(f"{GAP.join(padded).rstrip()}\n")


def _coloured(cell: str) -> str:
    colour = STYLES.get(cell)
    return click.style(cell, fg=colour) if colour and "NO_COLOR" not in os.environ else cell


def fitted(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table that is folded to the width that it gets."""
    result = Table(box=None, padding=(0, len(GAP), 0, 0), pad_edge=False, header_style="")
    for heading in headings:
        result.add_column(heading, overflow="fold")
    for cells in rows:
        result.add_row(*(Text(cell, STYLES.get(cell, "")) for cell in cells))
    return result


def age(since: str, now: datetime) -> str:
    """How long ago something was, as kubectl has it: `45s`, `5m`, `3h`, `12d`; empty if it is not known when."""
    if not since:
        return ""
    seconds = max(0, int((now - datetime.fromisoformat(since)).total_seconds()))
    for below, unit, letter in _AGES:
        if seconds < below:
            return f"{seconds // unit}{letter}"
    return f"{seconds // (365 * 86400)}y"
