"""Required inter-pod affinity and anti-affinity, as kube-scheduler's InterPodAffinity filters by them (I-27).

Made by `filters.prepare` for pods that have such terms, or that pods on nodes keep off. Three questions, in kube-scheduler's order and
words: is a pod that ours wants in each of the node's domains; is one there that it shuns; is one there that shuns it. It
must not look at preferences: those only rank nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dra_operator.cluster import Crowd, required_affinity, required_anti_affinity

from .nodes import NodeReason
from .outcomes import Cause
from .topology import Domain, belongs, crowds, domains, matching

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from dra_operator.cluster import AffinityTerm, Cluster
    from dra_operator.model import Node, Pod

UNWANTED: Final = "node(s) didn't satisfy existing pods anti-affinity rules"
AFFINITY: Final = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY: Final = "node(s) didn't match pod anti-affinity rules"


def inter_pod_affinity(pod: Pod, cluster: Cluster) -> InterPodAffinity | None:
    """The filter for a pod; None if no node can fail it."""
    found = InterPodAffinity(pod, cluster)
    return None if found.is_idle else found


class InterPodAffinity:
    """Answers for one pod and the cluster as it is.

    Attributes:
        is_idle: whether all nodes pass.
    """

    def __init__(self, pod: Pod, cluster: Cluster) -> None:
        others = cluster.nominated(pod)
        self._wanted = _Wanted(pod, cluster, others)
        self._shunned = frozenset(_shunned(pod, cluster, others))
        self._shunning = frozenset(_shunning(pod, cluster, others))
        self._shunning_keys = {domain.key for domain in self._shunning}
        self._shunned_keys = {domain.key for domain in self._shunned}
        self.is_idle = not (self._wanted.keys or self._shunned or self._shunning)

    def reason(self, node: Node) -> NodeReason | None:
        """Why the node cannot take the pod; it lasts where the node is in no domain of a label that the pod's affinity names."""
        labels = node.metadata.labels
        if not self._wanted.is_met(labels):
            lasting = any(key not in labels for key in self._wanted.keys)
            return NodeReason(Cause.NEIGHBOURS, AFFINITY, lasting=lasting)
        if _is_in(labels, self._shunned_keys, self._shunned):
            return NodeReason(Cause.NEIGHBOURS, ANTI_AFFINITY, lasting=False)
        if _is_in(labels, self._shunning_keys, self._shunning):
            return NodeReason(Cause.NEIGHBOURS, UNWANTED, lasting=False)
        return None


class _Wanted:
    """Required affinity: one pod that all terms match has to be in the domain of each term.

    Where no pod in any such domain matches, a pod that matches its own terms is the first of its kind and may go anywhere: or nobody
    could ever be the first.
    """

    def __init__(self, pod: Pod, cluster: Cluster, others: Sequence[Pod]) -> None:
        terms = required_affinity(pod)
        self.keys = tuple(dict.fromkeys(term.topology_key for term in terms))
        self._met: list[tuple[frozenset[Domain], bool]] = []
        if terms:
            crowd = _crowd(terms)
            matches_itself = belongs(pod, crowd, cluster)
            for nodes in dict.fromkeys(map(frozenset, crowds(crowd, cluster, others))):
                met = frozenset(domains(self.keys, nodes, cluster))
                self._met.append((met, not met and matches_itself))

    def is_met(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels will do, with the pods that are on their way and without."""
        if any(key not in labels for key in self.keys):
            return False
        return all(
            is_first or all((key, labels[key]) in met for key in self.keys) for met, is_first in self._met
        )


def _crowd(terms: Sequence[AffinityTerm]) -> Crowd:
    return Crowd(tuple(dict.fromkeys(term.pods for term in terms)))


def _shunned(pod: Pod, cluster: Cluster, others: Sequence[Pod]) -> Iterator[Domain]:
    """Domains where a pod is that ours does not want beside it."""
    for term in required_anti_affinity(pod):
        nodes = crowds(Crowd((term.pods,)), cluster, others).expected
        yield from domains((term.topology_key,), nodes, cluster)


def _shunning(pod: Pod, cluster: Cluster, others: Sequence[Pod]) -> Iterator[Domain]:
    """Domains where a pod is that does not want ours beside it."""
    for term, nodes in matching(pod, cluster.repelling(), cluster):
        yield from domains((term.topology_key,), nodes, cluster)
    for other in others:
        for term in required_anti_affinity(other):
            if term.pods.matches(pod, cluster.namespace_labels):
                yield from domains((term.topology_key,), (other.status.nominated_node_name,), cluster)


def _is_in(labels: Mapping[str, str], keys: AbstractSet[str], found: AbstractSet[Domain]) -> bool:
    return any(key in labels and (key, labels[key]) in found for key in keys)
