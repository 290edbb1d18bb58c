"""Nodes on which claims have to meet: a pod that uses two shared claims can run only where both are allocated.

Asked by `Placer` for pods whose unallocated claims other waiting pods use as well. Where such a pod uses a further claim that is allocated
already, or about to be, the nodes of that one come first: on any other the pod that shares the two could never run. A preference
only; it must not keep a pod off any node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.allocator import selector_matches

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dra_operator.cluster import Cluster
    from dra_operator.model import Node, NodeSelector, Pod, ResourceClaim


class Meeting:
    """Where the claims of one pod meet those of others.

    Args:
        pod: the pod.
        claims: its claims that are to be allocated.
        cluster: the model.
    """

    def __init__(self, pod: Pod, claims: Sequence[ResourceClaim], cluster: Cluster) -> None:
        self._cluster = cluster
        self._selectors = tuple(_selectors(pod, claims, cluster))

    def first(self, names: Sequence[str]) -> Sequence[str]:
        """The same names of nodes, those where the claims meet before the others."""
        if not self._selectors:
            return names
        return sorted(names, key=self._misses)

    def nodes_first(self, nodes: Sequence[Node]) -> Sequence[Node]:
        """The same for nodes."""
        if not self._selectors:
            return nodes
        return sorted(nodes, key=lambda node: self._misses(node.name))

    def _misses(self, name: str) -> int:
        """Claims that are on other nodes."""
        node = self._cluster.nodes.get(name)
        if node is None:
            return 0
        return sum(not selector_matches(selector, node) for selector in self._selectors)


def _selectors(pod: Pod, claims: Sequence[ResourceClaim], cluster: Cluster) -> Iterator[NodeSelector]:
    """Where the other claims are of the pods that wait for one of these claims, too."""
    for claim in claims:
        for other in cluster.pods_of_claim(claim.key):
            if other.uid == pod.uid or other.is_done or other.spec.node_name:
                continue
            for entry in cluster.claims_of_pod(other):
                allocation = cluster.allocation(entry.claim) if entry.claim is not None else None
                if allocation is not None and allocation.node_selector is not None:
                    yield allocation.node_selector
