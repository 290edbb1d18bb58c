"""How full nodes are, as a score: the order in which nodes are tried for pods that prefer none.

Kept by `Placer`: the score of a node is computed anew only after its usage or the node changed, so that ordering hundreds of nodes costs
a decision no more than a sort of integers. The scores are those of kube-scheduler's NodeResourcesFit (LeastAllocated, or
MostAllocated), over cpu and memory of the pods there, each container with at least what kube-scheduler takes for one that asks for
nothing. It must not look at the pod that is to be placed: what it asks for is the same on every node.
"""

from __future__ import annotations

from collections import defaultdict
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dra_operator.cluster import Cluster
    from dra_operator.model import Node

MAX_SCORE: Final = 100
"""The best score of a node; kube-scheduler's."""


class NodeScore(StrEnum):
    """Which of several nodes that can take a pod gets it, as far as cpu and memory go."""

    SPREAD = "spread"
    """The emptiest, as kube-scheduler does by default; equally empty ones by name."""

    PACK = "pack"
    """The fullest, so that whole nodes stay free; equally full ones by name."""

    NAME = "name"
    """The first by name."""


class Room:
    """The scores of all nodes.

    Args:
        cluster: the model; followed by `on_usage`.
        policy: what is scored.
    """

    def __init__(self, cluster: Cluster, policy: NodeScore) -> None:
        self._cluster = cluster
        self._policy = policy
        self._stale = set(cluster.nodes)
        self._penalty: defaultdict[str, int] = defaultdict(int)
        if policy is not NodeScore.NAME:
            cluster.on_usage(self._stale.add)

    def node_changed(self, name: str) -> None:
        """A node is new, other than it was, or gone."""
        self._stale.add(name)

    def order(self, names: Sequence[str]) -> Sequence[str]:
        """Names of nodes, which come sorted, the best first."""
        if self._policy is NodeScore.NAME:
            return names
        self._refresh()
        return sorted(names, key=self._penalty.__getitem__)

    def score(self, name: str) -> int:
        """The score of a node, from 0 to `MAX_SCORE`; the same for all nodes by policy `name`."""
        self._refresh()
        return MAX_SCORE - self._penalty[name]

    def _refresh(self) -> None:
        while self._stale:
            name = self._stale.pop()
            node = self._cluster.nodes.get(name)
            if node is None or self._policy is NodeScore.NAME:
                self._penalty.pop(name, None)
            else:
                self._penalty[name] = MAX_SCORE - self._scored(node)

    def _scored(self, node: Node) -> int:
        spoken = self._cluster.spoken_for(node.name)
        shares = [
            _least(used, whole.nano) if self._policy is NodeScore.SPREAD else _most(used, whole.nano)
            for name, used in spoken.items()
            if (whole := node.status.allocatable.get(name)) is not None and whole.nano > 0
        ]
        return sum(shares) // len(shares) if shares else 0


def _least(used: int, whole: int) -> int:
    return max(whole - used, 0) * MAX_SCORE // whole


def _most(used: int, whole: int) -> int:
    return min(used, whole) * MAX_SCORE // whole
