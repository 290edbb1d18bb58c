"""What all stand-ins share: keys to look at, looked at once however often they were touched.

Subclassed by the stand-ins beside it. Level-triggered like the controllers that they stand for: a key says "look again".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi.objects import Key, Resource
from dra_operator.testing.fakeapi.options import WriteOptions
from dra_operator.testing.fakeapi.store import Change, Store

if TYPE_CHECKING:
    from dra_operator.testing.fakeapi.machinery import Machinery

Later = Callable[[Callable[[], None]], None]
Work = tuple[Resource, Key]


class StandIn(ABC):
    """One controller that a cluster would have.

    Args:
        machinery: how it writes; its writes are held to the same rules as everybody's.
    """

    name = ""
    watches: tuple[Resource, ...] = ()

    def __init__(self, machinery: Machinery) -> None:
        self.machinery = machinery
        self._dirty: dict[Work, None] = {}
        self._later: Later | None = None
        self._planned = False
        self._unlisten: list[Callable[[], None]] = []

    @property
    def store(self) -> Store:
        """The objects."""
        return self.machinery.store

    @property
    def options(self) -> WriteOptions:
        """Write options under this stand-in's name."""
        return WriteOptions(self.name)

    def start(self, later: Later) -> None:
        """Look at everything that is there, then at every change."""
        self._later = later
        for resource in self.watches:
            self._unlisten.append(self.store.listen(self._listener(resource), resource))
            for record in self.store.items(resource):
                self.changed(resource, Change(record.version, "ADDED", record, None))

    def stop(self) -> None:
        """Look at nothing any longer."""
        self._later = None
        for unlisten in self._unlisten:
            unlisten()
        self._unlisten.clear()

    def _listener(self, resource: Resource) -> Callable[[Change], None]:
        return lambda change: self.changed(resource, change)

    def touch(self, resource: Resource, key: Key) -> None:
        """Look at `key` soon."""
        self._dirty[resource, key] = None
        if self._later is not None and not self._planned:
            self._planned = True
            self._later(self._work)

    def _work(self) -> None:
        self._planned = False
        dirty, self._dirty = self._dirty, {}
        if self._later is None:
            return
        for resource, key in dirty:
            self.look(resource, key)

    @abstractmethod
    def changed(self, resource: Resource, change: Change) -> None:
        """One object of `watches` changed: touch what has to be looked at."""

    @abstractmethod
    def look(self, resource: Resource, key: Key) -> None:
        """Bring what depends on `key` into order."""
