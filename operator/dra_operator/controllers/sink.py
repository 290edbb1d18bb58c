"""Where feeds and Kopf's handlers pour objects: the cluster model, plus a word about objects that cannot be read."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from dra_operator.errors import InvalidObject
from dra_operator.kube.kinds import KINDS as ROWS
from dra_operator.kube.listing import RawMeta
from dra_operator.logfields import News, fields
from dra_operator.metrics import REJECTED_OBJECTS, Metrics
from dra_operator.model import KINDS, from_object, metadata_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from dra_operator.cluster import Cluster
    from dra_operator.model import Value

    from .echoes import Echoes
    from .parts import Recorder

logger = logging.getLogger(__name__)

MAX_TEXT = 900
"""Characters of an event's message; the API takes 1024 bytes."""


class ModelSink:
    """Passes on to the model; objects that cannot be decoded are logged once and counted each time, and their last good version stays."""

    def __init__(self, cluster: Cluster, metrics: Metrics, echoes: Echoes, recorder: Recorder) -> None:
        self._cluster = cluster
        self._metrics = metrics
        self._echoes = echoes
        self._recorder = recorder
        self._news = News()

    def replace(self, kind: str, objects: Iterable[Value], version: str = "") -> None:
        """All objects of a kind there are."""
        self._echoes.listed(kind, version)
        self._cluster.replace(kind, objects, version)

    def apply(self, event: str, obj: Value) -> None:
        """One change."""
        self._echoes.heard(obj)
        self._cluster.apply(event, obj)

    def reject(self, kind: str, error: InvalidObject, metadata: RawMeta) -> None:
        """An object that cannot be decoded, from a feed of ours or a list of the sync guard."""
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
        """A raw event as Kopf hands it out: its type is None for objects of the initial list."""
        try:
            obj = from_object(KINDS[kind], raw)
        except InvalidObject as error:
            self._take_unreadable(kind, event, error, _metadata(raw))
            return
        self._echoes.heard(obj)
        self._cluster.apply(event or "ADDED", obj)

    def _take_unreadable(self, kind: str, event: str | None, error: InvalidObject, metadata: RawMeta) -> None:
        """An unreadable deletion is one all the same: what the last good version holds is free."""
        known = self._cluster.find(kind, metadata.key)
        if event != "DELETED":
            self._echoes.brought(kind, metadata)
            self.reject(kind, error, metadata)
        elif known is not None and metadata_of(known).uid == metadata.uid:
            self.apply(event, known)


def _metadata(raw: Mapping[str, Any]) -> RawMeta:
    """As much of the metadata as can be read; whatever is not text is left out."""
    found = raw.get("metadata")
    known = found if isinstance(found, Mapping) else {}
    keys = {"name": "name", "namespace": "namespace", "uid": "uid", "resource_version": "resourceVersion"}
    texts = {field: known.get(key) for field, key in keys.items()}
    return RawMeta(**{field: text for field, text in texts.items() if isinstance(text, str)})
