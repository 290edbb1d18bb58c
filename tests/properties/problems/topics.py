"""What problems are about. A topic needs gates, and makes objects use what it is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from .luck import Luck


class Topic(NamedTuple):
    """One topic.

    Attributes:
        words: what it is about.
        gates: upstream's switches that it needs.
        weight: how often it comes, beside the others.
    """

    words: str
    gates: tuple[str, ...] = ()
    weight: float = 1.0


TOPICS: Final[dict[str, Topic]] = {
    "prioritized": Topic("requests with alternatives", ("PrioritizedList",), 1.5),
    "admin": Topic("requests that only look at devices", ("AdminAccess",)),
    "taints": Topic("taints and tolerations", ("DeviceTaints",)),
    "counters": Topic("partitions that share counters", ("PartitionableDevices",), 1.5),
    "capacity": Topic("devices that are shared by capacity, with policies", ("ConsumableCapacity", "FractionalCapacityRange"), 2),
    "match": Topic("constraints: the same attribute", (), 1.5),
    "distinct": Topic("constraints: different attributes", ("ConsumableCapacity",)),
    "binding": Topic("binding conditions, and devices that bind to the node", ("DeviceBindingAndStatus",)),
    "lists": Topic("attributes with several values", ("ListTypeAttributes", "ConsumableCapacity")),
    "derived": Topic("constraints on derived attributes", ("DerivedAttributes",)),
    "groups": Topic("compatibility groups of partitions", ("CompatibilityGroups", "PartitionableDevices")),
    "places": Topic("devices for some nodes only, one by one or by slice; pools of several nodes", ("PartitionableDevices",)),
    "operations": Topic("devices that skip node operations", ("OptionalNodeOperations",), 0.5),
    "allocatable": Topic("devices that are a part of their node's cpu and memory, which no allocator looks at (alloc J-3)", (), 0.7),
    "all": Topic("requests for all devices", ()),
    "config": Topic("config of classes and claims"),
    "claims": Topic("several claims"),
    "taken": Topic("devices, shares and capacity that are taken"),
    "broken": Topic("pools that are incomplete, obsolete or invalid, and selectors that fail", (), 0.7),
    "limit": Topic("more devices than a claim can hold; comes alone", (), 0.15),
    "large": Topic("many devices and large counts, so that searches are long; only where it is asked for", (), 0.0),
    "tight": Topic("more wanted than there is, nearly", (), 0.7),
}  # fmt: skip
"""By name."""

DEFAULT_1_37: Final = frozenset(
    {"AdminAccess", "PrioritizedList", "PartitionableDevices", "DeviceTaints", "DeviceBindingAndStatus", "ConsumableCapacity", "FractionalCapacityRange"}
)  # fmt: skip

EXPERIMENTAL: Final = frozenset(
    {"CompatibilityGroups", "DerivedAttributes", "ListTypeAttributes", "OptionalNodeOperations"}
)
"""Switches that only upstream's experimental copy has."""

ALL_GATES: Final = tuple(sorted(DEFAULT_1_37 | EXPERIMENTAL))

NUMBERS: Final = {1: 0.1, 2: 0.5, 3: 0.4}
"""How many topics a problem has."""

WITHOUT_ITS_GATE: Final = 0.06
"""How often a topic comes with one of its gates off."""


def pick_topics(luck: Luck) -> frozenset[str]:
    """One, two or three topics that meet."""
    found: set[str] = set()
    number = luck.weighted(NUMBERS)
    while len(found) < number:
        found.add(luck.weighted({name: topic.weight for name, topic in TOPICS.items()}))
    return frozenset({"limit"} if "limit" in found else found)


def pick_gates(luck: Luck, topics: frozenset[str]) -> frozenset[str]:
    """Defaults of 1.37, all, or some; with those that the topics need, nearly always."""
    way = luck.weighted({"default": 0.6, "all": 0.25, "some": 0.15})
    gates = set(DEFAULT_1_37 if way == "default" else ALL_GATES)
    if way == "some":
        gates = {gate for gate in ALL_GATES if luck.chance(0.6)}
    needed = [gate for name in sorted(topics) for gate in TOPICS[name].gates]
    gates |= set(needed)
    if needed and luck.chance(WITHOUT_ITS_GATE):
        gates.discard(luck.one(needed))
    return frozenset(gates)


def pick_channel(luck: Luck, gates: frozenset[str]) -> str:
    """A copy of upstream's allocator that has all the gates; never the stable one, whose answers change from run to run."""
    return "experimental" if gates & EXPERIMENTAL or luck.chance(0.3) else "incubating"
