"""Classes, and claims that ask for devices of a problem's drivers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .things import DERIVED, MODELS, ROOT, TAGS, TAINT_KEYS, cel, meta

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .luck import Luck
    from .things import Json

FAILING = (
    'device.attributes["{0}"].gone == 1',
    'device.attributes["{0}"].model.startsWith("a") && device.attributes["{0}"].gone',
)
"""Selectors that compile, and fail on every device."""

SMALL = (1, 1, 1, 2, 2, 3)
SEVERAL = (1, 2, 3, 4, 6, 8)
LARGE = (4, 8, 12, 16, 17, 20, 31, 33)
"""Counts of devices."""


class Claims:
    """Makes classes and claims.

    Args:
        luck: the dice.
        topics: of the problem.
        drivers: whose devices there are.
    """

    def __init__(self, luck: Luck, topics: frozenset[str], drivers: Sequence[str]) -> None:
        self._luck = luck
        self._topics = topics
        self._drivers = drivers
        self.classes = self._classes()

    def _classes(self) -> list[Json]:
        made = []
        for driver in self._drivers:
            name = driver.partition(".")[0]
            selectors = [cel(f'device.driver == "{driver}"')]
            if self._luck.chance(0.1) and "limit" not in self._topics:
                selectors.append(cel(self._selector(driver)))
            made.append(
                {**meta(name, "DeviceClass"), "spec": {"selectors": selectors, **self._class_config(driver)}}
            )
        if self._luck.chance(0.15):
            made.append({**meta("any", "DeviceClass"), "spec": {}})
        return made

    def _class_config(self, driver: str) -> Json:
        if not self._luck.chance(0.7 if "config" in self._topics else 0.05):
            return {}
        return {"config": [self._opaque(driver) for _ in range(self._luck.pick(1, 1, 2))]}

    def _opaque(self, driver: str) -> Json:
        return {"opaque": {"driver": driver, "parameters": {"mode": self._luck.pick("fast", "safe")}}}

    def _selector(self, driver: str) -> str:
        luck = self._luck
        mine = f'device.attributes["{driver}"]'
        memory = f'device.capacity["{driver}"].?memory.orValue(quantity("1Gi"))'
        if luck.chance(0.08 if "broken" in self._topics else 0.002):
            return luck.pick(*FAILING).format(driver)
        choices = [
            f'{mine}.model != "{luck.one(MODELS)}"',
            f'{mine}.model in ["{luck.one(MODELS)}", "{luck.one(MODELS)}"]',
            f"{mine}.index >= {luck.pick(0, 1, 2)}",
            f"{mine}.index % 2 == {luck.pick(0, 1)}",
            f"{mine}.ecc",
            f'{memory}.compareTo(quantity("{luck.pick(4, 6, 8)}Gi")) >= 0',
            'device.attributes["resource.kubernetes.io"].?pcieRoot.orValue("") != "pci0000:01"',
        ]
        if "lists" in self._topics:
            choices += [f'!has({mine}.tags) || {mine}.tags.includes("{luck.one(TAGS)}")'] * 3
        return luck.one(choices)

    def claim(self, number: int, budget: int) -> Json:
        """One claim that wants about so many devices."""
        luck = self._luck
        requests: list[Json] = []
        wanted = max(1, budget)
        for index in range(luck.pick(1, 1, 2, 2, 3)):
            if wanted <= 0:
                break
            counts = LARGE if "limit" in self._topics else SEVERAL if "large" in self._topics else SMALL
            count = luck.one([each for each in counts if each <= wanted] or [1])
            requests.append(self._request(f"r{index}", count))
            wanted -= count
        devices: Json = {"requests": requests}
        if constraints := self._constraints(requests):
            devices["constraints"] = constraints
        if config := self._config(requests):
            devices["config"] = config
        return {**meta(f"claim-{number}", "ResourceClaim", namespace="default"), "spec": {"devices": devices}}

    def _request(self, name: str, count: int) -> Json:
        if not self._luck.chance(0.75 if {"prioritized", "limit"} & self._topics else 0.04):
            return {"name": name, "exactly": self._entry(count, is_sub=False)}
        subs = []
        for index in range(self._luck.pick(2, 2, 3)):
            other = (
                self._luck.one(LARGE)
                if "limit" in self._topics
                else max(1, count + self._luck.pick(-1, 0, 0, 1, 2))
            )
            entry = self._entry(other, is_sub=True)
            subs.append({"name": f"s{index}", **entry})
        return {"name": name, "firstAvailable": subs}

    def _entry(self, count: int, *, is_sub: bool) -> Json:
        luck = self._luck
        made: Json = {
            "deviceClassName": luck.one(self.classes)["metadata"]["name"],
            "allocationMode": "ExactCount",
            "count": count,
        }
        if luck.chance(0.6 if "all" in self._topics else 0.02):
            made["allocationMode"] = "All"
            del made["count"]
        if luck.chance(0.005):
            made["deviceClassName"] = "gone"
        driver = luck.one(self._drivers)
        if "limit" not in self._topics and (luck.chance(0.3) or made["allocationMode"] == "All"):
            bound = (
                ""
                if made["deviceClassName"] == driver.partition(".")[0]
                else f'device.driver != "{driver}" || '
            )
            made["selectors"] = [
                cel(f"{bound}({self._selector(driver)})" if bound else self._selector(driver))
            ]
        if luck.chance(0.7 if "taints" in self._topics else 0.03):
            made["tolerations"] = [self._toleration() for _ in range(luck.pick(1, 1, 2))]
        if luck.chance(0.75 if "capacity" in self._topics else 0.02):
            made["capacity"] = {"requests": self._amounts()}
        if not is_sub and luck.chance(0.5 if "admin" in self._topics else 0.01):
            made["adminAccess"] = luck.chance(0.93)
        if luck.chance(0.8 if "derived" in self._topics else 0.0):
            made["derivedAttributes"] = [{"name": DERIVED, "expression": self._expression()}]
        return made

    def _toleration(self) -> Json:
        luck = self._luck
        if luck.chance(0.15):
            return {"operator": "Exists"}
        made: Json = {"key": luck.one(TAINT_KEYS), "operator": "Exists"}
        if luck.chance(0.35):
            made |= {"operator": "Equal", "value": luck.pick("a", "b")}
        if luck.chance(0.4):
            made["effect"] = luck.pick("NoSchedule", "NoExecute")
        return made

    def _amounts(self) -> Json:
        luck = self._luck
        made = {"memory": luck.pick("1Gi", "2Gi", "2Gi", "3Gi", "4Gi", "1536Mi", "5Gi")}
        if luck.chance(0.2):
            made["cores"] = luck.pick("1", "500m", "600m", "2")
        if luck.chance(0.02):
            made["gone"] = "1"
        return made

    def _expression(self) -> str:
        mine = "device.attributes[device.driver]"
        return self._luck.pick(
            f"{mine}.index / 2",
            f"{mine}.index % 2",
            f"{mine}.model",
            f'{mine}.ecc ? "e" : "n"',
            f"{mine}.ecc",
        )

    def _names(self, requests: Sequence[Json]) -> list[str]:
        """Everything that a constraint or config may name."""
        subs = [
            f"{each['name']}/{sub['name']}" for each in requests for sub in each.get("firstAvailable", ())
        ]
        return [*(each["name"] for each in requests), *subs]

    def _named(self, requests: Sequence[Json]) -> Json:
        if self._luck.chance(0.55):
            return {}
        return {"requests": self._luck.some(self._names(requests), self._luck.pick(1, 2, 2))}

    def _constraints(self, requests: Sequence[Json]) -> list[Json]:
        luck = self._luck
        made: list[Json] = []
        if "limit" in self._topics:
            return made
        entries = [
            entry
            for each in requests
            for entry in ([each["exactly"]] if "exactly" in each else each["firstAvailable"])
        ]
        if any("derivedAttributes" in entry for entry in entries):
            made.append({luck.pick("matchAttribute", "matchAttribute", "distinctAttribute"): DERIVED})
        if luck.chance(0.9 if "match" in self._topics else 0.04):
            made.append({"matchAttribute": self._attribute(), **self._named(requests)})
        if luck.chance(0.9 if "distinct" in self._topics else 0.02):
            made.append({"distinctAttribute": self._attribute(), **self._named(requests)})
        if luck.chance(0.8 if "lists" in self._topics else 0.0):
            made.append(
                {
                    luck.pick("matchAttribute", "distinctAttribute"): self._attribute("tags"),
                    **self._named(requests),
                }
            )
        return made

    def _attribute(self, *names: str) -> str:
        name = self._luck.one(names or ("numa", "numa", "model", "firmware", "index", "ecc", ROOT, ROOT))
        return name if "/" in name else f"{self._luck.one(self._drivers)}/{name}"

    def _config(self, requests: Sequence[Json]) -> list[Json]:
        if not self._luck.chance(0.8 if "config" in self._topics else 0.03):
            return []
        many = self._luck.pick(1, 2, 3)
        return [{**self._named(requests), **self._opaque(self._luck.one(self._drivers))} for _ in range(many)]


def counted(claims: Sequence[dict[str, Any]]) -> int:
    """Devices that claims ask for at most, those of All not counted."""
    entries = [
        entry
        for claim in claims
        for each in claim["spec"]["devices"]["requests"]
        for entry in (each.get("exactly"), *each.get("firstAvailable", ()))
        if entry
    ]
    return sum(entry.get("count", 0) for entry in entries)
