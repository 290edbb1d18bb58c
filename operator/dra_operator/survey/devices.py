"""Rows of devices: what is published of them, who holds them, and what keeps the others from being had.

Used by `pools`, which looks at a pool at a time. It must not judge pools.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from dra_operator.allocator import PoolCounters, PoolGroups, taint_text, untolerated
from dra_operator.cluster import one_node
from dra_operator.model import OWNED_TAINT, DeviceId, PoolId
from dra_operator.words import numbered

from .holding import is_used
from .rows import BLOCKED, FREE, IN_USE, SHARED, TAINTED, UNUSABLE, DeviceRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dra_operator.model import Device, DeviceAttribute, NodeSelector, ResourceSlice
    from dra_operator.quantity import Quantity

    from .holding import Use
    from .rows import Amounts

SEVERAL = "several"
"""Stands for a node where it is not one."""

OURS = frozenset({OWNED_TAINT})
"""The operator's own mark on its pools keeps no device from being had."""

_FIELDS = ("int_value", "bool_value", "version", "strings", "ints", "bools", "versions")
"""Of attributes, but for the usual one; one of them all is set."""


class Place(Protocol):
    """A slice or a device that says which nodes it is for."""

    @property
    def node_name(self) -> str | None:
        """One node."""
        ...

    @property
    def node_selector(self) -> NodeSelector | None:
        """Some nodes."""
        ...


class Look(NamedTuple):
    """A pool with all that its devices' states hang on.

    Attributes:
        pool_id: its name.
        slices: of its newest generation.
        uses: who uses its devices, by name.
        problem: why none of them can be had; empty if they can.
        counters: what is left of them; None if it has none.
        groups: which devices may draw on counters together; None if that does not count.
    """

    pool_id: PoolId
    slices: Sequence[ResourceSlice]
    uses: Mapping[str, Sequence[Use]]
    problem: str
    counters: PoolCounters | None
    groups: PoolGroups | None


class Published(NamedTuple):
    """A device as its slice has it, its state, and who uses it."""

    slice_: ResourceSlice
    device: Device
    state: str
    uses: Sequence[Use]


def published(look: Look) -> list[Published]:
    """The devices that the newest generation of a pool has, in its order."""
    found = []
    for slice_ in look.slices:
        for device in slice_.spec.devices:
            uses = look.uses.get(device.name, ())
            found.append(Published(slice_, device, _state(look, device, uses), uses))
    return found


def gone(look: Look, devices: Iterable[Published]) -> list[str]:
    """Names of devices that claims hold, and nobody publishes."""
    return sorted(look.uses.keys() - {one.device.name for one in devices})


def device_rows(look: Look, devices: Sequence[Published]) -> list[DeviceRow]:
    """The devices of a pool, by name."""
    rows = [*map(_row, devices), *(_gone_row(look, name) for name in gone(look, devices))]
    return sorted(rows, key=lambda row: numbered(row.id.device))


def place(published: Place) -> str:
    """The node that something is for; empty for all, `several` for those of a selector that chooses more than one."""
    if published.node_name:
        return published.node_name
    selector = published.node_selector
    return "" if selector is None else one_node(selector) or SEVERAL


def attribute_text(value: DeviceAttribute) -> str:
    """An attribute's value; several with commas between."""
    if value.string is not None:
        return value.string
    found = next((one for name in _FIELDS if (one := getattr(value, name)) is not None), "")
    return ",".join(map(_scalar, found)) if isinstance(found, tuple) else _scalar(found)


def _scalar(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _row(one: Published) -> DeviceRow:
    slice_, device, state, uses = one
    return DeviceRow(
        slice_.device_id(device),
        place(device if slice_.spec.per_device_node_selection else slice_.spec),
        slice_.metadata.name,
        state,
        {name: attribute_text(value) for name, value in device.attributes.items()},
        _capacity(device, uses),
        tuple(dict.fromkeys(taken.counter_set for taken in device.consumes_counters)),
        tuple(map(taint_text, device.taints)),
        tuple(use.holder for use in uses),
    )


def _gone_row(look: Look, name: str) -> DeviceRow:
    uses = look.uses[name]
    return DeviceRow(
        DeviceId(*look.pool_id, name),
        state=_held(uses) or UNUSABLE,
        holders=tuple(use.holder for use in uses),
    )


def _state(look: Look, device: Device, uses: Sequence[Use]) -> str:
    held = _held(uses)
    if held or look.problem:
        return held or UNUSABLE
    if untolerated(device, (), OURS) is not None:
        return TAINTED
    return BLOCKED if device.consumes_counters and _is_blocked(look, device) else FREE


def _held(uses: Sequence[Use]) -> str:
    """The state of a device that is held; empty if nobody does more than look."""
    if not is_used(uses):
        return ""
    return SHARED if all(use.is_share or use.holder.admin for use in uses) else IN_USE


def _is_blocked(look: Look, device: Device) -> bool:
    """Whether others keep the device from drawing what it needs."""
    if look.groups is not None and not look.groups.admits(device):
        return True
    if look.counters is None:
        return False
    if look.counters.take(device) is not None:
        return True
    look.counters.give_back(device)
    return False


def _capacity(device: Device, uses: Sequence[Use]) -> Amounts:
    held = _held(uses)
    used = consumed(uses) if held == SHARED else {}
    found: Amounts = {}
    for name, capacity in device.capacity.items():
        total = amount_text(capacity.value)
        found[name] = (total, total if held == IN_USE else amount_text(used[name]) if name in used else "0")
    return found


def amount_text(amount: Quantity) -> str:
    """An amount as it was written, or in its canonical form if it was computed."""
    return amount.text or str(amount)


def consumed(uses: Sequence[Use]) -> Mapping[str, Quantity]:
    """What shares take of each capacity (alloc A-2)."""
    sums: dict[str, Quantity] = {}
    for use in uses:
        if use.is_share and not use.holder.admin:
            for name, amount in use.result.consumed_capacity.items():
                sums[name] = sums[name] + amount if name in sums else amount
    return sums
