"""What a pod prefers among nodes that can all take it, in the measure of kube-scheduler's default profile.

Asked by `Placer` for pods that prefer anything; for others `room` has the order. Scored are, with kube-scheduler's weights: taints
that would rather keep the pod off, preferred node affinity, inter-pod affinity (also that of the pods there), topology spread that need not
hold, and cpu and memory. Not scored, as what they need is not fed: the images on nodes, kube-scheduler's default spread by Services and
ReplicaSets, and the balance of cpu and memory. It must not keep a pod off any node.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from dra_operator.allocator import selector_matches
from dra_operator.cluster import Crowd, preferred_affinity
from dra_operator.errors import InvalidInput, InvalidPod
from dra_operator.model import NodeSelector

from .nodes import tolerates
from .room import MAX_SCORE
from .spread import Spread, in_all_domains
from .topology import crowds, domains, matching

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dra_operator.cluster import Cluster
    from dra_operator.model import Node, NodeSelectorTerm, Pod, TopologySpreadConstraint

    from .room import Room

    Scores = Mapping[str, int]

PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
SCHEDULE_ANYWAY: Final = "ScheduleAnyway"

TAINTS: Final = 3
NODE_AFFINITY: Final = 2
SPREAD: Final = 2
NEIGHBOURS: Final = 2
ROOM: Final = 1
"""Weights of kube-scheduler's default profile."""

_PREFERRED: Final = "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution"

FEW: Final = 100
"""Nodes that are compared at least, where so many can take the pod."""

LEAST_PERCENT: Final = 5


def compared(total: int) -> int:
    """How many nodes that can take a pod are compared in a cluster of that size, as kube-scheduler does: a smaller part of a larger one."""
    if total < FEW:
        return total
    return max(FEW, total * max(LEAST_PERCENT, 50 - total // 125) // 100)


def has_soft_taint(node: Node) -> bool:
    """Whether a taint of the node would rather keep pods off."""
    return any(taint.effect == PREFER_NO_SCHEDULE for taint in node.spec.taints)


def preferences(pod: Pod, cluster: Cluster, *, soft_taints: bool) -> Preferences | None:
    """What a pod prefers; None if nothing but an empty, or a full, node.

    Args:
        pod: the pod.
        cluster: the model.
        soft_taints: whether some node has a taint that would rather keep pods off.
    """
    found = Preferences(pod, cluster)
    return found if found.is_choosy or soft_taints else None


class Preferences:
    """Ranks nodes for one pod and the cluster as it is.

    Attributes:
        is_choosy: whether the pod, or a pod on some node, prefers anything.
    """

    def __init__(self, pod: Pod, cluster: Cluster) -> None:
        self._pod = pod
        self._cluster = cluster
        affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
        self._terms = affinity.preferred_during_scheduling_ignored_during_execution if affinity else ()
        self._spread = tuple(
            item
            for item in pod.spec.topology_spread_constraints
            if item.when_unsatisfiable == SCHEDULE_ANYWAY
        )
        self._drawn = tuple(preferred_affinity(pod))
        self._drawing = tuple(matching(pod, cluster.drawing(), cluster))
        self.is_choosy = bool(self._terms or self._spread or self._drawn or self._drawing)

    def rank(self, nodes: Sequence[Node], room: Room) -> list[Node]:
        """The best node first; equally good ones in the order given."""
        total = {node.name: ROOM * room.score(node.name) for node in nodes}
        for weight, scores in (
            (TAINTS, _reversed({node.name: self._soft_taints(node) for node in nodes})),
            (NODE_AFFINITY, _normal({node.name: self._preferred(node) for node in nodes})),
            (SPREAD, self._even(nodes)),
            (NEIGHBOURS, self._near(nodes)),
        ):
            for name, score in scores.items():
                total[name] += weight * score
        return sorted(nodes, key=lambda node: -total[node.name])

    def _soft_taints(self, node: Node) -> int:
        """Taints that would rather keep the pod off."""
        soft = (taint for taint in node.spec.taints if taint.effect == PREFER_NO_SCHEDULE)
        return sum(not tolerates(self._pod.spec.tolerations, taint) for taint in soft)

    def _preferred(self, node: Node) -> int:
        """Sum of the weights of the node affinity terms that match."""
        return sum(
            term.weight
            for index, term in enumerate(self._terms)
            if _is_preferred(index, term.preference, node)
        )

    def _near(self, nodes: Sequence[Node]) -> Scores:
        """By the pods in the node's domains that ours would like near it, or not, and that would like ours."""
        drawn: dict[tuple[str, str], int] = {}
        others = self._cluster.nominated(self._pod)
        for term, weight in self._drawn:
            there = crowds(Crowd((term.pods,)), self._cluster, others).expected
            self._draw(drawn, term.topology_key, {name: weight * number for name, number in there.items()})
        for term, weights in self._drawing:
            self._draw(drawn, term.topology_key, weights)
        if not drawn:
            return {}
        sums = {
            node.name: sum(drawn.get(domain, 0) for domain in node.metadata.labels.items()) for node in nodes
        }
        low, high = min(sums.values()), max(sums.values())
        return {
            name: MAX_SCORE * (value - low) // (high - low) if high > low else 0
            for name, value in sums.items()
        }

    def _draw(self, drawn: dict[tuple[str, str], int], key: str, weights: Mapping[str, int]) -> None:
        for name, weight in weights.items():
            for domain in domains((key,), (name,), self._cluster):
                drawn[domain] = drawn.get(domain, 0) + weight

    def _even(self, nodes: Sequence[Node]) -> Scores:
        """By how many pods the soft constraints count in the node's domains; nodes in none of a domain come last."""
        if not self._spread:
            return {}
        others = self._cluster.nominated(self._pod)
        constraints = [Spread(self._pod, item, self._cluster, others) for item in self._spread]
        for node in in_all_domains(self._spread, self._cluster):
            for constraint in constraints:
                constraint.count(node)
        inside = [node for node in nodes if _has_all(node, self._spread)]
        weights = [_weight(inside, constraint) for constraint in constraints]
        crowded = {
            node.name: round(
                sum(
                    constraint.expected(node.metadata.labels[constraint.topology_key]) * weight
                    + constraint.max_skew
                    - 1
                    for constraint, weight in zip(constraints, weights, strict=True)
                )
            )
            for node in inside
        }
        low, high = min(crowded.values(), default=0), max(crowded.values(), default=0)
        return {
            name: MAX_SCORE * (high + low - value) // high if high else MAX_SCORE
            for name, value in crowded.items()
        }


def _is_preferred(index: int, preference: NodeSelectorTerm, node: Node) -> bool:
    """Whether a preferred term matches.

    Raises:
        InvalidPod: it cannot be parsed; kube-scheduler gives the whole pod up then.
    """
    try:
        return selector_matches(NodeSelector((preference,)), node)
    except InvalidInput as error:
        fields = error.path.removeprefix("nodeSelectorTerms[0]")
        raise InvalidPod(f"{_PREFERRED}[{index}].preference{fields}", error.message) from error


def _has_all(node: Node, constraints: Sequence[TopologySpreadConstraint]) -> bool:
    return all(item.topology_key in node.metadata.labels for item in constraints)


def _weight(nodes: Sequence[Node], constraint: Spread) -> float:
    """Keeps the counts of few, large domains from drowning those of many small ones."""
    return math.log(len({node.metadata.labels[constraint.topology_key] for node in nodes}) + 2)


def _normal(counts: Mapping[str, int]) -> Scores:
    most = max(counts.values(), default=0)
    return {name: MAX_SCORE * count // most for name, count in counts.items()} if most else {}


def _reversed(counts: Mapping[str, int]) -> Scores:
    most = max(counts.values(), default=0)
    return {name: MAX_SCORE - MAX_SCORE * count // most for name, count in counts.items()} if most else {}
