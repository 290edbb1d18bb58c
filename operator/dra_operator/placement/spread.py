"""Topology spread constraints that must hold, as kube-scheduler's PodTopologySpread filters by them (I-27).

Made by `filters.prepare` for pods with such constraints. Which domains there are, and how many matching pods are in each, is counted
over all nodes that count for the constraint; a node passes if the pod there makes its domain at most `maxSkew` fuller than
the emptiest one. kube-scheduler's default constraints, for pods that have none, only rank nodes and are not looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dra_operator.cluster import NOTHING as NO_NAMESPACE
from dra_operator.cluster import Crowd, PodFilter, selector_of, with_labels

from .nodes import NodeReason, blocking_taint, matches_affinity
from .outcomes import Cause
from .topology import crowds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dra_operator.cluster import Cluster
    from dra_operator.model import Node, Pod, TopologySpreadConstraint

    from .topology import Crowds

SPREAD: Final = "node(s) didn't match pod topology spread constraints"
NO_DOMAIN: Final = f"{SPREAD} (missing required label)"

DO_NOT_SCHEDULE: Final = "DoNotSchedule"
HONOR: Final = "Honor"


def topology_spread(pod: Pod, cluster: Cluster) -> TopologySpread | None:
    """The filter for a pod; None if it has no constraint that must hold."""
    constraints = tuple(
        item for item in pod.spec.topology_spread_constraints if item.when_unsatisfiable == DO_NOT_SCHEDULE
    )
    return TopologySpread(pod, cluster, constraints) if constraints else None


class TopologySpread:
    """Answers for one pod and the cluster as it is."""

    def __init__(self, pod: Pod, cluster: Cluster, constraints: Sequence[TopologySpreadConstraint]) -> None:
        others = cluster.nominated(pod)
        self._constraints = [Spread(pod, item, cluster, others) for item in constraints]
        for node in in_all_domains(constraints, cluster):
            for constraint in self._constraints:
                constraint.count(node)

    def reason(self, node: Node) -> NodeReason | None:
        """Why the node cannot take the pod; it lasts where the node has not the label of a constraint."""
        for constraint in self._constraints:
            value = node.metadata.labels.get(constraint.topology_key)
            if value is None:
                return NodeReason(Cause.NEIGHBOURS, NO_DOMAIN, lasting=True)
            if not constraint.allows(value):
                return NodeReason(Cause.NEIGHBOURS, SPREAD, lasting=False)
        return None


class Spread:
    """One constraint: the pods that it counts, by domain.

    Attributes:
        topology_key: the label that makes the domains.
        max_skew: how much fuller than the emptiest a domain may be.
    """

    def __init__(
        self, pod: Pod, constraint: TopologySpreadConstraint, cluster: Cluster, others: Sequence[Pod]
    ) -> None:
        self.topology_key = constraint.topology_key
        self.max_skew = constraint.max_skew
        self._pod = pod
        self._min_domains = constraint.min_domains or 1
        self._honors_affinity = constraint.node_affinity_policy == HONOR
        self._honors_taints = constraint.node_taints_policy == HONOR
        labels = pod.metadata.labels
        shared = {key: labels[key] for key in constraint.match_label_keys if key in labels}
        selector = with_labels(selector_of(constraint.label_selector), shared)
        self._itself = int(selector.matches(labels))
        self._pods: Crowds | None = None
        # kube-scheduler counts nobody for a selector that is empty.
        if selector.requirements:
            namespace = frozenset({pod.metadata.namespace})
            crowd = Crowd((PodFilter(namespace, NO_NAMESPACE, selector),), staying=True)
            self._pods = crowds(crowd, cluster, others)
        self._bound: dict[str, int] = {}
        self._expected: dict[str, int] = {}
        self._most: tuple[int, int] | None = None

    def count(self, node: Node) -> None:
        """Count a node that has the label, if it counts for the constraint: its domain, and the pods there."""
        if self._honors_affinity and not matches_affinity(self._pod, node):
            return
        if self._honors_taints and blocking_taint(self._pod, node) is not None:
            return
        self._most = None
        value = node.metadata.labels[self.topology_key]
        bound, expected = self._pods if self._pods is not None else (_NOBODY, _NOBODY)
        self._bound[value] = self._bound.get(value, 0) + bound.get(node.name, 0)
        self._expected[value] = self._expected.get(value, 0) + expected.get(node.name, 0)

    def allows(self, value: str) -> bool:
        """Whether the pod may go to that domain, with the pods that are on their way and without."""
        if (
            self._most is None
        ):  # once all are counted, or each of thousands of nodes would cost a look at all domains
            self._most = self._ceiling(self._bound), self._ceiling(self._expected)
        bound, expected = self._most
        return self._bound.get(value, 0) <= bound and self._expected.get(value, 0) <= expected

    def expected(self, value: str) -> int:
        """Pods in a domain, those on their way included."""
        return self._expected.get(value, 0)

    def _ceiling(self, pods: Mapping[str, int]) -> int:
        """How many pods a domain may have before ours comes."""
        least = min(pods.values(), default=0) if len(pods) >= self._min_domains else 0
        return self.max_skew + least - self._itself


def in_all_domains(constraints: Sequence[TopologySpreadConstraint], cluster: Cluster) -> Iterator[Node]:
    """Nodes that have the labels of all constraints: no other counts for any of them."""
    keys = {item.topology_key for item in constraints}
    return (node for node in cluster.nodes.values() if keys <= node.metadata.labels.keys())


_NOBODY: Final[Mapping[str, int]] = {}
