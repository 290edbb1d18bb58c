"""What a snapshot of a cluster keeps of an object: all that decisions hang on, and nothing that may be a secret.

Objects of `resource.k8s.io`, PodGroups and AllocationPolicies are kept whole but for what belongs to drivers, which is replaced by its digest. Of all others
only what the model reads is kept, so that a field that is new to Kubernetes stays out until somebody has looked at it. Annotations are kept by
name. Pure; `cli.snapshot` reads and writes.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

import msgspec

from dra_operator.errors import InvalidObject
from dra_operator.model import KINDS, SELECTED_NODE, ResourceClaim, from_object, to_object
from dra_operator.model.marks import GENERATED, MARK, digest, holds_our_allocation
from dra_operator.model.volumes import BETA_CLASS, BIND_COMPLETED

from .given import DRA_GROUP, GROUPS

if TYPE_CHECKING:
    from collections.abc import Mapping

    Obj = dict[str, Any]

REDACTED: Final = "redacted"
"""The one member of what stands in the place of a driver's own JSON."""

PREFIXES: Final = ("dra-operator.io/", "resource.kubernetes.io/")
"""Of annotations that are kept: the operator's and DRA's own."""

ANNOTATIONS: Final = frozenset({BETA_CLASS, BIND_COMPLETED, SELECTED_NODE})
"""Further annotations that are kept: those of volumes that placement reads."""

_WHOLE: Final = frozenset(
    {"AllocationPolicy", "PodGroup", *(kind for kind, group in GROUPS.items() if group == DRA_GROUP)}
)

_BESIDE: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "Node": (("status", "capacity"),),
    "Pod": (("spec", "priority"), ("spec", "priorityClassName"), ("spec", "schedulerName")),
    "PriorityClass": (("value",), ("globalDefault",)),
}
"""Paths that are kept beside what the model reads: a simulation reads them, or fills them in where they are not there."""


def kept(raw: Mapping[str, Any]) -> Obj:
    """The object as a snapshot has it; a copy.

    Raises:
        InvalidObject: it is of a kind that is not kept whole, and cannot be decoded.
    """
    kind = str(raw["kind"])
    found = _whole(raw) if kind in _WHOLE else _lean(kind, raw)
    found["metadata"] = _metadata(found.get("metadata"))
    return {"apiVersion": raw["apiVersion"], "kind": kind, **found}


def digest_of(value: object) -> Obj:
    """What stands for a driver's own JSON: equal for equal values, in whatever order their members came."""
    text = msgspec.json.encode(value, order="sorted")
    return {REDACTED: f"sha256:{hashlib.sha256(text).hexdigest()}"}


def _lean(kind: str, raw: Mapping[str, Any]) -> Obj:
    """What the model reads, and the few fields that only a simulation does."""
    found = to_object(from_object(KINDS[kind], raw)) if kind in KINDS else {"metadata": raw["metadata"]}
    for path in _BESIDE.get(kind, ()):
        _keep(found, raw, path)
    return found


def _keep(found: Obj, raw: Mapping[str, Any], path: tuple[str, ...]) -> None:
    value: Any = raw
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    if value is not None:
        for name in path[:-1]:
            found = found.setdefault(name, {})
        found[path[-1]] = value


def _whole(raw: Mapping[str, Any]) -> Obj:
    found: Obj = _redacted(raw, "")
    if raw["kind"] == "ResourceClaimTemplate" and isinstance(found.get("spec"), dict):
        spec = found["spec"]
        if "metadata" in spec:
            spec["metadata"] = _metadata(spec["metadata"])
    if raw["kind"] == "ResourceClaim":
        _redact_status(found)
        _mark_anew(found, raw)
    return found


def _redacted(value: Any, name: str) -> Any:
    """A copy in which the parameters of opaque configs, wherever they stand, are digests."""
    if isinstance(value, dict):
        return {
            key: digest_of(part) if (name, key) == ("opaque", "parameters") else _redacted(part, key)
            for key, part in value.items()
        }
    return [_redacted(part, name) for part in value] if isinstance(value, list) else value


def _redact_status(found: Obj) -> None:
    """What drivers say of allocated devices: conditions are kept, their own data and the network's are not."""
    status = found.get("status")
    devices = status.get("devices") if isinstance(status, dict) else None
    for device in devices if isinstance(devices, list) else ():
        if isinstance(device, dict):
            device.update({name: digest_of(device[name]) for name in ("data",) if name in device})
            device.pop("networkData", None)


def _mark_anew(found: Obj, raw: Mapping[str, Any]) -> None:
    """The operator's mark is a digest of the allocation with its configs: where it fitted, it fits what is left of them."""
    try:
        before = from_object(ResourceClaim, raw)
        after = from_object(ResourceClaim, found)
    except InvalidObject:
        return  # told by whoever decodes the snapshot: such claims are kept as they are
    allocation = after.status.allocation
    if allocation is None or not holds_our_allocation(before):
        return
    if before.metadata.annotations[MARK] != GENERATED:
        found["metadata"]["annotations"] = {**found["metadata"]["annotations"], MARK: digest(allocation)}


def _metadata(metadata: object) -> Obj:
    if not isinstance(metadata, dict):
        return {}
    found = {name: value for name, value in metadata.items() if name not in {"managedFields", "selfLink"}}
    annotations = found.pop("annotations", None)
    named = annotations if isinstance(annotations, dict) else {}
    if chosen := {name: value for name, value in named.items() if _is_kept(name)}:
        found["annotations"] = chosen
    return found


def _is_kept(annotation: str) -> bool:
    return annotation.startswith(PREFIXES) or annotation in ANNOTATIONS
