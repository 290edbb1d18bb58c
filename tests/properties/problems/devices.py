"""Devices as drivers publish them: attributes, capacities with policies, taints, what partitions draw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .things import CONDITIONS, GROUPS, MODELS, ROOT, TAGS, TAINT_KEYS, VERSIONS

if TYPE_CHECKING:
    from .luck import Luck
    from .things import Json

SIZES = (1, 2, 4, 8)
"""Of partitions, in parts of the whole."""

WHOLE = 8


class Devices:
    """Makes devices.

    Args:
        luck: the dice.
        topics: of the problem.
    """

    def __init__(self, luck: Luck, topics: frozenset[str]) -> None:
        self._luck = luck
        self._topics = topics
        self._waits = 0.45

    def new_pool(self) -> None:
        """Pools differ in how many of their devices have binding conditions: where none has, the pool comes first (alloc P-18)."""
        self._waits = self._luck.pick(0.0, 0.4, 0.8)

    def _met(self, topic: str, often: float, seldom: float = 0.03) -> bool:
        """Whether a device has to do with a topic: often if it is the problem's, else seldom."""
        return self._luck.chance(often if topic in self._topics else seldom)

    def device(self, driver: str, name: str, number: int) -> Json:
        """One device without counters and place."""
        made: Json = {"name": name, "attributes": self._attributes(driver, number)}
        if self._luck.chance(0.9):
            shared = self._met("capacity", 0.75)
            made["capacity"] = self._capacity(driver, shared=shared)
            if shared or self._luck.chance(0.05):
                made["allowMultipleAllocations"] = shared
        elif self._met("capacity", 0.5):
            made["allowMultipleAllocations"] = True  # shared without limit (alloc Q-7)
        if self._met("taints", 0.4):
            made["taints"] = [self._taint() for _ in range(self._luck.pick(1, 1, 2))]
        if self._met("binding", self._waits):
            made["bindingConditions"] = list(CONDITIONS[: self._luck.pick(1, 2)])
            made["bindingFailureConditions"] = ["example.com/failed"]
        if self._met("binding", 0.3, 0.02):
            made["bindsToNode"] = True
        if self._met("allocatable", 0.6):
            made["nodeAllocatableResources"] = self._allocatable(sorted(made.get("capacity", ())))
        return made

    def _allocatable(self, capacities: list[str]) -> Json:
        """What the device takes of its node (control-plane V-105): as itself, by a capacity, for what runs beside it."""
        luck = self._luck
        mappings: list[Json] = [{"deviceMultiplier": luck.pick("1", "500m", "2")}]
        mappings += [{"capacityKey": name, "capacityMultiplier": luck.pick("1", "2")} for name in capacities]
        overhead = luck.pick({"perPod": "1"}, {"perContainer": "100m"}, {"perPod": "1", "perContainer": "1"})
        entries = [{"mapping": luck.one(mappings)}, {"overhead": overhead}]
        entries.append({**entries[0], **entries[1]})
        return {
            name: luck.one(entries) for name in luck.some(["cpu", "memory", "hugepages-2Mi"], luck.pick(1, 2))
        }

    def _attributes(self, driver: str, number: int) -> Json:
        luck = self._luck
        made: Json = {
            self._name(driver, "model"): {"string": luck.one(MODELS)},
            "index": {"int": number},
            "ecc": {"bool": luck.chance(0.6)},
        }
        lists = "lists" in self._topics
        if luck.chance(0.93):
            made["numa"] = (
                {"ints": luck.some([0, 1, 2], luck.pick(1, 2, 2))}
                if lists and luck.chance(0.6)
                else {"int": luck.pick(0, 1)}
            )
        if luck.chance(0.9):
            made[ROOT] = {"string": f"pci0000:0{luck.pick(0, 0, 1, 2)}"}
        if luck.chance(0.5):
            made["firmware"] = {"version": luck.one(VERSIONS)}
        if lists and luck.chance(0.9):
            made["tags"] = (
                {"strings": luck.some(TAGS, luck.pick(1, 1, 2, 3))}
                if luck.chance(0.8)
                else {"string": luck.one(TAGS)}
            )
        if lists and luck.chance(0.3):
            made["firmware"] = {"versions": luck.some(VERSIONS, 2)}
            made["flags"] = {"bools": [luck.chance(0.5)]}
        return made

    def _name(self, driver: str, name: str) -> str:
        """Names of a driver's own may have its domain in front (alloc C-5)."""
        return name if self._luck.chance(0.85) else f"{driver}/{name}"

    def _capacity(self, driver: str, *, shared: bool) -> Json:
        luck = self._luck
        units = luck.pick(4, 6, 8, 16)
        name = "memory" if "capacity" in self._topics else self._name(driver, "memory")
        made: Json = {name: {"value": f"{units}Gi"}}
        if shared and luck.chance(0.75):
            made[name]["requestPolicy"] = self._policy(units)
        if luck.chance(0.3):
            cores = luck.pick(1, 2, 4)
            made["cores"] = {"value": str(cores)}
            if shared and luck.chance(0.7):
                made["cores"]["requestPolicy"] = self._cores(cores)
        return made

    def _policy(self, units: int) -> Json:
        luck = self._luck
        kind = luck.weighted({"range": 0.5, "values": 0.3, "default": 0.2})
        if kind == "default":
            return {"default": luck.pick("1Gi", "2Gi", "0")}
        if kind == "values":
            values = sorted(
                luck.some([each for each in (1, 2, 3, 4, 6, 8) if each <= units], luck.pick(1, 2, 3))
            )
            return {"default": f"{luck.one(values)}Gi", "validValues": [f"{each}Gi" for each in values]}
        low, step = luck.pick(1, 2), luck.pick(1, 2)
        made: Json = {"min": f"{low}Gi"}
        if luck.chance(0.6):
            made["step"] = f"{step}Gi"
        if luck.chance(0.5):
            made["max"] = f"{low + step * ((units - low) // step)}Gi"
        return {"default": f"{low + step * luck.pick(0, 1)}Gi", "validRange": made}

    def _cores(self, cores: int) -> Json:
        """Whole cores, or parts of one (gate DRAFractionalCapacityRange)."""
        if cores > 1 and self._luck.chance(0.5):
            return {"default": "1", "validRange": {"min": "1", "step": "1"}}
        return {"default": "500m", "validRange": {"min": "250m", "step": "250m", "max": str(cores)}}

    def _taint(self) -> Json:
        luck = self._luck
        made = {
            "key": luck.one(TAINT_KEYS),
            "effect": luck.pick("NoSchedule", "NoSchedule", "NoExecute", "None"),
        }
        return {**made, "value": luck.pick("a", "b")} if luck.chance(0.5) else made

    def counter_sets(self) -> list[Json]:
        """One or two physical devices that are cut into parts."""
        made = []
        for number in range(self._luck.pick(1, 1, 2)):
            counters = {
                "memory": {"value": f"{WHOLE * 10}Gi"},
                "slices": {"value": str(self._luck.pick(WHOLE, WHOLE, 7))},
            }
            made.append({"name": f"card-{number}", "counters": counters})
        return made

    def partition(self, device: Json, sets: list[Json]) -> None:
        """Let a device draw from one physical device, seldom from both."""
        luck = self._luck
        drawn = []
        for each in luck.some(sets, luck.pick(1, 1, 1, 1, 2)):
            size = luck.one(SIZES)
            made: Json = {
                "counterSet": each["name"],
                "counters": {"memory": {"value": f"{size * 10}Gi"}, "slices": {"value": str(size)}},
            }
            if luck.chance(0.1):
                del made["counters"]["memory"]
            if self._met("groups", 0.75, 0.0):
                made["compatibilityGroups"] = luck.some(GROUPS, luck.pick(1, 1, 2))
            drawn.append(made)
        device["consumesCounters"] = drawn

    def odd(self) -> dict[str, Any]:
        """An attribute that no expression can be evaluated with (alloc L-7)."""
        return {"version": "no version"}
