"""Pods that were sent to a node with their devices and are not bound there: says why, and, if an admin wants it, has them made anew (cp I-27).

Past the gates a pod's node affinity cannot be changed any more (cp I-22), so the pin cannot be taken back: only another pod helps. One key a
pod. A pod whose node is gone is told at once, any other after a while, with kube-scheduler's own words. A pod is deleted only if it is
allowed, its controller will make another, and nobody can have bound it: the deletion carries its uid and version. It must not touch claims: they go
with their pods.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from dra_operator.cluster import pinned_node
from dra_operator.logfields import fields, note
from dra_operator.metrics import REFUSED_PODS, REPLACED_PODS
from dra_operator.model import Node, Pod
from dra_operator.placement import DEFAULT_SCHEDULER

from .commit import POD
from .names import GENERATED, MARK, holds_our_allocation, is_marked
from .replacing import Waves
from .undo import claims_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dra_operator.cluster import Change
    from dra_operator.model import Condition, ResourceClaim

    from .clock import Timer
    from .parts import Parts
    from .workqueue import WorkQueue

logger = logging.getLogger(__name__)

REMIND: Final = 1200.0
"""Seconds after which a pod that is still refused is told again: the API server forgets events after an hour. Arbitrary, well below that."""

MARGIN: Final = 0.05
"""Seconds that a timer may be early. Arbitrary, far more than it is."""


class StrandedController:
    """Follows the pods that kube-scheduler has yet to bind.

    Args:
        parts: the common arguments.
        queue: of pod keys.
        patience: seconds that kube-scheduler may take.
        replaces: whether pods that a controller owns are deleted then.
    """

    def __init__(self, parts: Parts, queue: WorkQueue, patience: float, *, replaces: bool) -> None:
        self._cluster = parts.cluster
        self._access = parts.access
        self._recorder = parts.recorder
        self._metrics = parts.metrics
        self._clock = parts.clock
        self.queue = queue
        self._patience = patience
        self._waves = Waves(patience) if replaces else None
        self._since: dict[str, float] = {}
        self._timers: dict[str, Timer] = {}
        self._refused: set[str] = set()

    def start(self) -> None:
        """The model is synced: look at the pods that are there."""
        self._add(self._cluster.pods.values())

    def changed(self, change: Change) -> None:
        """Look at the pods of a node that goes, and at a pod that is on its way or no more."""
        subject = change.new or change.old
        if isinstance(change.old, Node) and change.new is None:
            self._add(self._cluster.pods.values())
        elif isinstance(subject, Pod):
            if change.new is None:
                self._forget(subject)
            elif subject.uid in self._since:
                self.queue.add(subject.key)
            else:
                self._add([subject])

    async def reconcile(self, pod_key: str) -> None:
        """One pass over a pod.

        Raises:
            ApiError: it could not be deleted; look again.
        """
        note(pod=pod_key)
        pod = self._cluster.pods.get(pod_key)
        if pod is None:
            return
        node = awaited(pod)
        if not node or not self._was_sent_by_us(pod):
            self._forget(pod)
            return
        now = self._clock.monotonic()
        waited = now - self._since.setdefault(pod.uid, now)
        if node not in self._cluster.nodes:
            self._tell(pod, "NodeGone", node_gone(node))
        if waited < self._patience:
            self._look_again(pod, self._patience - waited)
            return
        if node in self._cluster.nodes:
            self._tell(pod, "PodRefused", self._refused_text(pod, node))
        await self._replace(pod, now)

    async def _replace(self, pod: Pod, now: float) -> None:
        """Have the pod's controller make another one, if that is wanted and it is time."""
        owner = pod.metadata.controller
        if self._waves is None or owner is None or pod.metadata.deletion_timestamp is not None:
            self._look_again(pod, REMIND)
            return
        since = self._since[pod.uid]
        left = self._waves.delay(owner.uid, since) - (now - since)
        if left > 0:
            self._look_again(pod, left)
            return
        await self._access.delete(POD, pod)
        self._waves.replaced(owner.uid, since, now)
        self._metrics.count(REPLACED_PODS)
        words = f"deleted, as kube-scheduler does not bind it: {owner.kind} {owner.name} makes another one, which gets a node and devices anew"
        self._recorder.record(POD, pod.metadata, "PodReplaced", words)
        logger.warning("pod deleted, for its controller to make another one", extra=fields(node=awaited(pod)))

    def _refused_text(self, pod: Pod, node: str) -> str:
        lost = [claim.key for claim in claims_of(self._cluster, pod) if not claim.is_allocated]
        said = _said(pod)
        parts = [
            f"{_scheduler(pod)} has not bound the pod to Node {node}, to which it was sent with its devices, for {self._patience:g} s: {said}"
        ]
        if lost:
            parts.append(
                f"ResourceClaim {lost[0]} has lost its allocation meanwhile, and no other node can be chosen for the pod"
            )
        if self._cluster.nodes[node].spec.unschedulable:
            parts.append(f"The node is cordoned: kubectl uncordon {node}")
        parts.append(
            "spec.affinity.nodeAffinity of the pod names the node and cannot be changed any more: mend what these words name, or recreate the pod"
        )
        return ". ".join(parts)

    def _tell(self, pod: Pod, reason: str, text: str) -> None:
        self._recorder.record(POD, pod.metadata, reason, text)
        if pod.uid not in self._refused:
            logger.warning("pod is not bound: %s", text, extra=fields(reason=reason))
            self._refused.add(pod.uid)
            self._metrics.set(REFUSED_PODS, len(self._refused))

    def _add(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            if awaited(pod) and self._was_sent_by_us(pod):
                self.queue.add(pod.key)

    def _was_sent_by_us(self, pod: Pod) -> bool:
        """Pods of DaemonSets are pinned in the same way, and may be heard of before their node is."""
        return any(_bears_our_mark(claim) for claim in claims_of(self._cluster, pod))

    def _look_again(self, pod: Pod, delay: float) -> None:
        """One timer a pod, the newest."""
        if timer := self._timers.pop(pod.uid, None):
            timer.cancel()
        key = pod.key
        self._timers[pod.uid] = self._clock.call_later(delay + MARGIN, lambda: self.queue.add(key))

    def _forget(self, pod: Pod) -> None:
        """The pod is bound or gone."""
        self._since.pop(pod.uid, None)
        if timer := self._timers.pop(pod.uid, None):
            timer.cancel()
        if pod.uid in self._refused:
            self._refused.discard(pod.uid)
            self._metrics.set(REFUSED_PODS, len(self._refused))


def awaited(pod: Pod) -> str:
    """The node that a pod past the gates has to go to and is not bound to yet; empty if there is no such node."""
    return "" if pod.is_done or pod.spec.node_name else pinned_node(pod)


def node_gone(node: str) -> str:
    """What a pod is told whose node went."""
    return (
        f"Node {node}, to which the pod was sent with its devices, was deleted before kube-scheduler bound the pod: "
        "spec.affinity.nodeAffinity names it and cannot be changed any more. Recreate the pod, or bring the node back under its name"
    )


def _bears_our_mark(claim: ResourceClaim) -> bool:
    """Whether we allocated the claim, even if somebody has deallocated it since (cp I-10); generated claims are born with a mark."""
    return holds_our_allocation(claim) or (is_marked(claim) and claim.metadata.annotations[MARK] != GENERATED)


def _scheduler(pod: Pod) -> str:
    """Whose turn it is. Another name may be a profile of kube-scheduler, or of a scheduler that does not run here at all."""
    name = pod.spec.scheduler_name
    return "kube-scheduler" if name in {"", DEFAULT_SCHEDULER} else f"scheduler {name} (spec.schedulerName)"


def _said(pod: Pod) -> str:
    """The scheduler's last word on the pod."""
    found: Condition | None = next(
        (item for item in pod.status.conditions if item.type == "PodScheduled"), None
    )
    if found is None or found.reason == "SchedulingGated" or not found.message:
        return "it has said nothing of the pod since, so see whether it runs"
    return found.message.rstrip(".")
