"""Random devices for random expressions: attributes and capacities of the names in `shapes`, mostly of the types that are told there; seeded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .shapes import ATTRIBUTES, CAPACITIES, DOMAINS, OWN

if TYPE_CHECKING:
    import random

Json = dict[str, Any]

PRESENT: Final = 0.8
"""How often a device has an attribute."""

ODD: Final = 0.08
"""How often an attribute has another type than the usual one."""

BROKEN: Final = 0.004
"""How often a version is none, which makes every expression fail on the device (alloc L-7)."""

MARKS: Final[dict[str, tuple[str, list[Any]]]] = {
    "string": ("string", ["a", "A100-SXM", "", "héé", "1.0.0", "pci0000:00", "日本 😀", "10Gi", "x,y,z", "10.0.0.1", "Gpu", "a" * 64, "3", "true", "1h", "https://h.io/p?q=1"]),
    "int": ("int", [0, 1, 2, 3, -1, -7, 40, 2**63 - 1, -(2**63), 2**53 + 1]),
    "bool": ("bool", [True, False]),
    "semver": ("version", ["1.0.0", "1.2.3-rc.1", "10.4.0+b7", "2.0.0", "550.54.15", "0.0.1-alpha.1.x"]),
}  # fmt: skip
"""Field of a DeviceAttribute and values, by type."""

AMOUNTS: Final = [
    "1",
    "0",
    "-1",
    "500m",
    "1.5",
    "40Gi",
    "1024Mi",
    "10G",
    "1e3",
    "12E",
    "3n",
    "80Gi",
    "9223372036854775807",
    "0.1",
]


def device(rng: random.Random) -> Json:
    """A device, in the form of upstream's `Device`."""
    names = [(kind, name) for kind, group in ATTRIBUTES.items() for name in group]
    rng.shuffle(names)
    made: Json = {"driver": OWN if rng.random() < 0.95 else "other.io", "attributes": {}, "capacity": {}}
    for kind, name in names:
        if rng.random() < PRESENT:
            made["attributes"][_qualified(rng, name)] = _value(rng, kind)
    for name in CAPACITIES:
        if rng.random() < PRESENT:
            made["capacity"][_qualified(rng, name)] = {"value": rng.choice(AMOUNTS)}
    if rng.random() < 0.5:
        made["allowMultipleAllocations"] = rng.random() < 0.7
    return made


def _qualified(rng: random.Random, name: str) -> str:
    """With the own domain, without one, or now and then with a foreign one."""
    domain = rng.choices(["", *DOMAINS], [12, 6, 3, 1])[0]
    return f"{domain}/{name}" if domain else name


def _value(rng: random.Random, kind: str) -> Json:
    if rng.random() < ODD:
        kind = rng.choice(list(ATTRIBUTES))
    if rng.random() < BROKEN:
        return {"version": rng.choice(["bad", "1.0", "01.2.3"])}
    field, values = MARKS[kind.removeprefix("list_")]
    if kind.startswith("list_"):
        return {f"{field}s": [rng.choice(values) for _ in range(rng.randint(1, 4))]}
    return {field: rng.choice(values)}
