"""What raw API objects say about pods and devices. Pure; called by `narrator` and `story`.

Reads plain dictionaries and none of the operator's own model: what the demo claims must not depend on the code that it shows.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Obj = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Held:
    """One device out of the results of a claim.

    Attributes:
        driver, pool, device: its id.
        request: `request`, or `request/subrequest` for a prioritized list.
    """

    driver: str
    pool: str
    device: str
    request: str

    def __str__(self) -> str:
        """The id as Kubernetes prints it."""
        return f"{self.driver}/{self.pool}/{self.device}"


def key_of(obj: Obj) -> str:
    """`namespace/name`, or the name of a cluster-scoped object."""
    metadata = obj["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if "namespace" in metadata else str(metadata["name"])


def uid_of(obj: Obj) -> str:
    """The uid."""
    return str(obj["metadata"]["uid"])


def held_by(claim: Obj) -> tuple[Held, ...]:
    """Devices that a claim holds; none if it is not allocated."""
    allocation = claim.get("status", {}).get("allocation") or {}
    results = allocation.get("devices", {}).get("results", [])
    return tuple(Held(item["driver"], item["pool"], item["device"], item["request"]) for item in results)


def claims_of(pod: Obj, claims: Mapping[str, Obj]) -> list[Obj]:
    """The generated claims of a pod that exist, found by their owner, in the order of their names."""
    uid = uid_of(pod)
    found = (claim for claim in claims.values() if uid in {owner["uid"] for owner in _owners(claim)})
    return sorted(found, key=key_of)


def _owners(obj: Obj) -> list[Obj]:
    return list(obj["metadata"].get("ownerReferences", []))


def devices_of(pod: Obj, claims: Mapping[str, Obj]) -> tuple[Held, ...]:
    """Devices that are allocated to the claims of a pod and reserved for it."""
    uid = uid_of(pod)
    reserved = (
        claim
        for claim in claims_of(pod, claims)
        if uid in {consumer["uid"] for consumer in claim.get("status", {}).get("reservedFor", [])}
    )
    return tuple(device for claim in reserved for device in held_by(claim))


def held_twice(claims: Iterable[Obj]) -> list[str]:
    """Devices that several claims hold: always none, or something is very wrong."""
    counts = Counter(str(device) for claim in claims for device in held_by(claim))
    return sorted(device for device, count in counts.items() if count > 1)


def phase_of(pod: Obj) -> str:
    """Pending, Running, ….."""
    return str(pod.get("status", {}).get("phase", ""))


def node_of(pod: Obj) -> str:
    """The node that the pod is bound to; empty if to none."""
    return str(pod["spec"].get("nodeName") or "")


def is_gated(pod: Obj) -> bool:
    """Whether a scheduling gate is left."""
    return bool(pod["spec"].get("schedulingGates"))


def attribute(slices: Iterable[Obj], held: Held, name: str) -> object:
    """The value of a device's attribute; None if it has none."""
    for slice_ in slices:
        spec = slice_["spec"]
        if (spec["driver"], spec["pool"]["name"]) != (held.driver, held.pool):
            continue
        for device in spec["devices"]:
            if device["name"] == held.device:
                return next(iter(device.get("attributes", {}).get(name, {}).values()), None)
    return None


def in_words(devices: Sequence[Held]) -> str:
    """Devices without their pool, runs of numbers folded: `gpu-0…gpu-7 (gpu.nvidia.com)`."""
    texts = []
    for driver, group in groupby(devices, key=lambda held: held.driver):
        texts.append(f"{', '.join(_folded([held.device for held in group]))} ({driver})")
    return " + ".join(texts)


def _folded(names: Sequence[str]) -> list[str]:
    """Names with runs of three and more consecutive numbers as first…last."""
    runs: list[list[str]] = []
    for name in names:
        if runs and _follows(runs[-1][-1], name):
            runs[-1].append(name)
        else:
            runs.append([name])
    return [text for run in runs for text in (run if len(run) < 3 else [f"{run[0]}…{run[-1]}"])]


def _follows(left: str, right: str) -> bool:
    first, second = re.fullmatch(r"(.*?)(\d+)", left), re.fullmatch(r"(.*?)(\d+)", right)
    if first is None or second is None:
        return False
    return first[1] == second[1] and int(first[2]) + 1 == int(second[2])
