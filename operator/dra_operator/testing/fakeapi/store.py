"""The store of the embedded API server: objects by resource, one resourceVersion counter, a history of changes.

Called by `machinery` (writes) and `watching` (history). Pure: it reads no clock, draws no uid, does no I/O and knows no rules;
whoever calls `put` has validated. A stored object is never changed in place.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from dra_operator.testing.fakeapi.failures import too_old
from dra_operator.testing.fakeapi.objects import Key, Obj, Raw, Resource, encoded, key_of, meta, with_metadata

HISTORY = 4096
"""Changes kept for each resource. Arbitrary; a real server keeps at least 100 and grows with the rate of change."""

FIRST_VERSION = 100
"""Where the counter starts, so that there are versions too old to watch from, as on a server that was restarted."""


@dataclass(frozen=True, slots=True)
class Record:
    """One version of one object, with its JSON text."""

    obj: Obj
    raw: Raw
    version: int

    @property
    def uid(self) -> str:
        """The object's uid."""
        return str(meta(self.obj).get("uid", ""))


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of the history: ADDED, MODIFIED or DELETED, and what was there before."""

    version: int
    type: str
    record: Record
    previous: Record | None


@dataclass(slots=True)
class History:
    """The latest changes of one resource, oldest first."""

    limit: int = HISTORY
    forgotten: int = 0
    changes: list[Change] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)

    def append(self, change: Change) -> None:
        """Remember `change`; forget the oldest half when twice the limit is reached (amortised cost is constant)."""
        self.changes.append(change)
        self.versions.append(change.version)
        if len(self.changes) > 2 * self.limit:
            self.forget(len(self.changes) - self.limit)

    def forget(self, count: int) -> None:
        """Drop the oldest `count` changes: watches from before them get 410."""
        if count <= 0 or not self.versions:
            return
        count = min(count, len(self.versions))
        self.forgotten = self.versions[count - 1]
        del self.changes[:count], self.versions[:count]

    def since(self, version: int) -> list[Change]:
        """The changes after `version`.

        Raises:
            StatusError: 410, some of them are forgotten.
        """
        if version < self.forgotten:
            raise too_old(version, self.forgotten)
        return self.changes[bisect_right(self.versions, version) :]


Listener = Callable[[Change], None]
UniversalListener = Callable[[Change, Resource], None]


class Store:
    """All objects of one server."""

    def __init__(self, history: int = HISTORY) -> None:
        self.version = FIRST_VERSION
        self._limit = history
        self._objects: dict[Resource, dict[Key, Record]] = defaultdict(dict)
        self._histories: dict[Resource, History] = {}
        self._listeners: dict[Resource, list[Listener]] = defaultdict(list)
        self._everything: list[UniversalListener] = []

    def get(self, resource: Resource, key: Key) -> Record | None:
        """The current version of one object."""
        return self._objects[resource].get(key)

    def items(self, resource: Resource, namespace: str = "") -> list[Record]:
        """All objects of a resource, or of one namespace, in the order of their keys."""
        found = self._objects[resource]
        keys = sorted(found) if not namespace else sorted(key for key in found if key[0] == namespace)
        return [found[key] for key in keys]

    def resources(self) -> list[Resource]:
        """Every resource that holds an object."""
        return [resource for resource, found in self._objects.items() if found]

    def put(self, resource: Resource, obj: Obj) -> Record:
        """Store `obj` as the newest version of its key, and tell the listeners."""
        key = key_of(obj)
        previous = self._objects[resource].get(key)
        record = self._record(obj)
        self._objects[resource][key] = record
        self._tell(resource, Change(record.version, "MODIFIED" if previous else "ADDED", record, previous))
        return record

    def remove(self, resource: Resource, key: Key, last: Obj | None = None) -> Record:
        """Delete an object; the DELETED event carries its last state (or `last`) under a new resourceVersion."""
        previous = self._objects[resource].pop(key)
        record = self._record(last if last is not None else previous.obj)
        self._tell(resource, Change(record.version, "DELETED", record, previous))
        return record

    def history(self, resource: Resource) -> History:
        """The changes of one resource."""
        found = self._histories.get(resource)
        if found is None:
            found = self._histories[resource] = History(self._limit, forgotten=FIRST_VERSION)
        return found

    def compact(self) -> None:
        """Forget all history, as etcd's compaction does: every watch that resumes from before gets 410."""
        for history in self._histories.values():
            history.forget(len(history.versions))
            history.forgotten = self.version

    def listen(self, listener: Listener, resource: Resource) -> Callable[[], None]:
        """Call `listener` with each change of `resource`; returns what ends it."""
        listeners = self._listeners[resource]
        listeners.append(listener)
        return lambda: listeners.remove(listener)

    def listen_all(self, listener: UniversalListener) -> None:
        """Call `listener` with each change of any resource, for as long as the store lives."""
        self._everything.append(listener)

    def _record(self, obj: Obj) -> Record:
        self.version += 1
        stamped = with_metadata(obj, resourceVersion=str(self.version))
        return Record(stamped, encoded(stamped), self.version)

    def _tell(self, resource: Resource, change: Change) -> None:
        self.history(resource).append(change)
        for listener in tuple(self._listeners[resource]):
            listener(change)
        for universal in self._everything:
            universal(change, resource)
