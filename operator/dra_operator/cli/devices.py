"""`kubectl dra devices`: a row a device, with the attributes and capacities that one asks for. `dra_operator.survey` makes the rows, `cel` selects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from dra_operator.errors import CelError
from dra_operator.survey import STATES
from dra_operator.words import akin, listed

from .seen import OF_DEVICES, files_flag, look
from .shown import Column, output_flag, show
from .where import located, or_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dra_operator.cel.interface import Selector
    from dra_operator.model import DeviceId
    from dra_operator.survey import DeviceRow

    from .seen import Seen
    from .where import Where

SHOWN = 4
"""Claims that a cell names; a device may be shared by many. Arbitrary."""

IN_FLAGS = {state.replace(" ", "-"): state for state in STATES}
"""States as flags have them."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which devices are shown; None for any."""

    driver: str | None
    pool: str | None
    node: str | None
    states: tuple[str, ...]

    def admits(self, row: DeviceRow) -> bool:
        """Whether a device is shown."""
        return (
            self.driver in {None, row.id.driver}
            and self.pool in {None, row.id.pool}
            and self.node in {None, row.node}
            and (not self.states or row.state in {IN_FLAGS[state] for state in self.states})
        )


@click.command("devices")
@located
@or_snapshot
@files_flag
@click.option("--driver", help="Only devices of this driver.")
@click.option("--pool", help="Only devices of pools of this name.")
@click.option("--node", help="Only devices of this node.")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(list(IN_FLAGS)),
    help="Only devices in this state. As often as you like.",
)
@click.option(
    "--selector",
    metavar="CEL",
    help='Only devices that meet this expression, as in claims and classes: \'device.attributes["gpu.example.com"].model == "large"\'.',
)
@click.option(
    "-L",
    "--columns",
    "names",
    multiple=True,
    metavar="NAME,…",
    help="Columns more: attributes and capacities (used/all), by their name in the driver's domain, or domain/name.",
)
@output_flag
def devices_command(
    where: Where,
    named: tuple[str, ...],
    selector: str | None,
    names: tuple[str, ...],
    output: str,
    **flags: str,
) -> None:
    """List devices with their state and the claims that hold them.

    Devices belong to no namespace: the claims of all of them count. Who may not read them all sees what those of one namespace hold, and is told.
    """
    seen = look(where, OF_DEVICES, named)
    wanted = Wanted(flags["driver"], flags["pool"], flags["node"], tuple(flags["states"]))
    rows = [row for row in seen.survey().devices if wanted.admits(row)]
    if selector is not None:
        rows = _selected(seen, rows, selector)
    columns = [name.strip() for text in names for name in text.split(",") if name.strip()]
    _tell_strange(rows, columns)
    show(rows, [*COLUMNS, *map(_column, columns)], output, lambda row: str(row.id), "No devices found.")


# --- columns


def value(row: DeviceRow, name: str) -> str:
    """An attribute, or a capacity as `used/all`; a name without a domain is in the driver's. Empty if the device has none."""
    bare = name.removeprefix(f"{row.id.driver}/")
    full = bare if "/" in bare else f"{row.id.driver}/{bare}"
    for known in (bare, full):
        if known in row.attributes:
            return row.attributes[known]
        if known in row.capacity:
            total, used = row.capacity[known]
            return f"{used}/{total}"
    return ""


def _column(name: str) -> Column[DeviceRow]:
    return Column(name.rpartition("/")[2].upper(), lambda row: value(row, name))


def _tell_strange(rows: Sequence[DeviceRow], names: Iterable[str]) -> None:
    """Say which columns are empty because no device has anything of that name."""
    known = {name for row in rows for name in (*row.attributes, *row.capacity)}
    for name in names:
        if rows and not any(value(row, name) for row in rows):
            near = akin(name, known)
            there = f"did you mean {near}?" if near else f"there are: {listed(sorted(known), SHOWN)}"
            click.echo(f"No device shown has an attribute or capacity {name}; {there}", err=True)


def _claims(row: DeviceRow) -> str:
    """Who holds it; who only looks is told as such."""
    names = [f"{one.claim} (admin access)" if one.admin else one.claim for one in row.holders]
    return listed(list(dict.fromkeys(names)), SHOWN)


def _amounts(row: DeviceRow) -> str:
    return ", ".join(f"{name} {used}/{total}" for name, (total, used) in row.capacity.items())


COLUMNS: tuple[Column[DeviceRow], ...] = (
    Column("DRIVER", lambda row: row.id.driver),
    Column("POOL", lambda row: row.id.pool),
    Column("DEVICE", lambda row: row.id.device),
    Column("NODE", lambda row: row.node or ("any" if row.slice_name else "")),
    Column("STATE", lambda row: row.state),
    Column("CLAIMS", _claims),
    Column(
        "PODS",
        lambda row: listed([pod for one in row.holders for pod in one.pods], SHOWN),
        wide=True,
    ),
    Column("TAINTS", lambda row: ", ".join(row.taints), wide=True),
    Column("CAPACITY USED", _amounts, wide=True),
    Column("COUNTERS", lambda row: ", ".join(row.counter_sets), wide=True),
    Column("SLICE", lambda row: row.slice_name, wide=True),
)
"""Of the table. A device without a slice is one that nobody publishes any more."""


# --- selectors


def _selected(seen: Seen, rows: Iterable[DeviceRow], expression: str) -> list[DeviceRow]:
    """The devices that meet an expression; those on which it fails do not, and are told."""
    from dra_operator.cel import default_compiler

    try:
        compiled = default_compiler().compile(expression, seen.features)
    except CelError as error:
        raise click.UsageError(f"--selector: {error}") from error
    failed: list[tuple[DeviceId, CelError]] = []
    met = set(_meeting(seen, compiled, failed))
    if failed:
        device_id, fault = failed[0]
        click.echo(
            f"The selector fails on {len(failed)} device(s), which are not shown; on {device_id}: {fault}",
            err=True,
        )
    return [row for row in rows if (row.slice_name, row.id) in met]


def _meeting(
    seen: Seen, selector: Selector, failed: list[tuple[DeviceId, CelError]]
) -> Iterator[tuple[str, DeviceId]]:
    for slice_ in seen.cluster.slices.all():
        for device in slice_.spec.devices:
            device_id = slice_.device_id(device)
            try:
                if selector.matches(slice_, device):
                    yield slice_.metadata.name, device_id
            except CelError as error:
                failed.append((device_id, error))
