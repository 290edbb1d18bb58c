"""What an update may do to metadata, and which kinds have names of a kind of their own.

Called by `machinery` for every write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi.objects import meta
from dra_operator.validation import metadata
from dra_operator.validation.checks import forbidden

if TYPE_CHECKING:
    from dra_operator.testing.fakeapi.kinds import Kind
    from dra_operator.testing.fakeapi.objects import Obj
    from dra_operator.validation.causes import Cause

_FREE_NAMES = frozenset({"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"})
"""RBAC allows any path segment as a name (`system:node`)."""


def check_metadata(kind: Kind, obj: Obj) -> list[Cause]:
    """Name, labels, annotations, owner references and finalizers."""
    return metadata.check_metadata(meta(obj), free_name=kind.kind in _FREE_NAMES)


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
