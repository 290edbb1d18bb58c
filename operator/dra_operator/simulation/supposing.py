"""What if: more nodes, a node drained, a device gone or tainted, a claim released. Changes what is given, before anything is decided.

Each supposition is told in a sentence; one that cannot be made is told with its object and the remedy. It does what Kubernetes' parts would do: pods that go are made
anew by their controllers, claims that nobody reserves any more lose their devices, and those made for a pod go with it. Pure.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from dra_operator.errors import InvalidInput
from dra_operator.model import (
    DeviceId,
    DeviceTaint,
    DeviceTaintSelector,
    Pod,
    ResourceClaim,
    from_object,
)
from dra_operator.words import akin, listed

from .copying import copies, is_of, pools, shape_of
from .eviction import touched
from .given import NAMED, made_up_uid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .copying import Shape
    from .given import Given

    Obj = dict[str, Any]

ANY: Final = "*"
"""In the place of a pool or a device: whichever."""

EFFECTS: Final = ("NoSchedule", "NoExecute", "None")
CORDONED: Final = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
"""The taint that Kubernetes puts on nodes that are cordoned."""

_STAYING: Final = ("DaemonSet", "Node")
"""Controllers of pods that `kubectl drain` leaves alone: those of DaemonSets, and static ones."""


class Supposing:
    """Makes suppositions, one after the other.

    Args:
        given: all objects; they are changed.

    Attributes:
        sentences: what was supposed.
    """

    def __init__(self, given: Given) -> None:
        self._given = given
        self.sentences: list[str] = []

    # --- nodes

    def shape(self, name: str) -> Shape | None:
        """What is given of a node; None if there is none of that name."""
        return shape_of(self._given, name) if name in self._given.nodes() else None

    def add_nodes(self, shape: Shape, count: int) -> None:
        """Have so many more nodes like one, each with slices, pools and devices of its own."""
        added: list[Obj] = []
        for _ in range(count):
            new = copies(shape, self._new_name(shape.name))
            for obj in new:
                self._given.take(obj)
            added += new
        names = [str(obj["metadata"]["name"]) for obj in added if obj["kind"] == "Node"]
        of_daemons = sum(obj["kind"] == "Pod" for obj in added)
        own = listed(pools(added), NAMED)
        self._say(
            f"{len(names)} more node(s) like {shape.name}, ready and with "
            f"{f'{of_daemons} pod(s) of DaemonSets' if of_daemons else 'no pods'}: {listed(names, NAMED)}; "
            + (
                f"their pools are {own}"
                if own
                else "no slice names it, so that they have no devices of their own"
            )
        )

    def drain(self, name: str) -> None:
        """Cordon a node and have its pods go, but for those of DaemonSets and static ones.

        Raises:
            InvalidInput: there is no such node.
        """
        nodes = self._given.nodes()
        if name not in nodes:
            raise InvalidInput(
                f"--drain {name}", f"there is no node of that name{_instead(name, list(nodes))}"
            )
        node = copy.deepcopy(nodes[name])
        spec = node.setdefault("spec", {})
        others = [taint for taint in spec.get("taints") or () if taint.get("key") != CORDONED["key"]]
        spec.update(unschedulable=True, taints=[*others, dict(CORDONED)])
        self._given.put("Node", node)
        pods = [raw for raw in self._given.raw("Pod").values() if _runs_on(raw, name)]
        going = [raw for raw in pods if not any(is_of(raw, kind) for kind in _STAYING)]
        left = (
            f"; {len(pods) - len(going)} stay(s), of DaemonSets or static" if len(pods) > len(going) else ""
        )
        self._say(f"node {name} is drained: {self._evict(going)}{left}")

    # --- devices

    def remove(self, text: str) -> None:
        """Have a device no more. A claim that holds it goes on holding it, as when a driver takes it away.

        Raises:
            InvalidInput: there is no such device.
        """
        wanted = self._device(f"--remove {text}", text)
        for raw in list(self._given.raw("ResourceSlice").values()):
            kept = [
                device
                for device, found in zip(raw["spec"].get("devices") or (), _devices(raw), strict=True)
                if found != wanted
            ]
            if len(kept) < len(raw["spec"].get("devices") or ()):
                self._given.put("ResourceSlice", {**raw, "spec": {**raw["spec"], "devices": kept}})
        holders = [claim.key for claim in self._claims() if wanted in _held(claim)]
        of = f"; {listed(holders, NAMED)} goes on holding it" if holders else ""
        self._say(f"device {text} is gone{of}")

    def taint(self, text: str) -> None:
        """Have a DeviceTaintRule for a device (`driver/pool/device=key[=value]:effect`; `*` for any pool or device), and its evictions done.

        Raises:
            InvalidInput: it says none, or there is no such device.
        """
        flag = f"--taint {text}"
        device, taint = parsed_taint(flag, text)
        if not self._given.features.device_taints:
            raise InvalidInput(
                flag,
                "device taints are off (DRADeviceTaints): leave --feature-gates=DRADeviceTaints=false out",
            )
        if ANY not in device.split("/"):
            self._device(flag, device)
        selector = selector_of(flag, device)
        self._given.take(rule(selector, taint, f"supposed-{len(self.sentences)}"))
        pods = [from_object(Pod, raw) for raw in self._given.raw("Pod").values()]
        hit = touched(taint, selector, self._claims(), pods)
        going = {pod.key: None for one in hit if one.seconds is not None for pod in one.pods}
        gone = f"; {self._evict([self._given.raw('Pod')[key] for key in going])}" if going else ""
        late = sum(bool(one.seconds) and bool(one.pods) for one in hit)
        waited = f", {late} claim(s) of them after the time that they tolerate it" if late else ""
        self._say(f"{device} has the taint {text.removeprefix(f'{device}=')}{gone}{waited}")

    def _device(self, flag: str, text: str) -> DeviceId:
        """A device that somebody publishes."""
        driver, pool, device = _parts(flag, text)
        wanted = DeviceId(driver, pool, device)
        known = [found for raw in self._given.raw("ResourceSlice").values() for found in _devices(raw)]
        if wanted not in known:
            raise InvalidInput(
                flag, f"no ResourceSlice has device {text}{_instead(text, [str(one) for one in known])}"
            )
        return wanted

    # --- claims

    def free(self, text: str) -> None:
        """Have the pods that use a claim end, and its devices free.

        Raises:
            InvalidInput: there is no such claim, or it holds nothing.
        """
        key = text if "/" in text else f"{self._given.namespace}/{text}"
        flag = f"--free {text}"
        claims = self._given.raw("ResourceClaim")
        if key not in claims:
            raise InvalidInput(flag, f"there is no ResourceClaim {key}{_instead(key, list(claims))}")
        claim = from_object(ResourceClaim, claims[key])
        if claim.status.allocation is None:
            raise InvalidInput(flag, f"ResourceClaim {key} holds no devices: there is nothing to free")
        held = listed([str(device) for device in _held(claim)], NAMED)
        users = [
            raw
            for raw in list(self._given.raw("Pod").values())
            if claim.metadata.namespace == raw["metadata"]["namespace"]
            and _uid(raw) in {one.uid for one in claim.status.reserved_for}
        ]
        for raw in users:
            self._end(raw)
        if key in claims and not self._is_wanted(key):
            self._given.drop("ResourceClaim", key)
        elif key in claims:
            self._given.put("ResourceClaim", _deallocated(claims[key]))
        names = listed([str(raw["metadata"]["name"]) for raw in users], NAMED)
        end = f"; the pod(s) that use it are gone: {names}" if users else ""
        self._say(f"ResourceClaim {key} is released: {held} come(s) free{end}")

    def _is_wanted(self, key: str) -> bool:
        """Whether a pod that is there names the claim."""
        namespace, _, name = key.partition("/")
        return any(
            raw["metadata"]["namespace"] == namespace and name in _claim_names(raw)
            for raw in self._given.raw("Pod").values()
        )

    def _claims(self) -> list[ResourceClaim]:
        return [from_object(ResourceClaim, raw) for raw in self._given.raw("ResourceClaim").values()]

    # --- pods that go

    def _evict(self, pods: list[Obj]) -> str:
        """Have pods end and their controllers make others, which wait; gives it in words."""
        anew = [raw for raw in pods if _controller(raw)]
        for raw in pods:
            self._end(raw)
        for raw in anew:
            self._given.take(_anew(raw))
        lost = [str(raw["metadata"]["name"]) for raw in pods if not _controller(raw)]
        parts = []
        if anew or not pods:
            names = [str(raw["metadata"]["name"]) for raw in anew]
            parts.append(f"{len(anew)} pod(s) are made anew{f': {listed(names, NAMED)}' if names else ''}")
        if lost:
            parts.append(f"{len(lost)} pod(s) without a controller end for good: {listed(lost, NAMED)}")
        return ", ".join(parts)

    def _end(self, pod: Obj) -> None:
        """A pod is gone: its claims lose it as a consumer, with the last one their devices; those made for it go."""
        self._given.drop("Pod", _key(pod))
        namespace, uid = pod["metadata"]["namespace"], _uid(pod)
        for name in _claim_names(pod):
            raw = self._given.raw("ResourceClaim").get(f"{namespace}/{name}")
            if raw is None:
                continue
            if any(owner.get("uid") == uid for owner in raw["metadata"].get("ownerReferences") or ()):
                self._given.drop("ResourceClaim", _key(raw))
                continue
            consumers = raw.get("status", {}).get("reservedFor") or []
            rest = [one for one in consumers if one.get("uid") != uid]
            if consumers and not rest:
                self._given.put("ResourceClaim", _deallocated(raw))
            elif len(rest) < len(consumers):
                status = {**raw["status"], "reservedFor": rest}
                self._given.put("ResourceClaim", {**raw, "status": status})

    # --- words

    def _say(self, sentence: str) -> None:
        self.sentences.append(sentence)

    def _new_name(self, base: str) -> str:
        nodes = self._given.nodes()
        number = 1
        while f"{base}-new-{number}" in nodes:
            number += 1
        return f"{base}-new-{number}"


def parsed_taint(flag: str, text: str) -> tuple[str, DeviceTaint]:
    """The device and the taint of `driver/pool/device=key[=value]:effect`.

    Raises:
        InvalidInput: it is none; named by `flag`.
    """
    device, _, rest = text.partition("=")
    return device, taint_of(flag, rest)


def taint_of(flag: str, text: str) -> DeviceTaint:
    """The taint of `key[=value]:effect`.

    Raises:
        InvalidInput: it is none; named by `flag`.
    """
    named, _, effect = text.rpartition(":")
    key, _, value = named.partition("=")
    if not key or effect not in EFFECTS:
        raise InvalidInput(
            flag,
            f"write the taint as key[=value]:effect, with the effect {', '.join(EFFECTS[:-1])} or {EFFECTS[-1]}",
        )
    return DeviceTaint(key, value, effect)


def selector_of(flag: str, text: str) -> DeviceTaintSelector:
    """What a rule selects by `driver/pool/device`, with `*` for any pool or device.

    Raises:
        InvalidInput: there are not three parts.
    """
    driver, pool, device = (None if part == ANY else part for part in _parts(flag, text))
    return DeviceTaintSelector(driver, pool, device)


def rule(selector: DeviceTaintSelector, taint: DeviceTaint, name: str) -> Obj:
    """The DeviceTaintRule, raw."""
    fields = {"driver": selector.driver, "pool": selector.pool, "device": selector.device}
    of = {key: value for key, value in (("value", taint.value),) if value}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": name},
        "spec": {
            "deviceSelector": {key: value for key, value in fields.items() if value is not None},
            "taint": {"key": taint.key, **of, "effect": taint.effect},
        },
    }


def _parts(flag: str, text: str) -> tuple[str, str, str]:
    """Driver, pool, which may have slashes, and device."""
    parts = text.split("/")
    if len(parts) < 3 or not all(parts):  # noqa: PLR2004 -- driver, pool, device
        raise InvalidInput(flag, "write the device as driver/pool/device, as `kubectl dra claims` prints it")
    return parts[0], "/".join(parts[1:-1]), parts[-1]


def _instead(name: str, known: list[str]) -> str:
    """What may have been meant, or what there is."""
    if not known:
        return ": there is none at all"
    near = akin(name, known)
    return f": did you mean {near}?" if near else f"; there are {listed(sorted(known), NAMED)}"


def _devices(raw: Obj) -> Iterator[DeviceId]:
    spec = raw["spec"]
    for device in spec.get("devices") or ():
        yield DeviceId(spec["driver"], spec["pool"]["name"], device["name"])


def _held(claim: ResourceClaim) -> list[DeviceId]:
    allocation = claim.status.allocation
    return [result.device_id for result in allocation.devices.results] if allocation else []


def _key(raw: Obj) -> str:
    return f"{raw['metadata']['namespace']}/{raw['metadata']['name']}"


def _uid(raw: Obj) -> str:
    return str(raw["metadata"].get("uid", ""))


def _runs_on(raw: Obj, node: str) -> bool:
    ended = raw.get("status", {}).get("phase") in {"Succeeded", "Failed"}
    return not ended and (raw.get("spec") or {}).get("nodeName") == node


def _controller(raw: Obj) -> bool:
    return any(owner.get("controller") for owner in raw["metadata"].get("ownerReferences") or ())


def _claim_names(raw: Obj) -> set[str]:
    """Names of the claims of a pod, generated ones included."""
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    entries = (*(spec.get("resourceClaims") or ()), *(status.get("resourceClaimStatuses") or ()))
    special = status.get("extendedResourceClaimStatus") or {}
    return {
        str(name)
        for name in (*(one.get("resourceClaimName") for one in entries), special.get("resourceClaimName"))
        if name
    }


def _deallocated(raw: Obj) -> Obj:
    status = raw.get("status", {})
    gone = {"allocation", "reservedFor", "devices"}
    return {**raw, "status": {name: part for name, part in status.items() if name not in gone}}


def _anew(raw: Obj) -> Obj:
    """The pod that its controller makes in the place of one that went; under the same name, as it would be another by chance."""
    metadata, spec = raw["metadata"], raw["spec"]
    kept = {
        name: copy.deepcopy(metadata[name])
        for name in ("name", "namespace", "labels", "ownerReferences")
        if name in metadata
    }
    uid = made_up_uid("Pod", metadata["namespace"], f"{metadata['name']} anew")
    rest = {name: copy.deepcopy(part) for name, part in spec.items() if name != "nodeName"}
    _unpin(rest, str(spec.get("nodeName", "")))
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {**kept, "uid": uid}, "spec": rest}


def _unpin(spec: Obj, node: str) -> None:
    """Without the requirement by which the operator holds a pod on its node (cp I-24): its template has none."""
    pin = {"key": "metadata.name", "operator": "In", "values": [node]}
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = required.get("nodeSelectorTerms") or []
    for term in terms:
        if pin in term.get("matchFields", ()):
            term["matchFields"] = [one for one in term["matchFields"] if one != pin]
    if terms and not any(any(term.values()) for term in terms):
        del affinity["requiredDuringSchedulingIgnoredDuringExecution"]
