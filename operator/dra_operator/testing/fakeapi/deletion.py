"""What deleting does to an object: marks, grace periods, finalizers, and when it is finally gone.

Called by `machinery`. Pure; whoever calls stores the result.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi.objects import Obj, meta, timestamp, with_metadata

if TYPE_CHECKING:
    from dra_operator.testing.fakeapi.kinds import Kind
    from dra_operator.testing.fakeapi.options import DeleteOptions

_PROPAGATION_FINALIZERS = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}


def marked_for_deletion(kind: Kind, obj: Obj, options: DeleteOptions, now: datetime) -> Obj:
    """`obj` with a deletionTimestamp; one that is being deleted already can only get a shorter grace period."""
    grace = _grace(kind, obj, options)
    if "deletionTimestamp" in meta(obj):
        if grace >= meta(obj).get("deletionGracePeriodSeconds", 0):
            return obj
        return with_metadata(obj, deletionGracePeriodSeconds=grace)
    moment = timestamp(now + timedelta(seconds=grace))
    changes: Obj = {"deletionTimestamp": moment, "deletionGracePeriodSeconds": grace}
    extra = _PROPAGATION_FINALIZERS.get(options.propagation)
    if extra and kind.kind not in ("Namespace", "CustomResourceDefinition"):
        changes["finalizers"] = [*(meta(obj).get("finalizers") or ()), extra]
    if kind.kind == "Namespace":
        obj = {**obj, "status": {**(obj.get("status") or {}), "phase": "Terminating"}}
    if kind.generation or kind.custom:
        changes["generation"] = meta(obj).get("generation", 0) + 1
    return with_metadata(obj, **changes)


def may_go(kind: Kind, obj: Obj) -> bool:
    """Whether a marked object is finished with: no finalizer, no grace period left."""
    metadata = meta(obj)
    if kind.kind == "Namespace" and (obj.get("spec") or {}).get("finalizers"):
        return False
    done = "deletionTimestamp" in metadata and not metadata.get("finalizers")
    return done and not metadata.get("deletionGracePeriodSeconds")


def _grace(kind: Kind, obj: Obj, options: DeleteOptions) -> int:
    """Only pods that run have a grace period."""
    if kind.kind != "Pod" or not (obj.get("spec") or {}).get("nodeName"):
        return 0
    if (obj.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    if options.grace is not None:
        return max(options.grace, 0)
    return int(obj["spec"].get("terminationGracePeriodSeconds", 30))
