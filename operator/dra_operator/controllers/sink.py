"""Where feeds and Kopf's handlers pour objects: the cluster model, plus a word about objects that cannot be read."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from dra_operator.errors import InvalidObject
from dra_operator.metrics import REJECTED_OBJECTS, Metrics
from dra_operator.model import KINDS, from_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from dra_operator.cluster import Cluster
    from dra_operator.kube.listing import RawMeta
    from dra_operator.model import Value

    from .echoes import Echoes

logger = logging.getLogger(__name__)


class ModelSink:
    """Passes on to the model; objects that cannot be decoded are logged and counted, and their last good version stays."""

    def __init__(self, cluster: Cluster, metrics: Metrics, echoes: Echoes) -> None:
        self._cluster = cluster
        self._metrics = metrics
        self._echoes = echoes

    def replace(self, kind: str, objects: Iterable[Value], version: str = "") -> None:
        """All objects of a kind there are."""
        self._echoes.listed(kind, version)
        self._cluster.replace(kind, objects, version)

    def apply(self, event: str, obj: Value) -> None:
        """One change."""
        self._echoes.heard(obj)
        self._cluster.apply(event, obj)

    def reject(self, kind: str, error: InvalidObject, metadata: RawMeta) -> None:
        """An object that cannot be decoded."""
        self._metrics.count(REJECTED_OBJECTS, kind)
        logger.warning("%s %s cannot be read and is left out: %s", kind, metadata.key, error)

    def take(self, kind: str, event: str | None, raw: Mapping[str, Any]) -> None:
        """A raw event as Kopf hands it out: its type is None for objects of the initial list."""
        try:
            obj = from_object(KINDS[kind], raw)
        except InvalidObject as error:
            self._metrics.count(REJECTED_OBJECTS, kind)
            logger.warning("%s cannot be read and is left out: %s", kind, error)
            return
        self._echoes.heard(obj)
        self._cluster.apply(event or "ADDED", obj)
