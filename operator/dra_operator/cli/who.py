"""`kubectl dra who`: who holds a device, or what is held of a node. `dra_operator.survey` makes the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from dra_operator.survey import BLOCKED
from dra_operator.words import akin, listed

from .seen import OF_DEVICES, files_flag, look
from .shown import Column, age, output_flag, show
from .where import located, or_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime
    from typing import Any

    from dra_operator.survey import DeviceRow, Holder, Survey

    from .where import Where

SHOWN = 4
"""Pods that a cell names. Arbitrary."""


class Held(NamedTuple):
    """A device and one of its holders; None if nobody holds it."""

    row: DeviceRow
    holder: Holder | None

    def to_object(self) -> dict[str, Any]:
        """Its JSON form."""
        told = {**self.row.id._asdict(), "node": self.row.node, "state": self.row.state}
        return {**told, **(self.holder.to_object() if self.holder else {"claim": ""})}


@click.command("who")
@located
@or_snapshot
@files_flag
@click.argument("thing", metavar="DEVICE|NODE")
@output_flag
def who_command(where: Where, named: tuple[str, ...], thing: str, output: str) -> None:
    """Tell who holds a device: claim, request, pods, since when; or all that is held of a node.

    A device is named driver/pool/device, or by the end of that; node/NAME is a node of which a device has the name. Of a device that others block, who draws on its counters is told.

    Exit status: 0 told; 1 there is neither a device nor a node of that name.
    """
    seen = look(where, OF_DEVICES, named)
    found = seen.survey()
    rows = find(found, thing)
    if not rows:
        raise click.ClickException(_unknown(found, thing))
    held = list(_with_blockers(found, rows, list(_held(rows))))
    show(held, _columns(seen.now), output, _name, "")


def find(found: Survey, thing: str) -> Sequence[DeviceRow]:
    """The devices of a node, and those that claims use there, or else the devices of that name, which several pools may have."""
    node = thing.removeprefix("node/")
    there = {f"{row.namespace}/{row.name}" for row in found.claims if row.node == node}
    of_node = [
        row
        for row in found.devices
        if row.node == node or any(holder.claim in there for holder in row.holders)
    ]
    if of_node:
        return of_node
    return [row for row in found.devices if f"/{row.id}".endswith(f"/{thing}")]


def _held(rows: Iterable[DeviceRow]) -> Iterator[Held]:
    for row in rows:
        if row.holders:
            yield from (Held(row, holder) for holder in row.holders)
        else:
            yield Held(row, None)


def _with_blockers(found: Survey, rows: Sequence[DeviceRow], held: Sequence[Held]) -> Iterator[Held]:
    """What was asked for, and after it the held devices that draw on the counters of blocked ones."""
    yield from held
    spent = {(row.id.pool_id, name) for row in rows if row.state == BLOCKED for name in row.counter_sets}
    shown = {row.id for row in rows}
    for row in found.devices:
        draws = {(row.id.pool_id, name) for name in row.counter_sets}
        if row.id not in shown and draws & spent and any(not one.admin for one in row.holders):
            yield from _held([row])


def _unknown(found: Survey, thing: str) -> str:
    names = {row.node for row in found.devices} | {row.id.device for row in found.devices}
    near = akin(thing.removeprefix("node/").rpartition("/")[2], names - {"", "several"})
    meant = f"did you mean {near}?" if near else "kubectl dra devices lists them all"
    return f"No device is called {thing}, and no device is published for a node of that name: {meant}"


def _columns(now: datetime) -> tuple[Column[Held], ...]:
    return (
        Column("DEVICE", lambda held: str(held.row.id)),
        Column("NODE", lambda held: held.row.node or ("any" if held.row.slice_name else "")),
        Column("STATE", lambda held: held.row.state),
        Column("CLAIM", lambda held: held.holder.claim if held.holder else ""),
        Column("REQUEST", lambda held: held.holder.request if held.holder else ""),
        Column("TAKES", _takes),
        Column("PODS", lambda held: listed(held.holder.pods, SHOWN) if held.holder else ""),
        Column("SINCE", lambda held: age(held.holder.since, now) if held.holder else ""),
        Column("TAINTS", lambda held: ", ".join(held.row.taints), wide=True),
        Column("COUNTERS", lambda held: ", ".join(held.row.counter_sets), wide=True),
    )


def _takes(held: Held) -> str:
    """All of it, a look, or so much of which capacity."""
    if held.holder is None:
        return ""
    if held.holder.admin:
        return "admin access"
    amounts = ", ".join(f"{name} {amount}" for name, amount in held.holder.amounts.items())
    return amounts or ("a share" if held.row.state == "shared" else "all")


def _name(held: Held) -> str:
    """Of the claim, or of the device that nobody holds."""
    return f"resourceclaim.resource.k8s.io/{held.holder.claim}" if held.holder else str(held.row.id)
