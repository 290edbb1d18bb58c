"""Whom a change may help: pods that wait are looked at again soon after something happened that may serve them.

Changes come in crowds (a freed node, a relist), so those of one moment are gathered. Three circles: everybody; those that pods on nodes
repel or attract; those with volumes. Pure but for the clock; used by `allocation`, which looks at the pods. It must not decide whether a pod
can be served.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dra_operator.cluster import pod_requests, rules_changed, volume_claim_keys
from dra_operator.model import Namespace, Node, Pod

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dra_operator.cluster import Change, Cluster

    from .clock import Clock, Timer
    from .failures import Failures
    from .waiting import Waiting

BATCH = 0.02
"""Seconds in which changes that may help are gathered before the waiting pods are looked at again: a freed node or a relist is
many changes. Arbitrary; well below what a person notices."""

HELPFUL = frozenset({"DeviceClass", "DeviceTaintRule", "ResourceSlice"})
"""Kinds of which any change may help a pod that waits; of an AllocationPolicy, only another spec does."""

STORAGE = frozenset(
    {
        "CSIDriver",
        "CSINode",
        "CSIStorageCapacity",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "StorageClass",
        "VolumeAttachment",
    }
)
"""Kinds of which any change may help a pod that waits and has volumes by claim, and no other."""


class Waking:
    """Gathers changes, then has the pods looked at that they may help.

    Args:
        clock: for the timers.
        cluster: where the waiting pods are looked up.
        waiting: the pods that wait.
        failures: searches that failed; a change that may help makes them stale.
        look_at: is called with the keys of the pods to look at again.
    """

    def __init__(
        self,
        clock: Clock,
        cluster: Cluster,
        waiting: Waiting,
        failures: Failures,
        look_at: Callable[[Iterable[str]], None],
    ) -> None:
        self._clock = clock
        self._cluster = cluster
        self._waiting = waiting
        self._failures = failures
        self._look_at = look_at
        self._for_all: Timer | None = None
        self._for_neighbours: Timer | None = None
        self._for_volumes: Timer | None = None
        self._first_priority: int | None = None

    def changed(self, change: Change) -> None:
        """Wake the circle that a change may help; what becomes of claims and of pods that end is told by `everybody`."""
        if _helps_everybody(change):
            self.everybody()
        elif isinstance(change.new or change.old, Namespace) or _is_news_for_neighbours(change):
            self.neighbours()
        elif change.kind in STORAGE:
            self._with_volumes()

    def everybody(self) -> None:
        """Look at all waiting pods again, soon, together."""
        if self._for_all is None:
            self._for_all = self._clock.call_later(BATCH, self.everybody_now)
            pods = map(self._cluster.pods.get, self._waiting)
            self._first_priority = max((pod.spec.priority for pod in pods if pod), default=None)

    def everybody_now(self) -> None:
        """Look at all waiting pods again, at once."""
        if self._for_all is not None:
            self._for_all.cancel()
            self._for_all = None
        self._failures.something_changed()
        self._look_at(tuple(self._waiting))

    def neighbours(self) -> None:
        """Pods came to nodes, or are others there: look again, soon, at those of the waiting pods that such pods may help."""
        if self._for_all is not None or not self._waiting.minding_neighbours():
            return
        self._failures.neighbours_changed()
        if self._for_neighbours is None:
            self._for_neighbours = self._clock.call_later(BATCH, self._neighbours_now)

    def joined(self, pod: Pod) -> None:
        """One more pod waits."""
        if self._for_all is not None:
            first = self._first_priority
            self._first_priority = pod.spec.priority if first is None else max(first, pod.spec.priority)

    def is_outranked(self, pod: Pod) -> bool:
        """Whether pods of a higher priority wait, and what may help them has happened: what has come free is theirs first."""
        if self._for_all is None or self._first_priority is None or pod.spec.node_name:
            return False
        return pod.spec.priority < self._first_priority

    def _with_volumes(self) -> None:
        """Volumes, or what is known of them, are others: look again, soon, at those of the waiting pods that have some."""
        if self._for_all is None and self._for_volumes is None:
            self._for_volumes = self._clock.call_later(BATCH, self._with_volumes_now)

    def _neighbours_now(self) -> None:
        self._for_neighbours = None
        self._look_at(self._waiting.minding_neighbours())

    def _with_volumes_now(self) -> None:
        self._for_volumes = None
        pods = (self._cluster.pods.get(key) for key in self._waiting)
        self._look_at([pod.key for pod in pods if pod is not None and volume_claim_keys(pod)])


def _helps_everybody(change: Change) -> bool:
    if isinstance(change.new or change.old, Pod):
        return _was_resized(change) or _left_its_nomination(change)
    return (
        change.kind in HELPFUL
        or _allows_admin_access(change)
        or rules_changed(change)
        or _node_matters(change)
    )


def _allows_admin_access(change: Change) -> bool:
    """Whether claims in a namespace may ask for admin access now, and could not before (cp V-70)."""
    old, new = change.old, change.new
    if not isinstance(new, Namespace) or not new.allows_admin_access:
        return False
    return not (isinstance(old, Namespace) and old.allows_admin_access)


def _left_its_nomination(change: Change) -> bool:
    """Whether room that was kept for a pod on a node is kept there no longer (its binding says that by itself)."""
    old, new = change.old, change.new
    if not isinstance(old, Pod) or not isinstance(new, Pod) or not old.status.nominated_node_name:
        return False
    return old.status.nominated_node_name != new.status.nominated_node_name


def _was_resized(change: Change) -> bool:
    """Whether a pod on a node needs something else there than before: room may have come free (in-place resize)."""
    old, new = change.old, change.new
    if not isinstance(old, Pod) or not isinstance(new, Pod) or not old.spec.node_name or old.spec == new.spec:
        return False
    return pod_requests(old) != pod_requests(new)


def _is_news_for_neighbours(change: Change) -> bool:
    """Whether a pod came to a node, or is another there to those that look for it by its labels; one that leaves wakes everybody."""
    old, new = change.old, change.new
    if not isinstance(new, Pod) or not (new.spec.node_name or new.status.nominated_node_name):
        return False
    if not isinstance(old, Pod):
        return True
    return _seen_by_neighbours(old) != _seen_by_neighbours(new)


def _seen_by_neighbours(pod: Pod) -> tuple[object, ...]:
    meta = pod.metadata
    return pod.spec.node_name, pod.status.nominated_node_name, meta.labels, meta.deletion_timestamp


def _node_matters(change: Change) -> bool:
    """Whether a node changed in what placement reads; heartbeats do not count."""
    old, new = change.old, change.new
    if not isinstance(new, Node):
        return False
    if not isinstance(old, Node):
        return True
    quiet = msgspec.structs.replace(new.metadata, resource_version=old.metadata.resource_version)
    same_meta = (quiet.labels, quiet.deletion_timestamp) == (
        old.metadata.labels,
        old.metadata.deletion_timestamp,
    )
    return not (same_meta and new.spec == old.spec and new.status == old.status)
