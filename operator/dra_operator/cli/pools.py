"""`kubectl dra pools`: a row a pool: how many of its devices are free, used, tainted, blocked. `dra_operator.survey` counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .seen import OF_DEVICES, files_flag, look
from .shown import Column, output_flag, show
from .where import located, or_snapshot

if TYPE_CHECKING:
    from dra_operator.survey import PoolRow

    from .where import Where


@click.command("pools")
@located
@or_snapshot
@files_flag
@click.option("--driver", help="Only pools of this driver.")
@click.option("--node", help="Only pools of this node.")
@output_flag
def pools_command(
    where: Where, named: tuple[str, ...], driver: str | None, node: str | None, output: str
) -> None:
    """List pools with their devices by state, and what is left of their counters and shares (-o wide).

    Pools belong to no namespace: the claims of all of them count. Who may not read them all sees what those of one namespace hold, and is told.
    """
    seen = look(where, OF_DEVICES, named)
    rows = [row for row in seen.pools() if driver in {None, row.driver} and node in {None, row.node}]
    show(rows, COLUMNS, output, lambda row: f"{row.driver}/{row.pool}", "No pools found.")


def _counters(row: PoolRow) -> str:
    """What is left of each: `card/memory 4Gi of 8Gi used`."""
    return ", ".join(f"{name} {used} of {total}" for name, (total, used) in row.counters.items())


def _partitions(row: PoolRow) -> str:
    return ", ".join(f"{one.type} {one.allocatable} of {one.total}" for one in row.partitions)


def _shares(row: PoolRow) -> str:
    if row.shares is None:
        return ""
    capacity = (f"{name} {used} of {total}" for name, (total, used) in row.shares.capacity.items())
    return ", ".join((f"{row.shares.in_use} of {row.shares.free + row.shares.in_use}", *capacity))


COLUMNS: tuple[Column[PoolRow], ...] = (
    Column("DRIVER", lambda row: row.driver),
    Column("POOL", lambda row: row.pool),
    Column("NODE", lambda row: row.node or ("any" if row.generation else "")),
    Column("TOTAL", lambda row: str(row.total)),
    Column("FREE", lambda row: str(row.free)),
    Column("USED", lambda row: str(row.used)),
    Column("TAINTED", lambda row: str(row.tainted)),
    Column("BLOCKED", lambda row: str(row.blocked)),
    Column("UNUSABLE", lambda row: str(row.unusable)),
    Column("PROBLEM", lambda row: row.problem),
    Column("GENERATION", lambda row: str(row.generation), wide=True),
    Column("GONE", lambda row: str(row.gone), wide=True),
    Column("COUNTERS USED", _counters, wide=True),
    Column("PARTITIONS LEFT", _partitions, wide=True),
    Column("SHARED", _shares, wide=True),
)
"""Of the table. `any` stands for the nodes of a pool that is for all of them."""
