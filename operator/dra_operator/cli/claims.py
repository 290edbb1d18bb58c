"""`kubectl dra claims`: a row a claim, out of claims and pods alone. `dra_operator.survey` makes the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from dra_operator.survey import ClaimRow, claim_rows
from dra_operator.words import listed, numbered

from .labels import read as read_labels
from .seen import OF_CLAIMS, files_flag, look
from .shown import Column, age, output_flag, show
from .where import in_words, located, or_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from dra_operator.cluster import Selector

    from .where import Where

RUN: Final = 3
"""Devices from which on a run is shorter than its members."""

SHOWN: Final = 4
"""Pods that a cell of the table names; a claim may have 256. Arbitrary."""


def _labels(_: click.Context, __: click.Parameter, text: str) -> Selector:
    try:
        return read_labels(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command("claims")
@located
@or_snapshot
@files_flag
@click.option(
    "-l",
    "--selector",
    "labels",
    default="",
    metavar="LABELS",
    callback=_labels,
    help="Only claims with these labels, as kubectl has them: a=b,c!=d,e,!f,g in (h,i).",
)
@output_flag
def claims_command(where: Where, named: tuple[str, ...], labels: Selector, output: str) -> None:
    """List claims with their devices, node, consumers and the pods that wait for them."""
    seen = look(where, OF_CLAIMS, named)
    rows = [row for row in claim_rows(seen.cluster) if seen.namespace in {"", row.namespace}]
    rows = [row for row in rows if labels.matches(row.labels)]
    show(rows, columns(seen.now), output, _name, f"No claims found in {in_words(seen.namespace)}.")


def columns(now: datetime) -> tuple[Column[ClaimRow], ...]:
    """Of the table; long lists are cut or folded, which the JSON form has whole."""
    return (
        Column("NAMESPACE", lambda row: row.namespace),
        Column("CLAIM", lambda row: row.name),
        Column("STATE", lambda row: row.state),
        Column("DEVICES", lambda row: fold_devices(row.devices)),
        Column("NODE", lambda row: row.node),
        Column("CONSUMERS", lambda row: listed(row.consumers, SHOWN)),
        Column("WAITING", lambda row: listed(row.waiting, SHOWN)),
        Column("AGE", lambda row: age(row.created, now)),
        Column("CLASS", lambda row: ", ".join(row.classes), wide=True),
        Column("DRIVER", lambda row: ", ".join(row.drivers), wide=True),
    )


def fold_devices(devices: Iterable[str]) -> str:
    """`driver/pool/device`s in short: each pool once, in the order given; within it `gpu-0…gpu-7` for runs of numbers."""
    by_pool: dict[str, list[str]] = {}
    for device in devices:
        pool, _, name = device.rpartition("/")
        by_pool.setdefault(pool, []).append(name)
    return ", ".join(f"{pool}/{','.join(_runs(names))}" for pool, names in by_pool.items())


def _name(row: ClaimRow) -> str:
    return f"resourceclaim.resource.k8s.io/{row.name}"


def _runs(names: Iterable[str]) -> Iterator[str]:
    """The names in the order of their numbers, with runs of `RUN` or more folded."""
    runs: list[list[str]] = []
    for name in sorted(names, key=numbered):
        if runs and _next(runs[-1][-1]) == name:
            runs[-1].append(name)
        else:
            runs.append([name])
    for run in runs:
        yield from run if len(run) < RUN else [f"{run[0]}…{run[-1]}"]


def _next(name: str) -> str:
    """The name with the next number, as wide as this one; empty if it has none."""
    stem, number = numbered(name)
    return f"{stem}{str(number + 1).zfill(len(name) - len(stem))}" if number >= 0 else ""
