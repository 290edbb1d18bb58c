"""Tells pods whose node went after they were sent there and before kube-scheduler bound them: nobody else would say what is wrong.

Past the gates a pod's node affinity cannot be changed any more (cp I-22), so the pin cannot be taken back. Follows the model and writes
nothing but events. Wired by `app`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.cluster import pinned_node
from dra_operator.model import Node, Pod

from .commit import POD
from .names import holds_our_allocation
from .undo import claims_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dra_operator.cluster import Change

    from .parts import Parts


class StrandedWatch:
    """Follows the model."""

    def __init__(self, parts: Parts) -> None:
        self._cluster = parts.cluster
        self._recorder = parts.recorder

    def start(self) -> None:
        """The model is synced: look at the pods that are there."""
        self._look(self._cluster.pods.values())

    def changed(self, change: Change) -> None:
        """Look at the pods of a node that goes, and at a pod that was sent to one that is gone already."""
        if isinstance(change.old, Node) and change.new is None:
            self._look(self._cluster.pods.values())
        elif isinstance(change.new, Pod):
            self._look([change.new])

    def _look(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            node = _awaits(pod)
            if node and node not in self._cluster.nodes and self._was_sent_by_us(pod):
                self._tell(pod, node)

    def _was_sent_by_us(self, pod: Pod) -> bool:
        """Pods of DaemonSets are pinned in the same way, and may be heard of before their node is."""
        return any(holds_our_allocation(claim) for claim in claims_of(self._cluster, pod))

    def _tell(self, pod: Pod, node: str) -> None:
        text = (
            f"Node {node}, to which the pod was sent with its devices, was deleted before kube-scheduler bound the pod: "
            "spec.affinity.nodeAffinity names it and cannot be changed any more. Recreate the pod, or bring the node back under its name"
        )
        self._recorder.record(POD, pod.metadata, "NodeGone", text)


def _awaits(pod: Pod) -> str:
    """The node that a pod past the gates has to go to and is not bound to yet; empty if there is no such node."""
    return "" if pod.is_done or pod.spec.node_name else pinned_node(pod)
