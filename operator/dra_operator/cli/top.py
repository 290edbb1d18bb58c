"""`kubectl dra top`: how much of what is in use, the busiest pools, and the claims that wait, again every few seconds. Reads only.

On a terminal it fills the screen until `q` or Ctrl-C; elsewhere, and of snapshots and files, it says it once.
"""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

from dra_operator.errors import ApiForbidden, DraError
from dra_operator.survey import claim_rows
from dra_operator.words import listed

from .seen import OF_ALL, OF_CLAIMS, files_flag, look, read
from .shown import age, fitted, print_table
from .where import located, or_snapshot

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator, Sequence

    from rich.console import Group, RenderableType

    from dra_operator.kube import Api
    from dra_operator.survey import PoolRow

    from .seen import Seen
    from .where import Where

ONCE: Final = 20
"""Rows of a table that are printed where there is no screen that limits them. Arbitrary."""

LEAST: Final = 3
"""Rows of a table on however small a screen."""

AROUND: Final = 4
"""Lines of a section beside its rows: a blank one, title, headings, and how many more there are."""

SHOWN: Final = 2
"""Pods that a cell names."""

ENDS: Final = b"qQ\x03\x04"
"""Keys that end it."""


@dataclass(frozen=True, slots=True)
class Section:
    """A table with its title."""

    title: str
    headings: tuple[str, ...]
    rows: Sequence[Sequence[str]]


@click.command("top")
@located
@or_snapshot
@files_flag
@click.option(
    "--interval",
    type=click.FloatRange(0.2, 3600),
    default=5.0,
    show_default=True,
    help="Seconds between two looks.",
)
def top_command(where: Where, named: tuple[str, ...], interval: float) -> None:
    """Show how many devices are in use, the busiest pools, and the claims that wait longest.

    On a terminal it looks again every few seconds until q or Ctrl-C; else it looks once.
    """
    if named or where.snapshot is not None:
        _print(look(where, OF_ALL, named))
        return
    import asyncio

    live = sys.stdout.isatty() and sys.stdin.isatty()
    try:
        asyncio.run(_watch(where, interval) if live else _once(where))
    except ApiForbidden as error:
        raise click.ClickException(f"{error}. {where.remedy}") from error
    except DraError as error:
        raise click.ClickException(str(error)) from error


# --- what is shown


def sections(seen: Seen) -> list[Section]:
    """Drivers, pools by their use, claims by their age."""
    pools = seen.pools()
    waiting = [row for row in claim_rows(seen.cluster) if row.state == "pending"]
    waiting.sort(key=lambda row: (row.created, row.namespace, row.name))
    return [
        Section("Drivers", ("DRIVER", "POOLS", *_NUMBERS), _drivers(pools)),
        Section("Busiest pools", ("DRIVER", "POOL", "NODE", *_NUMBERS), _busiest(pools)),
        Section(
            "Waiting claims",
            ("NAMESPACE", "CLAIM", "AGE", "CLASS", "PODS"),
            [
                (
                    row.namespace,
                    row.name,
                    age(row.created, seen.now),
                    ", ".join(row.classes),
                    listed(row.waiting, SHOWN),
                )
                for row in waiting
            ],
        ),
    ]


_NUMBERS = ("USE", "USED", "FREE", "TAINTED", "BLOCKED", "UNUSABLE", "TOTAL")


def _numbers(found: Counter[str]) -> tuple[str, ...]:
    total = found["TOTAL"]
    return (
        f"{100 * found['USED'] // total}%" if total else "",
        *(str(found[name]) for name in _NUMBERS[1:]),
    )


def _counted(row: PoolRow) -> Counter[str]:
    return Counter({name: int(getattr(row, name.lower())) for name in _NUMBERS[1:]})


def _drivers(pools: Sequence[PoolRow]) -> list[tuple[str, ...]]:
    sums: dict[str, Counter[str]] = {}
    for row in pools:
        found = sums.setdefault(row.driver, Counter())
        found.update(_counted(row))
        found["POOLS"] += 1
    return [(driver, str(found["POOLS"]), *_numbers(found)) for driver, found in sums.items()]


def _busiest(pools: Sequence[PoolRow]) -> list[tuple[str, ...]]:
    by_use = sorted(
        (row for row in pools if row.used),
        key=lambda row: (-row.used / row.total, -row.used, row.driver, row.pool),
    )
    return [(row.driver, row.pool, row.node or "any", *_numbers(_counted(row))) for row in by_use]


def _print(seen: Seen) -> None:
    for number, section in enumerate(sections(seen)):
        if number:
            click.echo()
        click.echo(f"{section.title}: {len(section.rows)}")
        if section.rows:
            print_table(section.headings, section.rows[:ONCE])
        if len(section.rows) > ONCE:
            click.echo(f"and {len(section.rows) - ONCE} more")


def screen(seen: Seen, trouble: str, height: int) -> Group:
    """What fills a screen of so many lines.

    Args:
        seen: what was read last.
        trouble: why it could not be read since; empty if it could.
        height: lines.
    """
    from rich.console import Group
    from rich.text import Text

    told = [*seen.notes, *([trouble] if trouble else [])]
    head = Text(f"kubectl dra top, {seen.now.astimezone():%H:%M:%S}; q ends it", "bold")
    parts: list[RenderableType] = [
        head,
        *(Text(note, "yellow", no_wrap=True, overflow="ellipsis") for note in told),
    ]
    left = height - len(parts)
    found = sections(seen)
    for number, section in enumerate(found):
        room = max(LEAST, left // (len(found) - number) - AROUND)
        rows = section.rows[:room]
        parts += [Text(""), Text(f"{section.title}: {len(section.rows)}", "bold")]
        parts.append(fitted(section.headings, rows))
        if len(section.rows) > room:
            parts.append(Text(f"and {len(section.rows) - room} more", "dim"))
        left -= len(rows) + AROUND
    return Group(*parts)


# --- looking


async def _once(where: Where) -> None:
    from dra_operator.kube import Api

    async with await Api.connect(where.kubeconfig, where.context) as api:
        seen = await _read(api, where)
    seen.tell()
    _print(seen)


async def _watch(where: Where, interval: float) -> None:
    import asyncio
    import signal

    from rich.live import Live

    from dra_operator.kube import Api

    async with await Api.connect(where.kubeconfig, where.context) as api:
        seen, trouble = await _read(api, where), ""
        ended = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        with _keys(ended), Live(screen=True, auto_refresh=False) as live:
            while True:
                live.update(screen(seen, trouble, live.console.height), refresh=True)
                if await _is_set(ended, interval):
                    return
                try:
                    seen, trouble = await _read(api, where), ""
                except DraError as error:
                    trouble = f"What is shown is old: {error}"


async def _is_set(event: asyncio.Event, within: float) -> bool:
    """Whether an event comes within so many seconds."""
    import asyncio

    try:
        async with asyncio.timeout(within):
            return await event.wait()
    except TimeoutError:
        return False


async def _read(api: Api, where: Where) -> Seen:
    """All there is; who may not see devices sees the claims."""
    try:
        return await read(api, where, OF_ALL)
    except ApiForbidden as error:
        seen = await read(api, where, OF_CLAIMS)
        seen.miss(OF_ALL[0], str(error))
        return seen


@contextmanager
def _keys(ended: asyncio.Event) -> Iterator[None]:
    """Have a key of `ENDS` set the event, without waiting for the end of a line."""
    import asyncio
    import os
    import termios
    import tty

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    loop = asyncio.get_running_loop()

    def pressed() -> None:
        keys = os.read(terminal, 64)
        if not keys or any(key in ENDS for key in keys):
            ended.set()

    tty.setraw(terminal, termios.TCSANOW)
    # What is written still begins new lines at their beginning.
    mode = termios.tcgetattr(terminal)
    mode[1] |= termios.OPOST
    termios.tcsetattr(terminal, termios.TCSANOW, mode)
    loop.add_reader(terminal, pressed)
    try:
        yield
    finally:
        loop.remove_reader(terminal)
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
