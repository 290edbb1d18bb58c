"""Validation of metadata, the same for all kinds.

Called by `machinery` for every write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi.checks import (
    dns_subdomain,
    forbidden,
    label_key,
    label_value,
    required,
    wrong,
)
from dra_operator.testing.fakeapi.failures import Cause
from dra_operator.testing.fakeapi.objects import Obj, dicts, meta

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dra_operator.testing.fakeapi.kinds import Kind

_FREE_NAMES = frozenset({"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"})
"""RBAC allows any path segment as a name (`system:node`)."""

_ANNOTATIONS_LIMIT = 262_144
_STANDARD_FINALIZERS = frozenset({"foregroundDeletion", "kubernetes", "orphan"})


def check_metadata(kind: Kind, obj: Obj) -> list[Cause]:
    """Name, labels, annotations, owner references and finalizers."""
    metadata = meta(obj)
    name = metadata.get("name")
    causes: list[Cause] = []
    prefix = metadata.get("generateName")
    if prefix and kind.kind not in _FREE_NAMES:
        causes += dns_subdomain("metadata.generateName", prefix.rstrip("-.") or prefix)
    if not name:
        causes.append(required("metadata.name", "name or generateName is required"))
    elif kind.kind not in _FREE_NAMES:
        causes += dns_subdomain("metadata.name", name)
    for key, value in (metadata.get("labels") or {}).items():
        causes += label_key("metadata.labels", key)
        causes += label_value("metadata.labels", value)
    causes += _check_annotations(metadata.get("annotations") or {})
    causes += _check_owners(dicts(metadata.get("ownerReferences")))
    for index, finalizer in enumerate(metadata.get("finalizers") or ()):
        causes += _check_finalizer(f"metadata.finalizers[{index}]", finalizer)
    return causes


def _missing(path: str) -> Cause:
    if path.endswith(".uid"):
        return required(path, "must not be empty")
    return wrong(path, "", "must not be empty")


def _check_finalizer(path: str, name: str) -> list[Cause]:
    if "/" in name or name in _STANDARD_FINALIZERS:
        return label_key(path, name)
    return [wrong(path, name, "name is neither a standard finalizer name nor is it fully qualified")]


def _check_annotations(annotations: Obj) -> list[Cause]:
    causes = [cause for key in annotations for cause in label_key("metadata.annotations", key.lower())]
    if sum(len(key) + len(str(value)) for key, value in annotations.items()) > _ANNOTATIONS_LIMIT:
        causes.append(
            Cause(
                "metadata.annotations",
                "FieldValueTooLong",
                f"Too long: may not be more than {_ANNOTATIONS_LIMIT} bytes",
            )
        )
    return causes


def _check_owners(owners: Iterable[Obj]) -> list[Cause]:
    causes: list[Cause] = []
    controllers = 0
    for index, owner in enumerate(owners):
        path = f"metadata.ownerReferences[{index}]"
        causes += [
            _missing(f"{path}.{field}")
            for field in ("apiVersion", "kind", "name", "uid")
            if not owner.get(field)
        ]
        controllers += bool(owner.get("controller"))
    if controllers > 1:
        causes.append(
            wrong(
                "metadata.ownerReferences", controllers, "Only one reference can have Controller set to true"
            )
        )
    return causes


def check_metadata_update(new: Obj, old: Obj) -> list[Cause]:
    """An object being deleted gets no new finalizers."""
    if "deletionTimestamp" not in meta(old):
        return []
    present = meta(old).get("finalizers") or []
    added = [name for name in meta(new).get("finalizers") or () if name not in present]
    if not added:
        return []
    listed = ", ".join(f'"{name}"' for name in added)
    detail = (
        "no new finalizers can be added if the object is being deleted, found new finalizers"
        f" []string{{{listed}}}"
    )  # fmt: skip
    return [forbidden("metadata.finalizers", detail)]
