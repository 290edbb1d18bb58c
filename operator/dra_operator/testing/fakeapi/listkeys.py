"""Which lists of which kinds are maps or sets: the tables behind strategic merge patch and server-side apply.

Called by `patches` and `fieldsets`. The two differ upstream (`patchMergeKey` against `listType=map`), therefore two tables. A
list that is in no table is atomic: it is replaced as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi.kinds import DRA, Kind
from dra_operator.testing.fakeapi.objects import Obj, dig

if TYPE_CHECKING:
    from collections.abc import Mapping

Path = tuple[str, ...]
"""Field names from the root; items of lists add no step."""

MERGE_KEYS: Mapping[str, str] = {
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "extendedResourceClaims": "name",
    "hostAliases": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "podIPs": "ip",
    "reservedFor": "uid",
    "resourceClaimStatuses": "name",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "secrets": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
"""`patchMergeKey` by field name. `ports` and `addresses` depend on where they are: see `merge_key`."""

PRIMITIVE_SETS = frozenset({"finalizers"})
"""Lists of scalars that a strategic merge unites instead of replacing."""

APPLY_KEYS: Mapping[str, tuple[str, ...]] = {
    **{field: (key,) for field, key in MERGE_KEYS.items()},
    "claims": ("name",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
}

_CLAIM_STATUS_DEVICES = ("driver", "device", "pool", "shareID")


def merge_key(kind: Kind, path: Path) -> str | None:
    """The key by which a strategic merge identifies the items of the list at `path`; None if it replaces the list."""
    field = path[-1]
    if field == "ports":
        return "containerPort" if "containers" in path or "initContainers" in path else "port"
    if field == "addresses":
        return "type" if kind.kind == "Node" else None
    return MERGE_KEYS.get(field)


def apply_keys(kind: Kind, path: Path) -> tuple[str, ...]:
    """The keys by which apply identifies the items of the list at `path`; empty if the list is atomic."""
    if path[:1] != ("metadata",) and kind.custom:
        return _declared_keys(kind, path)
    field = path[-1]
    if field == "ports" and ("containers" in path or "initContainers" in path):
        return ("containerPort", "protocol")
    if path == ("status", "devices") and (kind.group, kind.kind) == (DRA, "ResourceClaim"):
        return _CLAIM_STATUS_DEVICES
    return APPLY_KEYS.get(field, ())


def is_set(kind: Kind, path: Path) -> bool:
    """Whether the list at `path` is a set of scalars for apply."""
    if path == ("metadata", "finalizers"):
        return True
    return kind.custom and _declared(kind, path).get("x-kubernetes-list-type") == "set"


def _declared_keys(kind: Kind, path: Path) -> tuple[str, ...]:
    declared = _declared(kind, path)
    if declared.get("x-kubernetes-list-type") != "map":
        return ()
    return tuple(declared.get("x-kubernetes-list-map-keys") or ())


def _declared(kind: Kind, path: Path) -> Obj:
    schema: Obj = kind.schema or {}
    for step in path:
        if schema.get("type") == "array":
            schema = schema.get("items") or {}
        schema = dig(schema, "properties", step) or schema.get("additionalProperties") or {}
        if not isinstance(schema, dict):
            return {}
    return schema
