"""What became of the pods of a manifest, read off the API objects alone, and what a test may demand of it.

Used with either server; no part of the operator is used, so that both cannot be wrong in the same way.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Protocol

from .manifests import Object, workload_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

GATE = "dra-operator.io/allocate"
COMPONENT = "dra-operator"


@dataclass(frozen=True, slots=True)
class Device:
    """An allocated device: `driver/pool/name`, and its attributes by qualified name."""

    id: str
    attributes: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Its name in the pool."""
        return self.id.rpartition("/")[2]


@dataclass(frozen=True)
class Snapshot:
    """All objects of one namespace that matter, and the published slices, at one moment."""

    pods: list[Object]
    claims: list[Object]
    events: list[Object]
    slices: list[Object]
    _published: dict[str, Mapping[str, Any]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for obj in self.slices:
            spec = obj["spec"]
            for device in spec.get("devices") or ():
                key = f"{spec['driver']}/{spec['pool']['name']}/{device['name']}"
                self._published[key] = _attributes(spec["driver"], device)

    def matching(self, pattern: str) -> list[Object]:
        """Pods whose workload matches the pattern, by name."""
        found = [pod for pod in self.pods if fnmatchcase(workload_of(pod), pattern)]
        return sorted(found, key=lambda pod: str(pod["metadata"]["name"]))

    def claims_of(self, pod: Object) -> list[Object]:
        """Claims of the pod that exist."""
        generated = {
            entry["name"]: entry.get("resourceClaimName")
            for entry in (pod.get("status") or {}).get("resourceClaimStatuses") or ()
        }
        names = [
            entry.get("resourceClaimName") or generated.get(entry["name"])
            for entry in pod["spec"].get("resourceClaims") or ()
        ]
        return [claim for claim in self.claims if claim["metadata"]["name"] in names]

    def devices(self, pod: Object) -> dict[str, list[Device]]:
        """Request (`gpu`, `gpu/older`) → devices, over all claims that are reserved for the pod."""
        found: dict[str, list[Device]] = defaultdict(list)
        for claim in self.claims_of(pod):
            status = claim.get("status") or {}
            reserved = {consumer["uid"] for consumer in status.get("reservedFor") or ()}
            if pod["metadata"]["uid"] in reserved:
                for result in (status.get("allocation") or {}).get("devices", {}).get("results", ()):
                    key = f"{result['driver']}/{result['pool']}/{result['device']}"
                    found[result["request"]].append(Device(key, self._published.get(key, {})))
        return dict(found)

    def served(self, pattern: str) -> list[Object]:
        """Those that are bound."""
        return [pod for pod in self.matching(pattern) if pod["spec"].get("nodeName")]

    def waiting(self, pattern: str) -> list[Object]:
        """Those at our gate, with nothing allocated for them."""
        return [pod for pod in self.matching(pattern) if self._is_untouched(pod)]

    def _is_untouched(self, pod: Object) -> bool:
        gates = [gate["name"] for gate in pod["spec"].get("schedulingGates") or ()]
        return GATE in gates and not self.devices(pod)

    def told(self, pod: Object, component: str = COMPONENT) -> list[tuple[str, str]]:
        """Reason and text of the events about a pod from the operator, or from everybody where `component` is empty."""
        return [
            (str(event["reason"]), str(event["message"]))
            for event in self.events
            if event["involvedObject"].get("uid") == pod["metadata"]["uid"]
            and component in {"", (event.get("source") or {}).get("component")}
        ]


def _attributes(driver: str, device: Object) -> Mapping[str, Any]:
    """Attributes by qualified name, each with its value; devices of slices read as v1beta1 have them one level deeper."""
    attributes = device.get("attributes") or (device.get("basic") or {}).get("attributes") or {}
    return {
        name if "/" in name else f"{driver}/{name}": next(iter(value.values()))
        for name, value in attributes.items()
    }


class Demand(Protocol):
    """One thing that must hold in the end."""

    def problem(self, seen: Snapshot) -> str | None:
        """What is still wrong; None if it holds."""


@dataclass(frozen=True)
class Serves:
    """So many pods of a workload are bound, each with so many devices for each request.

    Args:
        pods: pattern of workload names.
        requests: request → number of devices.
        count: bound pods.
    """

    pods: str
    requests: Mapping[str, int]
    count: int = 1

    def problem(self, seen: Snapshot) -> str | None:
        """See Demand."""
        served = seen.served(self.pods)
        if len(served) != self.count:
            return f"{len(served)} pods {self.pods} are bound instead of {self.count}"
        for pod in served:
            got = {request: len(devices) for request, devices in seen.devices(pod).items()}
            if got != dict(self.requests):
                return f"pod {pod['metadata']['name']} got {got} instead of {dict(self.requests)}"
        return None


@dataclass(frozen=True)
class Holds:
    """Every device that a request of the workload got has this value of this attribute."""

    pods: str
    request: str
    attribute: str
    value: Any

    def problem(self, seen: Snapshot) -> str | None:
        """See Demand."""
        for pod in seen.served(self.pods):
            for device in seen.devices(pod).get(self.request, ()):
                if device.attributes.get(self.attribute) != self.value:
                    return f"{device.id}: {self.attribute} is {device.attributes.get(self.attribute)!r}"
        return None


@dataclass(frozen=True)
class Named:
    """The request of the workload's only pod got exactly the devices of these names."""

    pods: str
    request: str
    names: tuple[str, ...]

    def problem(self, seen: Snapshot) -> str | None:
        """See Demand."""
        got = [
            tuple(device.name for device in seen.devices(pod).get(self.request, ()))
            for pod in seen.served(self.pods)
        ]
        return None if got == [self.names] else f"pods {self.pods} got {got} for {self.request}"


@dataclass(frozen=True)
class Aligned:
    """All devices of a pod agree in the attribute, which all of them have."""

    pods: str
    attribute: str

    def problem(self, seen: Snapshot) -> str | None:
        """See Demand."""
        for pod in seen.served(self.pods):
            devices = [device for found in seen.devices(pod).values() for device in found]
            values = {device.attributes.get(self.attribute) for device in devices}
            if len(values) != 1 or None in values:
                return f"pod {pod['metadata']['name']}: {self.attribute} is {values}"
        return None


@dataclass(frozen=True)
class Different:
    """No two devices of a pod have the same value of the attribute, which all of them have."""

    pods: str
    attribute: str

    def problem(self, seen: Snapshot) -> str | None:
        """See Demand."""
        for pod in seen.served(self.pods):
            devices = [device for found in seen.devices(pod).values() for device in found]
            values = [device.attributes.get(self.attribute) for device in devices]
            if len(values) != len(set(values)) or None in values:
                return f"pod {pod['metadata']['name']}: {self.attribute} is {values}"
        return None


@dataclass(frozen=True)
class Consumes:
    """Every share that a request of the workload got takes so much of its device, and has an id of its own."""

    pods: str
    request: str
    capacity: Mapping[str, str]

    def problem(self, seen: Snapshot) -> str | None:
        """See Demand."""
        ids: list[str] = []
        for pod in seen.served(self.pods):
            for claim in seen.claims_of(pod):
                for result in claim["status"]["allocation"]["devices"]["results"]:
                    if result["request"] != self.request:
                        continue
                    if result.get("consumedCapacity") != dict(self.capacity):
                        return f"{claim['metadata']['name']}: consumes {result.get('consumedCapacity')}"
                    ids.append(result.get("shareID", ""))
        return None if len(ids) == len(set(ids)) and all(ids) else f"share ids {ids}"


@dataclass(frozen=True)
class Apart:
    """No device is with two pods of the workloads."""

    pods: str

    def problem(self, seen: Snapshot) -> str | None:
        """See Demand."""
        held = _held(seen, self.pods)
        return None if len(held) == len(set(held)) else f"a device is with two pods: {sorted(held)}"


@dataclass(frozen=True)
class Shared:
    """All pods of the workloads have the same devices."""

    pods: str

    def problem(self, seen: Snapshot) -> str | None:
        """See Demand."""
        sets = {
            frozenset(device.id for found in seen.devices(pod).values() for device in found)
            for pod in seen.served(self.pods)
        }
        return None if len(sets) == 1 and frozenset() not in sets else f"different devices: {sets}"


def _held(seen: Snapshot, pattern: str) -> list[str]:
    return [
        device.id for pod in seen.served(pattern) for found in seen.devices(pod).values() for device in found
    ]


@dataclass(frozen=True)
class Configured:
    """The allocation carries so much configuration for a request: its driver reads it there."""

    pods: str
    request: str
    source: str
    parameters: Mapping[str, Any]

    def problem(self, seen: Snapshot) -> str | None:
        """See Demand."""
        for pod in seen.served(self.pods):
            for claim in seen.claims_of(pod):
                for item in claim["status"]["allocation"]["devices"].get("config") or ():
                    if self._is_it(item):
                        return None
        return f"no configuration of source {self.source} for request {self.request}"

    def _is_it(self, item: Object) -> bool:
        parameters = (item.get("opaque") or {}).get("parameters") or {}
        return (
            item["source"] == self.source
            and self.request in (item.get("requests") or [self.request])
            and self.parameters.items() <= parameters.items()
        )


@dataclass(frozen=True)
class Waits:
    """So many pods of a workload stay at the gate with nothing allocated, and each was told why.

    Args:
        pods: pattern of workload names.
        reason: of the operator's event.
        words: all of which stand in its text.
        count: pods that wait.
    """

    pods: str
    reason: str
    words: tuple[str, ...]
    count: int = 1

    def problem(self, seen: Snapshot) -> str | None:
        """See Demand."""
        waiting = seen.waiting(self.pods)
        if len(waiting) != self.count:
            return f"{len(waiting)} pods {self.pods} wait untouched instead of {self.count}"
        for pod in waiting:
            texts = [text for reason, text in seen.told(pod) if reason == self.reason]
            if not any(all(word in text for word in self.words) for text in texts):
                return f"pod {pod['metadata']['name']} was told {seen.told(pod)}"
        return None


@dataclass(frozen=True)
class Readied:
    """The workload's only pod stays at the gate with devices of its own until these are ready, and was told so.

    Args:
        pods: pattern of workload names.
        words: all of which stand in the text.
    """

    pods: str
    words: tuple[str, ...]

    def problem(self, seen: Snapshot) -> str | None:
        """See Demand."""
        for pod in seen.matching(self.pods):
            held = [claim for claim in seen.claims_of(pod) if claim.get("status", {}).get("allocation")]
            if not held or not pod["spec"].get("schedulingGates"):
                return f"pod {pod['metadata']['name']} is not held with its devices"
            texts = [text for reason, text in seen.told(pod) if reason == "BindingConditionsPending"]
            if any(all(word in text for word in self.words) for text in texts):
                return None
        return f"nobody told {[seen.told(pod) for pod in seen.matching(self.pods)]}"


@dataclass(frozen=True)
class Told:
    """The workload's only pod is not at our gate and not bound, and was told why.

    Args:
        pods: pattern of workload names.
        reason: of the operator's event.
        words: all of which stand in its text.
    """

    pods: str
    reason: str
    words: tuple[str, ...]

    def problem(self, seen: Snapshot) -> str | None:
        """See Demand."""
        for pod in seen.matching(self.pods):
            texts = [text for reason, text in seen.told(pod) if reason == self.reason]
            if any(all(word in text for word in self.words) for text in texts):
                return None if not pod["spec"].get("nodeName") else f"pod {pod['metadata']['name']} is bound"
        return f"nobody told {[seen.told(pod) for pod in seen.matching(self.pods)]}"


def problems(demands: Iterable[Demand], seen: Snapshot) -> list[str]:
    """What is still wrong, one text each; empty is good."""
    return [text for demand in demands if (text := demand.problem(seen)) is not None]
