"""One kind's objects by key, and the rules by which a newer object replaces an older one.

Objects come from three sides that overtake each other: watch events, full lists, and the answers to our own writes ("assumed",
architecture section 3). Within one uid the resourceVersion decides, compared as an integer; a uid that is gone never comes back.
Called by `model` only. It must not know any kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from dra_operator.model import Kubernetes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dra_operator.model import Value

TOMBSTONES = 10_000
"""How many uids of gone objects one kind remembers. Arbitrary: echoes overtake deletes by seconds, not by ten thousand deletes."""


V = TypeVar("V", bound=Kubernetes)


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one object: added (`old` is None), modified, or gone (`new` is None). Both have the same uid."""

    kind: str
    old: Value | None
    new: Value | None


def version(obj: Kubernetes) -> int | None:
    """The resourceVersion as an integer; None where there is none, as in objects that no API server has seen."""
    text = obj.metadata.resource_version
    return int(text) if text.isdecimal() else None


def is_newer(candidate: Kubernetes, known: Kubernetes) -> bool:
    """Whether an object supersedes another of the same kind. Without versions to compare, any difference does."""
    mine, theirs = version(candidate), version(known)
    if mine is None or theirs is None:
        return candidate != known
    return mine > theirs


class Store(Generic[V]):
    """Objects of one kind. `emit(old, new)` is called after each single step, with the store already in its new state."""

    def __init__(self, emit: Callable[[V | None, V | None], None]) -> None:
        self.objects: dict[str, V] = {}
        self._emit = emit
        self._gone: dict[str, None] = {}

    def upsert(self, obj: V) -> None:
        """Take an object that somebody has seen; ignored when older than what is known, or of a uid known to be gone."""
        meta = obj.metadata
        known = self.objects.get(meta.key)
        if meta.uid in self._gone or (known is not None and not is_newer(obj, known)):
            return
        if known is not None and known.metadata.uid != meta.uid:
            self._bury(known.metadata.uid)
            self._remove(known)
            known = None
        self.objects[meta.key] = obj
        self._emit(known, obj)

    def delete(self, obj: V) -> None:
        """Take the word that an object is gone. Its uid stays gone, whatever comes late."""
        known = self.objects.get(obj.metadata.key)
        self._bury(obj.metadata.uid)
        if known is not None and known.metadata.uid == obj.metadata.uid:
            self._remove(known)

    def replace(self, objects: Iterable[V], list_version: int | None) -> None:
        """Take a full list: what it lacks is gone, unless it was seen after the list was made.

        A list without a version cannot say for sure; what it lacks may then come back.
        """
        listed = {obj.metadata.key: obj for obj in objects}
        for key, known in list(self.objects.items()):
            if key not in listed and not _is_after(known, list_version):
                if list_version is not None:
                    self._bury(known.metadata.uid)
                self._remove(known)
        for obj in listed.values():
            self.upsert(obj)

    def is_gone(self, uid: str) -> bool:
        """Whether the object of that uid was seen to go (cp C-61); forgotten after many more went."""
        return uid in self._gone

    def _remove(self, known: V) -> None:
        del self.objects[known.metadata.key]
        self._emit(known, None)

    def _bury(self, uid: str) -> None:
        if not uid:
            return
        self._gone[uid] = None
        if len(self._gone) > TOMBSTONES:
            del self._gone[next(iter(self._gone))]


def _is_after(known: Kubernetes, list_version: int | None) -> bool:
    mine = version(known)
    return list_version is not None and mine is not None and mine > list_version
