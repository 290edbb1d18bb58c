"""One problem: a node, what is published, what is taken, and what is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.quantity import NANO, Quantity

from .claims import Claims
from .luck import Luck
from .pools import Pools
from .things import DRIVERS, NODES, OPERATIONS
from .topics import ALL_GATES, pick_channel, pick_gates, pick_topics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .things import Json


def problem(
    seed: int, number: int, topics: frozenset[str] | None = None, *, also: frozenset[str] = frozenset()
) -> Json:
    """The problem with that number; the same seed and number give the same one.

    Args:
        seed: of the whole sequence.
        number: from 0.
        topics: instead of random ones.
        also: topics that it has besides.
    """
    luck = Luck(f"{seed}/{number}")
    return make(luck, f"{seed}/{number}", (pick_topics(luck) if topics is None else topics) | also)


def make(luck: Luck, name: str, met: frozenset[str]) -> Json:
    """A problem by other dice.

    Args:
        luck: the dice.
        name: its id.
        met: its topics.
    """
    gates = pick_gates(luck, met)
    nodes = [_node(luck, met, name) for name in luck.shuffled(NODES)]
    node = nodes[0]
    several = luck.chance(0.4 if "places" in met else 0.03)
    drivers = luck.some(DRIVERS, luck.pick(1, 1, 2, 2, 3))
    pools = Pools(luck, met, node, elsewhere=0.7 if several else 0.15)
    for driver in drivers:
        pools.publish(driver)
    claims = Claims(luck, met, drivers)
    many = luck.pick(2, 2, 3) if "claims" in met else luck.weighted({1: 0.93, 2: 0.07 * ("limit" not in met)})
    budget = (
        60
        if "limit" in met
        else luck.pick(4, 8, 12)
        if "large" in met
        else luck.pick(2, 3, 4, 5)
        if "tight" in met
        else luck.pick(1, 2, 2, 3)
    )
    return {
        "id": name,
        "topic": ", ".join(sorted(met)),
        "note": "; ".join(pools.defects),
        "channel": pick_channel(luck, gates),
        "features": {gate: gate in gates for gate in ALL_GATES},
        **({"nodes": nodes[: luck.pick(2, 3)]} if several else {"node": node}),
        "classes": claims.classes,
        "claims": [claims.claim(index, budget) for index in range(many)],
        "slices": luck.shuffled(pools.slices),
        "allocated": _taken(luck, met, pools.slices),
    }


def _node(luck: Luck, topics: frozenset[str], name: str) -> Json:
    labels = {"kubernetes.io/hostname": name, "zone": luck.pick("a", "b"), "rank": luck.pick("0", "2", "7")}
    declared = [OPERATIONS] if "operations" in topics and luck.chance(0.6) else []
    made: Json = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
    return {**made, "status": {"declaredFeatures": declared}} if declared else made


def _taken(luck: Luck, topics: frozenset[str], slices: Sequence[Json]) -> Json:
    """What other claims hold: whole devices, and shares that fit into their devices."""
    devices: list[Json] = []
    shares: list[Json] = []
    sums: list[Json] = []
    often = 0.35 if {"taken", "admin"} & topics else 0.08
    for each in slices:
        spec = each["spec"]
        for device in spec.get("devices", ()):
            if not luck.chance(often):
                continue
            ref = {"driver": spec["driver"], "pool": spec["pool"]["name"], "device": device["name"]}
            if not device.get("allowMultipleAllocations") or luck.chance(0.05):
                devices.append(ref)
                continue
            shares += [{**ref, "shareID": f"share-{number}"} for number in range(luck.pick(1, 1, 2))]
            if device.get("capacity"):
                sums.append({**ref, "capacity": _used(luck, device["capacity"])})
    if luck.chance(0.1):
        devices.append({"driver": DRIVERS[0], "pool": "gone", "device": "dev-0"})
    return {"devices": devices, "sharedDeviceIDs": shares, "aggregatedCapacity": sums}


def _used(luck: Luck, capacity: Json) -> Json:
    """Some of each capacity, seldom all of it."""
    parts = luck.pick(1, 2, 2, 3, 4)
    return {
        name: str(Quantity(Quantity.parse(entry["value"]).nano * parts // (4 * NANO) * NANO))
        for name, entry in capacity.items()
    }
