"""Pools of slices: for a node, for some, for all, device by device; and pools that are broken in one of the ways that happen."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from .devices import Devices
from .things import NODES, meta

if TYPE_CHECKING:
    from .luck import Luck
    from .things import Json

DEFECTS = (
    "missing",
    "surplus",
    "older",
    "newer-here",
    "newer-elsewhere",
    "twice",
    "counter",
    "set-twice",
    "odd-attribute",
)
"""What can be wrong with a pool."""

SKIPPED = (["*"], ["NodeUnprepareResources"], ["NodePrepareResources", "NodeUnprepareResources"])
"""Lists of node operations that the API server takes (alloc J-2)."""


class Pools:
    """Makes slices.

    Args:
        luck: the dice.
        topics: of the problem.
        node: its name and its labels; the one that is asked for, at first.
        elsewhere: how often another node has a pool of its own, where this one has.
    """

    def __init__(self, luck: Luck, topics: frozenset[str], node: Json, *, elsewhere: float) -> None:
        self._luck = luck
        self._topics = topics
        self._node: str = node["metadata"]["name"]
        self._zone: str = node["metadata"]["labels"]["zone"]
        self._elsewhere = elsewhere
        self._devices = Devices(luck, topics)
        self.slices: list[Json] = []
        self.defects: list[str] = []

    def publish(self, driver: str) -> None:
        """All pools of a driver."""
        for kind in self._kinds():
            if kind == "local":
                self._pool(driver, self._node, {"nodeName": self._node})
                for other in (each for each in NODES if each != self._node):
                    if self._luck.chance(self._elsewhere):
                        self._pool(driver, other, {"nodeName": other})
            elif kind == "all":
                self._pool(driver, self._luck.pick("net", "a-net"), {"allNodes": True})
            elif kind == "some":
                self._pool(driver, self._luck.pick("rack", "zz-rack"), {"nodeSelector": self._selector()})
            elif kind == "several":
                self._several(driver)
            else:
                self._pool(driver, self._luck.pick("parts", "b-parts"), {"perDeviceNodeSelection": True})

    def _kinds(self) -> list[str]:
        if "places" in self._topics:
            return self._luck.some(["local", "all", "some", "each", "each", "several"], self._luck.pick(1, 2))
        return (
            ["local"]
            if self._luck.chance(0.75)
            else self._luck.some(["local", "all", "some"], self._luck.pick(1, 2))
        )

    def _selector(self) -> Json:
        """One term, as the API wants it; mostly one that holds."""
        luck = self._luck
        zones = luck.some(["a", "b", "c"], luck.pick(1, 2))
        if luck.chance(0.75) and self._zone not in zones:
            zones.append(self._zone)
        term: Json = {"matchExpressions": [{"key": "zone", "operator": "In", "values": zones}]}
        if luck.chance(0.3):
            term["matchExpressions"].append(
                luck.pick(
                    {"key": "rank", "operator": "Gt", "values": ["1"]},
                    {"key": "kubernetes.io/hostname", "operator": "Exists"},
                    {"key": "gone", "operator": "DoesNotExist"},
                    {"key": "zone", "operator": "NotIn", "values": ["c"]},
                )
            )
        if luck.chance(0.15):
            names = [self._node if luck.chance(0.8) else luck.one(NODES)]
            term["matchFields"] = [{"key": "metadata.name", "operator": "In", "values": names}]
        return {"nodeSelectorTerms": [term]}

    def _pool(self, driver: str, name: str, where: Json) -> None:
        luck = self._luck
        self._devices.new_pool()
        devices = [self._devices.device(driver, f"dev-{number}", number) for number in range(self._size())]
        if luck.chance(0.15):
            devices = luck.shuffled(devices)
        sets = self._cut(devices)
        for device in devices if "perDeviceNodeSelection" in where else ():
            device.update(self._own_place())
        parts = min(luck.pick(1, 1, 1, 2, 3), max(1, len(devices)))
        groups = [
            devices[number::parts]
            if luck.chance(0.2)
            else devices[len(devices) * number // parts : len(devices) * (number + 1) // parts]
            for number in range(parts)
        ]
        groups = self._whole(groups, devices)
        made = [self._slice(driver, name, where, {"devices": group}) for group in groups]
        if sets:
            elsewhere = {"allNodes": True} if "perDeviceNodeSelection" in where else where
            made.append(self._slice(driver, name, elsewhere, {"sharedCounters": sets}))
        self._finish(made)

    @staticmethod
    def _whole(groups: list[list[Json]], devices: list[Json]) -> list[list[Json]]:
        """The groups, if they are a partition of the devices, else one group: chance decided group by group."""
        names = sorted(device["name"] for group in groups for device in group)
        return groups if names == sorted(device["name"] for device in devices) else [devices]

    def _size(self) -> int:
        if "limit" in self._topics:
            return 40
        if "large" in self._topics:
            return self._luck.pick(6, 8, 8, 12, 16, 24)
        if {"tight", "capacity", "admin"} & self._topics:
            return self._luck.pick(1, 2, 2, 3, 4)
        return self._luck.pick(1, 2, 3, 4, 5, 6)

    def _cut(self, devices: list[Json]) -> list[Json]:
        """Make partitions of the devices; the counters that they draw from."""
        partitions = {"counters", "groups"} & self._topics
        often = 0.9 if partitions else 0.0 if "limit" in self._topics else 0.03
        if not devices or not self._luck.chance(often):
            return []
        sets = self._devices.counter_sets()
        for device in devices:
            if self._luck.chance(0.9):
                self._devices.partition(device, sets)
        return sets

    def _own_place(self) -> Json:
        kind = self._luck.weighted({"name": 0.5, "all": 0.2, "some": 0.3})
        if kind == "name":
            return {"nodeName": self._node if self._luck.chance(0.65) else self._luck.one(NODES)}
        return {"allNodes": True} if kind == "all" else {"nodeSelector": self._selector()}

    def _several(self, driver: str) -> None:
        """One pool with a slice for each of several nodes, as devices of several hosts have it (alloc K-11, P-10)."""
        nodes = [self._node, *(each for each in NODES if each != self._node)][: self._luck.pick(2, 3)]
        sets = self._devices.counter_sets() if self._luck.chance(0.5) else []
        made = []
        for number, node in enumerate(self._luck.shuffled(nodes)):
            devices = [
                self._devices.device(driver, f"host-{number}-{index}", index)
                for index in range(self._luck.pick(1, 2, 3))
            ]
            for device in devices if sets else ():
                self._devices.partition(device, sets)
            made.append(self._slice(driver, "multi", {"nodeName": node}, {"devices": devices}))
        if sets:
            made.append(self._slice(driver, "multi", {"allNodes": True}, {"sharedCounters": sets}))
        self._finish(made)

    def _slice(self, driver: str, pool: str, where: Json, more: Json) -> Json:
        """A slice; generation and count come when the pool is whole."""
        number = len(self.slices) + self._luck.pick(*range(100, 1000))
        made = meta(f"{self._luck.pick(*'abcdef')}-{pool}-{number}", "ResourceSlice")
        made["spec"] = {"driver": driver, "pool": {"name": pool}, **copy.deepcopy(where), **more}
        often = 0.6 if "operations" in self._topics else 0.01
        if more.get("devices") and self._luck.chance(often):
            made["spec"]["skipNodeOperations"] = self._luck.pick(*SKIPPED)
        return made

    def _finish(self, made: list[Json]) -> None:
        generation = self._luck.pick(1, 1, 2, 5)
        for each in made:
            each["spec"]["pool"] |= {"generation": generation, "resourceSliceCount": len(made)}
        if self._luck.chance(0.6 if "broken" in self._topics else 0.03):
            made = self._broken(made, self._luck.one(DEFECTS))
        self.slices += made

    def _broken(self, made: list[Json], defect: str) -> list[Json]:
        pool = made[0]["spec"]["pool"]
        change = getattr(self, f"_make_{defect.replace('-', '_')}")
        self.defects.append(f"{defect} in {pool['name']}")
        extra: list[Json] = change(made, pool["generation"], pool["resourceSliceCount"]) or []
        return [*made, *extra]

    def _counted(self, made: list[Json], count: int) -> None:
        for each in made:
            each["spec"]["pool"]["resourceSliceCount"] = count

    def _make_missing(self, made: list[Json], _: int, count: int) -> None:
        self._counted(made, count + 1)

    def _make_surplus(self, made: list[Json], _: int, count: int) -> None:
        self._counted(made, max(1, count - 1))

    def _other(self, made: list[Json], generation: int, count: int, **where: Any) -> Json:
        """A slice of another generation with a device of its own."""
        spec = made[0]["spec"]
        driver, pool = spec["driver"], spec["pool"]["name"]
        place = where or {"nodeName": self._node}
        other = self._slice(driver, pool, place, {"devices": [self._devices.device(driver, "other", 0)]})
        other["spec"]["pool"] |= {"generation": generation, "resourceSliceCount": count}
        return other

    def _make_older(self, made: list[Json], generation: int, _: int) -> list[Json]:
        return [self._other(made, generation - 1, 1)]

    def _make_newer_here(self, made: list[Json], generation: int, _: int) -> list[Json]:
        return [self._other(made, generation + 1, self._luck.pick(1, 2))]

    def _make_newer_elsewhere(self, made: list[Json], generation: int, count: int) -> list[Json]:
        node = self._luck.one([each for each in NODES if each != self._node])
        if self._luck.chance(0.5):
            self._counted(
                made, count + 1
            )  # then the node looks further, and finds that it is obsolete (alloc P-9)
        return [self._other(made, generation + 1, 1, nodeName=node)]

    def _make_twice(self, made: list[Json], _generation: int, _count: int) -> None:
        devices = self._luck.one(made)["spec"].get("devices")
        if devices:
            devices.append(copy.deepcopy(devices[0]))

    def _make_counter(self, made: list[Json], _generation: int, _count: int) -> None:
        for each in made:
            for device in each["spec"].get("devices", ()):
                if drawn := device.get("consumesCounters"):
                    drawn[0].update(
                        {"counterSet": "gone"}
                        if self._luck.chance(0.5)
                        else {"counters": {"gone": {"value": "1"}}}
                    )
                    return

    def _make_set_twice(self, made: list[Json], _generation: int, _count: int) -> None:
        for each in made:
            if sets := each["spec"].get("sharedCounters"):
                sets.append(copy.deepcopy(sets[0]))

    def _make_odd_attribute(self, made: list[Json], _generation: int, _count: int) -> None:
        devices = self._luck.one(made)["spec"].get("devices")
        if devices:
            self._luck.one(devices)["attributes"]["odd"] = self._devices.odd()
