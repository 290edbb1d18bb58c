"""The rows of a survey: plain values, texts and counts, with their JSON form. They know nothing of the model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from dra_operator.model import DeviceId

FREE: Final = "free"
IN_USE: Final = "in use"
SHARED: Final = "shared"
TAINTED: Final = "tainted"
UNUSABLE: Final = "unusable"
BLOCKED: Final = "blocked"

STATES: Final = (FREE, IN_USE, SHARED, TAINTED, BLOCKED, UNUSABLE)
"""States of devices. The first that is true of a device counts: in use (a claim holds all of it), shared (claims hold shares of it), unusable (its pool is
incomplete or invalid, or nobody publishes it), tainted, blocked (others have drawn what it needs of its counters), free."""

Amounts: TypeAlias = "dict[str, tuple[str, str]]"
"""Name → all of it, and what is in use of it, as quantities are written."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a device, or a share of it, or looks at it.

    Attributes:
        claim: `namespace/name`.
        request: of the claim; `request/alternative` for one of several.
        pods: names of the pods that use the claim, or `resource/name` of other consumers.
        admin: whether it only looks (admin access), which takes nothing from others.
        amounts: what it takes of which capacity, of a device that is shared.
        since: when that was written, RFC 3339; empty if the claim does not say.
    """

    claim: str
    request: str = ""
    pods: tuple[str, ...] = ()
    admin: bool = False
    amounts: dict[str, str] = field(default_factory=dict)
    since: str = ""

    def to_object(self) -> dict[str, Any]:
        """Its JSON form."""
        return {
            "claim": self.claim,
            "request": self.request,
            "pods": list(self.pods),
            "admin": self.admin,
            "amounts": self.amounts,
            "since": self.since,
        }


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """A device, or what is left of one: claims may hold what nobody publishes any more.

    Attributes:
        id: driver, pool, name. Twice in the rows of an invalid pool whose driver publishes it twice.
        node: where it can be used: the name of a node, empty for all nodes, `several` for those of a selector.
        slice_name: the ResourceSlice that has it; empty if the newest generation of its pool lacks it.
        state: one of `STATES`.
        attributes: name → text.
        capacity: what there is, and what is in use.
        counter_sets: those that it draws on.
        taints: `key=value:effect`, those of DeviceTaintRules and those without effect on allocation included.
        holders: who holds it, by the names of claims.
    """

    id: DeviceId
    node: str = ""
    slice_name: str = ""
    state: str = FREE
    attributes: dict[str, str] = field(default_factory=dict)
    capacity: Amounts = field(default_factory=dict)
    counter_sets: tuple[str, ...] = ()
    taints: tuple[str, ...] = ()
    holders: tuple[Holder, ...] = ()

    def to_object(self) -> dict[str, Any]:
        """Its JSON form."""
        return {
            **self.id._asdict(),
            "node": self.node,
            "slice": self.slice_name,
            "state": self.state,
            "attributes": self.attributes,
            "capacity": _amounts(self.capacity),
            "counterSets": list(self.counter_sets),
            "taints": list(self.taints),
            "holders": [holder.to_object() for holder in self.holders],
        }


@dataclass(frozen=True, slots=True)
class Partition:
    """Devices of a pool that are cut alike out of the same hardware, as ResourcePoolStatus has them (cp P-14…P-16).

    Attributes:
        attribute, type: the attribute by which the driver tells its partitions apart, and its value.
        total: how many there are.
        allocatable: how many could be had one after the other, if nothing else were taken.
    """

    attribute: str
    type: str
    total: int
    allocatable: int

    def to_object(self) -> dict[str, Any]:
        """Its JSON form."""
        return {
            "attribute": self.attribute,
            "type": self.type,
            "total": self.total,
            "allocatable": self.allocatable,
        }


@dataclass(frozen=True, slots=True)
class Shares:
    """The devices of a pool that several claims may hold (cp P-17).

    Attributes:
        free: those that nobody holds.
        in_use: those of which somebody holds a share, be there anything left or not.
        capacity: of all of them together.
    """

    free: int
    in_use: int
    capacity: Amounts = field(default_factory=dict)

    def to_object(self) -> dict[str, Any]:
        """Its JSON form."""
        return {"free": self.free, "inUse": self.in_use, "capacity": _amounts(self.capacity)}


@dataclass(frozen=True, slots=True)
class PoolRow:
    """A pool by its newest generation.

    Attributes:
        driver, pool: its name.
        node: the node that all its slices are for, empty for all nodes, else `several`.
        generation: the newest; 0 if nobody publishes the pool.
        free, used, tainted, unusable, blocked: devices by state; used are those in use and shared, and tainted those that nobody holds.
        total: all of these.
        gone: devices that claims hold and nobody publishes any more; not in the total.
        counters: by `set/counter`.
        partitions: where the driver tells its partitions apart.
        shares: None if no device can be shared.
        problem: what is wrong with the pool, or with how its partitions are published; empty if nothing is.
    """

    driver: str
    pool: str
    node: str = ""
    generation: int = 0
    free: int = 0
    used: int = 0
    tainted: int = 0
    unusable: int = 0
    blocked: int = 0
    total: int = 0
    gone: int = 0
    counters: Amounts = field(default_factory=dict)
    partitions: tuple[Partition, ...] = ()
    shares: Shares | None = None
    problem: str = ""

    def to_object(self) -> dict[str, Any]:
        """Its JSON form."""
        return {
            "driver": self.driver,
            "pool": self.pool,
            "node": self.node,
            "generation": self.generation,
            "free": self.free,
            "used": self.used,
            "tainted": self.tainted,
            "blocked": self.blocked,
            "unusable": self.unusable,
            "total": self.total,
            "gone": self.gone,
            "counters": _amounts(self.counters),
            "partitions": [partition.to_object() for partition in self.partitions],
            "shares": self.shares.to_object() if self.shares else None,
            "problem": self.problem,
        }


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """A claim.

    Attributes:
        namespace, name: its name.
        state: `pending`, `allocated` (nobody has reserved it), `in use`, `deleting`, or `unreadable` (its newest version cannot be decoded; what it
            holds is told as far as that can be read).
        devices: `driver/pool/device`, in the order of its results.
        node: where they are: the name of a node, `any` for devices of all nodes, `several` for a selector of more than one, empty when pending.
        consumers: names of pods (or `resource/name` of other consumers) in `reservedFor`.
        waiting: names of the pods that name the claim and are not bound yet.
        created: RFC 3339; empty if it is not known.
        classes: device classes that it asks for.
        labels: of the claim.
    """

    namespace: str
    name: str
    state: str = "pending"
    devices: tuple[str, ...] = ()
    node: str = ""
    consumers: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    created: str = ""
    classes: tuple[str, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)

    @property
    def drivers(self) -> tuple[str, ...]:
        """Drivers of its devices, each once."""
        return tuple(dict.fromkeys(device.partition("/")[0] for device in self.devices))

    def to_object(self) -> dict[str, Any]:
        """Its JSON form."""
        return {
            "namespace": self.namespace,
            "claim": self.name,
            "state": self.state,
            "devices": list(self.devices),
            "node": self.node,
            "consumers": list(self.consumers),
            "waiting": list(self.waiting),
            "created": self.created,
            "classes": list(self.classes),
            "drivers": list(self.drivers),
        }


@dataclass(frozen=True, slots=True)
class Survey:
    """All there is.

    Attributes:
        devices: by driver, pool and name, `gpu-2` before `gpu-10`.
        pools: by driver and name, those included that nobody publishes and of which claims still hold devices.
        claims: by namespace and name.
    """

    devices: tuple[DeviceRow, ...] = ()
    pools: tuple[PoolRow, ...] = ()
    claims: tuple[ClaimRow, ...] = ()


def _amounts(amounts: Amounts) -> dict[str, Any]:
    return {name: {"total": total, "used": used} for name, (total, used) in amounts.items()}
