"""How long a feed takes to bring what the operator has already learned from an answer: its lag, and whether it is dead.

The answer to a write or a read goes into the model at once; the watch brings the same version later. The time between is the lag of that
kind's feed. A feed that does not bring a version for minutes, although the server answers lists of the kind meanwhile and the object
still is there, does not work any more, whatever it says of itself. Used by `app` between `Access` and the model; decides nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dra_operator.kube.kinds import KINDS
from dra_operator.metrics import FEED_LAG
from dra_operator.model import metadata_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from dra_operator.cluster import Cluster
    from dra_operator.kube.listing import RawMeta
    from dra_operator.metrics import Metrics
    from dra_operator.model import ObjectMeta, Value

    from .clock import Clock

MEMORY = 4096
"""Versions awaited at the same time; the oldest are forgotten first. More than are ever under way while feeds work."""

OVERDUE_SECONDS = 300.0
"""After that a version that did not come will not come. Arbitrary: far above any lag, below what users put up with."""


@dataclass(frozen=True, slots=True)
class _Awaited:
    """A version that a feed has to bring."""

    kind: str
    key: str
    version: int
    since: float


class Echoes:
    """The model, as `Access` sees it; notes what the feeds have to bring.

    Attributes:
        heard_at: monotonic time of the last event of each kind.
    """

    def __init__(self, cluster: Cluster, metrics: Metrics, clock: Clock) -> None:
        self._cluster = cluster
        self._metrics = metrics
        self._clock = clock
        self.heard_at: dict[str, float] = {}
        self._awaited: OrderedDict[str, _Awaited] = OrderedDict()

    # --- what `Access` tells

    def assume(self, obj: Value) -> None:
        """Take an answer in. What the feed has brought already, or a version awaited since earlier, is nothing to wait for anew."""
        kind, meta = type(obj).__name__, metadata_of(obj)
        known = self._cluster.find(kind, meta.key)
        version = _version(meta)
        self._cluster.assume(obj)
        is_news = known is None or _version(metadata_of(known)) < version
        if is_news and meta.uid not in self._awaited and not self._cluster.is_gone(kind, meta.uid):
            self._awaited[meta.uid] = _Awaited(kind, meta.key, version, self._clock.monotonic())
            if len(self._awaited) > MEMORY:
                self._awaited.popitem(last=False)

    def apply(self, event: str, obj: Value) -> None:
        """Pass the word on that an object is gone."""
        self._awaited.pop(metadata_of(obj).uid, None)
        self._cluster.apply(event, obj)

    # --- what the feeds tell

    def heard(self, obj: Value) -> None:
        """A feed brings an object."""
        self.brought(type(obj).__name__, metadata_of(obj))

    def brought(self, kind: str, meta: ObjectMeta | RawMeta) -> None:
        """A feed brings a version of an object, also one that cannot be read."""
        now = self._clock.monotonic()
        self.heard_at[kind] = now
        awaited = self._awaited.get(meta.uid)
        if awaited is not None and _version(meta) >= awaited.version:
            del self._awaited[meta.uid]
            self._metrics.observe(FEED_LAG, now - awaited.since, awaited.kind)

    def listed(self, kind: str, version: str) -> None:
        """A whole kind is listed. Of kinds with a feed of ours the watch goes on from there; Kopf's own watch still owes what it owes."""
        if KINDS[kind].feed == "stream" and version.isdecimal():
            awaited = [uid for uid, item in self._awaited.items() if item.kind == kind]
            for uid in awaited:
                if self._awaited[uid].version <= int(version):
                    del self._awaited[uid]

    # --- what `/healthz` asks

    def overdue(self, kind: str, heard_at: Callable[[str], float]) -> float:
        """Seconds for which the feed of a kind has owed a version; 0 if it owes none for long.

        Args:
            kind: the kind.
            heard_at: monotonic time at which the server last answered for a kind: before that, nothing can be expected of a feed.
        """
        now = self._clock.monotonic()
        for uid, item in list(self._awaited.items()):
            if item.kind != kind or now - item.since < OVERDUE_SECONDS or heard_at(kind) <= item.since:
                continue
            found = self._cluster.find(kind, item.key)
            if found is not None and metadata_of(found).uid == uid:
                return now - item.since
            del self._awaited[uid]  # it went while nobody looked: no event of it will come
        return 0.0


def _version(meta: ObjectMeta | RawMeta) -> int:
    """0 where there is none, as in objects that no API server has seen."""
    return int(meta.resource_version) if meta.resource_version.isdecimal() else 0
