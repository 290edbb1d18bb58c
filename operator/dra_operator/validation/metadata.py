"""Validation of metadata, the same for all kinds.

`dra_operator.lint` and the embedded API server ask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.validation.causes import Cause
from dra_operator.validation.checks import (
    dns_subdomain,
    label_key,
    label_value,
    required,
    wrong,
)
from dra_operator.validation.objects import dicts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dra_operator.validation.objects import Obj

_ANNOTATIONS_LIMIT = 262_144
_STANDARD_FINALIZERS = frozenset({"foregroundDeletion", "kubernetes", "orphan"})


def check_metadata(metadata: Obj, *, free_name: bool = False) -> list[Cause]:
    """Name (not where any path segment is one), labels, annotations, owner references and finalizers."""
    name = metadata.get("name")
    causes: list[Cause] = []
    prefix = metadata.get("generateName")
    if prefix and not free_name:
        causes += dns_subdomain("metadata.generateName", prefix.rstrip("-.") or prefix)
    if not name and not prefix:
        causes.append(required("metadata.name", "name or generateName is required"))
    elif name and not free_name:
        causes += dns_subdomain("metadata.name", name)
    causes += check_labels(metadata, "metadata")
    causes += _check_owners(dicts(metadata.get("ownerReferences")))
    for index, finalizer in enumerate(metadata.get("finalizers") or ()):
        causes += _check_finalizer(f"metadata.finalizers[{index}]", finalizer)
    return causes


def check_labels(metadata: Obj, path: str) -> list[Cause]:
    """Labels and annotations, also those that a template gives to its claims."""
    causes: list[Cause] = []
    for key, value in (metadata.get("labels") or {}).items():
        causes += label_key(f"{path}.labels", key)
        causes += label_value(f"{path}.labels", value)
    return [*causes, *_check_annotations(metadata.get("annotations") or {}, path)]


def _missing(path: str) -> Cause:
    if path.endswith(".uid"):
        return required(path, "must not be empty")
    return wrong(path, "", "must not be empty")


def _check_finalizer(path: str, name: str) -> list[Cause]:
    if "/" in name or name in _STANDARD_FINALIZERS:
        return label_key(path, name)
    return [wrong(path, name, "name is neither a standard finalizer name nor is it fully qualified")]


def _check_annotations(annotations: Obj, path: str) -> list[Cause]:
    causes = [cause for key in annotations for cause in label_key(f"{path}.annotations", key.lower())]
    if sum(len(key) + len(str(value)) for key, value in annotations.items()) > _ANNOTATIONS_LIMIT:
        causes.append(
            Cause(
                f"{path}.annotations",
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
