"""Where feeds and Kopf's handlers pour objects: the cluster model, plus a word about objects that cannot be read."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from dra_operator.cluster import Unreadable
from dra_operator.errors import InvalidObject
from dra_operator.kube.kinds import KINDS as ROWS
from dra_operator.kube.listing import RawMeta
from dra_operator.logfields import News, fields
from dra_operator.metrics import REJECTED_OBJECTS, Metrics
from dra_operator.model import KINDS, from_object, held_allocation, metadata_of

from .commit import CLAIM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from dra_operator.cluster import Cluster
    from dra_operator.model import Value

    from .echoes import Echoes
    from .parts import Recorder

logger = logging.getLogger(__name__)

MAX_TEXT = 900
"""Characters of an event's message; the API takes 1024 bytes."""


def nobody_waits() -> None:
    """Nobody is to be told of devices that came free."""


def nobody_sweeps(kind: str) -> None:
    """Nobody is to be told of lists."""


class ModelSink:
    """Passes on to the model; objects that cannot be decoded are logged once and counted each time, and their last good version stays.

    Of a claim that cannot be decoded the model learns which devices it holds, as far as that can be told.

    Attributes:
        freed: called when an unreadable claim held devices and does so no more, which no change of the model tells.
        relisted: called with the kind for each object of a list of Kopf's.
    """

    def __init__(self, cluster: Cluster, metrics: Metrics, echoes: Echoes, recorder: Recorder) -> None:
        self._cluster = cluster
        self._metrics = metrics
        self._echoes = echoes
        self._recorder = recorder
        self._news = News()
        self._unreadable_claims: set[str] = set()
        """Keys of the claims that could not be read since the last list of all claims."""
        self.freed: Callable[[], None] = nobody_waits
        self.relisted: Callable[[str], None] = nobody_sweeps

    def replace(self, kind: str, objects: Iterable[Value], version: str = "") -> None:
        """All objects of a kind there are, but those that were rejected just before."""
        self._echoes.listed(kind, version)
        before = len(self._cluster.unreadable)
        self._cluster.replace(kind, objects, version)
        if kind == CLAIM:
            for key in set(self._cluster.unreadable) - self._unreadable_claims:
                self._cluster.forget_unreadable(key)
            self._unreadable_claims.clear()
            self._tell_freed(before)

    def apply(self, event: str, obj: Value) -> None:
        """One change."""
        self._echoes.heard(obj)
        before = len(self._cluster.unreadable)
        self._cluster.apply(event, obj)
        self._tell_freed(before)

    def reject(self, kind: str, error: InvalidObject, metadata: RawMeta, raw: bytes = b"") -> None:
        """An object that cannot be decoded, from a feed of ours or a list of the sync guard."""
        self._reject(kind, error, metadata, _parsed(raw) if kind == CLAIM else None)

    def _reject(self, kind: str, error: InvalidObject, metadata: RawMeta, raw: object) -> None:
        if kind == CLAIM and metadata.name:
            self._hold(error, metadata, raw)
        if ROWS[kind].feed == "stream":  # a list does not pay what Kopf's watch owes, see `Echoes.listed`
            self._echoes.brought(kind, metadata)
        self._metrics.count(REJECTED_OBJECTS, kind)
        # Every list brings the object again: it is told of once, until something else is wrong with it.
        level = logging.WARNING if self._news.is_new(f"{kind} {metadata.key}", str(error)) else logging.DEBUG
        words = "object cannot be read; its last good version stays in use, if there was one: %s"
        logger.log(level, words, error, extra=fields(object=f"{kind} {metadata.key}"))
        if metadata.name:
            where = f"{error.path}: {error.message}" if error.path else error.message
            text = (
                f"{where}: dra-operator cannot read the object and goes on with the last version that it could read, or without: "
                f"correct that, or delete and create the {kind} anew"
            )
            self._recorder.record(kind, metadata, "Unreadable", text[:MAX_TEXT])

    def take(self, kind: str, event: str | None, raw: Mapping[str, Any]) -> None:
        """A raw event as Kopf hands it out: its type is None for objects of a list, the first one or one after a gap."""
        if event is None:
            self.relisted(kind)
        try:
            obj = from_object(KINDS[kind], raw)
        except InvalidObject as error:
            self._take_unreadable(kind, event, error, raw)
            return
        self.apply(event or "ADDED", obj)

    def _take_unreadable(
        self, kind: str, event: str | None, error: InvalidObject, raw: Mapping[str, Any]
    ) -> None:
        """An unreadable deletion is one all the same: what the last good version holds is free."""
        metadata, before = _metadata(raw), len(self._cluster.unreadable)
        known = self._cluster.find(kind, metadata.key)
        if event != "DELETED":
            self._echoes.brought(kind, metadata)
            self._reject(kind, error, metadata, raw)
            return
        if known is not None and metadata_of(known).uid == metadata.uid:
            self.apply(event, known)
        held = self._cluster.unreadable.get(metadata.key) if kind == CLAIM else None
        if held is not None and held.uid == metadata.uid:
            self._cluster.forget_unreadable(metadata.key)
            self._tell_freed(before)

    def _hold(self, error: InvalidObject, metadata: RawMeta, raw: object) -> None:
        """Nobody else may get what the claim holds, whatever cannot be read of it (alloc A-3)."""
        version = int(metadata.resource_version) if metadata.resource_version.isdecimal() else None
        allocation = held_allocation(raw)
        self._cluster.hold_unreadable(Unreadable(metadata.key, metadata.uid, version, str(error), allocation))
        self._unreadable_claims.add(metadata.key)

    def _tell_freed(self, before: int) -> None:
        """Fewer claims than before cannot be read: what they seemed to hold may be free, and no change of a claim says so."""
        if len(self._cluster.unreadable) < before:
            self.freed()


def _parsed(raw: bytes) -> object:
    """The object as parsed JSON; None for what is no JSON."""
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError:
        return None


def _metadata(raw: Mapping[str, Any]) -> RawMeta:
    """As much of the metadata as can be read; whatever is not text is left out."""
    found = raw.get("metadata")
    known = found if isinstance(found, Mapping) else {}
    keys = {"name": "name", "namespace": "namespace", "uid": "uid", "resource_version": "resourceVersion"}
    texts = {field: known.get(key) for field, key in keys.items()}
    return RawMeta(**{field: text for field, text in texts.items() if isinstance(text, str)})
