"""Garbage collection: dependents follow their owners, and a deleted namespace takes its content along.

Called by `server`, which runs `collect` soon after a write that may have left garbage. Always on: no cluster lacks it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi.objects import Key, Obj, Resource, copied, dig, key_of, meta
from dra_operator.testing.fakeapi.options import DeleteOptions, WriteOptions

if TYPE_CHECKING:
    from dra_operator.testing.fakeapi.kinds import Kind
    from dra_operator.testing.fakeapi.machinery import Machinery
    from dra_operator.testing.fakeapi.store import Change, Record

NAMESPACES: Resource = ("", "namespaces")
_FOREGROUND = "foregroundDeletion"
_ORPHAN = "orphan"
_BY_COLLECTOR = WriteOptions("kube-controller-manager")

Place = tuple[Resource, Key]


class GarbageCollector:
    """Who owns whom, kept from changes; `collect` acts on what they left behind."""

    def __init__(self, machinery: Machinery) -> None:
        self._machinery = machinery
        self._alive: dict[str, Place] = {}
        self._owned: dict[str, set[Place]] = {}
        self._suspects: set[Place] = set()

    def changed(self, change: Change, resource: Resource) -> bool:
        """Take note of one write; True if `collect` has something to do."""
        obj = change.record.obj
        place = (resource, key_of(obj))
        if change.previous is not None:
            self._unlink(change.previous.obj, place)
        if change.type == "DELETED":
            self._alive.pop(change.record.uid, None)
            self._suspects |= self._owned.get(change.record.uid, set())
        else:
            self._link(obj, change.record.uid, place)
            waits = {_FOREGROUND, _ORPHAN} & set(meta(obj).get("finalizers") or ())
            if waits or ("deletionTimestamp" in meta(obj) and resource == NAMESPACES):
                self._suspects.add(place)
        if "namespace" in meta(obj) and change.type == "DELETED":
            self._suspects.add((NAMESPACES, ("", meta(obj)["namespace"])))
        return bool(self._suspects)

    def _link(self, obj: Obj, uid: str, place: Place) -> None:
        self._alive[uid] = place
        owners = [owner["uid"] for owner in meta(obj).get("ownerReferences") or ()]
        for owner in owners:
            self._owned.setdefault(owner, set()).add(place)
        if owners and not any(owner in self._alive for owner in owners):
            self._suspects.add(place)

    def _unlink(self, obj: Obj, place: Place) -> None:
        for owner in meta(obj).get("ownerReferences") or ():
            dependents = self._owned.get(owner["uid"], set())
            dependents.discard(place)
            if not dependents:
                self._owned.pop(owner["uid"], None)

    def collect(self) -> None:
        """Look at every suspect once."""
        suspects, self._suspects = self._suspects, set()
        for place in sorted(suspects):
            record = self._machinery.store.get(*place)
            if record is not None:
                self._look(place, record)

    def _look(self, place: Place, record: Record) -> None:
        kind = self._machinery.kinds.stored(place[0])
        finalizers = meta(record.obj).get("finalizers") or ()
        if "deletionTimestamp" not in meta(record.obj):
            self._drop_if_orphaned(kind, place, record)
        elif _ORPHAN in finalizers:
            self._let_go(record)
            self._without_finalizer(kind, place, _ORPHAN)
        elif _FOREGROUND in finalizers:
            self._delete_dependents(kind, place, record)
        elif place[0] == NAMESPACES:
            self._empty(kind, place)

    def _drop_if_orphaned(self, kind: Kind, place: Place, record: Record) -> None:
        owners = [owner["uid"] for owner in meta(record.obj).get("ownerReferences") or ()]
        gone = [uid for uid in owners if uid not in self._alive]
        if owners and len(gone) == len(owners):
            self._machinery.delete(kind, place[1], DeleteOptions(uid=record.uid))
        elif gone:
            self._without_owners(kind, place, gone)

    def _without_owners(self, kind: Kind, place: Place, gone: list[str]) -> None:
        obj = copied(self._machinery.get(kind, place[1]).obj)
        kept = [owner for owner in obj["metadata"]["ownerReferences"] if owner["uid"] not in gone]
        obj["metadata"]["ownerReferences"] = kept
        self._machinery.update(kind, place[1], obj, _BY_COLLECTOR)

    def _let_go(self, owner: Record) -> None:
        for place in sorted(self._owned.get(owner.uid, set())):
            self._without_owners(self._machinery.kinds.stored(place[0]), place, [owner.uid])

    def _delete_dependents(self, kind: Kind, place: Place, owner: Record) -> None:
        """Foreground: dependents that block first, then the owner."""
        blocking = False
        for dependent in sorted(self._owned.get(owner.uid, set())):
            record = self._machinery.store.get(*dependent)
            if record is None:
                continue
            blocking = blocking or _blocks(record.obj, owner.uid)
            if "deletionTimestamp" not in meta(record.obj):
                options = DeleteOptions(propagation="Foreground")
                self._machinery.delete(self._machinery.kinds.stored(dependent[0]), dependent[1], options)
        if not blocking or not self._owned.get(owner.uid):
            self._without_finalizer(kind, place, _FOREGROUND)
        else:
            self._suspects.add(place)

    def _without_finalizer(self, kind: Kind, place: Place, finalizer: str) -> None:
        obj = copied(self._machinery.get(kind, place[1]).obj)
        obj["metadata"]["finalizers"] = [name for name in obj["metadata"]["finalizers"] if name != finalizer]
        self._machinery.update(kind, place[1], obj, _BY_COLLECTOR)

    def _empty(self, kind: Kind, place: Place) -> None:
        """Delete all content of a namespace that is being deleted; when none is left, the namespace."""
        name = place[1][1]
        left = False
        for resource in self._machinery.store.resources():
            held = self._machinery.kinds.stored(resource)
            for record in self._machinery.store.items(resource, name):
                left = True
                if "deletionTimestamp" not in meta(record.obj):
                    self._machinery.delete(held, key_of(record.obj), DeleteOptions(grace=0))
        if not left or not any(
            self._machinery.store.items(held, name) for held in self._machinery.store.resources()
        ):
            self._machinery.finish(kind, place[1])


def _blocks(obj: Obj, owner: str) -> bool:
    return any(
        reference["uid"] == owner and dig(reference, "blockOwnerDeletion")
        for reference in meta(obj).get("ownerReferences") or ()
    )
