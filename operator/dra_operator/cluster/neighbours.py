"""Which pods are on which nodes, as inter-pod affinity and topology spread ask: how many of a kind, and whom those there keep off or draw.

Fed by `usage` with every pod that comes to a node, bound or on its way, and leaves it. What is asked for is counted once and
then kept, so that a decision costs as much as there are nodes with such pods, however many pods there are; what nobody asks
for costs nothing. It must not know nodes or domains: only names.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from .selectors import NOTHING, AffinityTerm, PodFilter, affinity_term

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from dra_operator.model import Pod

    NamespaceLabels = Callable[[str], Mapping[str, str]]

KEPT: Final = 256
"""Crowds whose counts are kept up to date; one that is not among the last asked for is counted anew. Arbitrary: templates of pods with
constraints are fewer in most clusters, and each costs a comparison for every pod that comes or goes in its namespaces."""

REQUIRED_WEIGHT: Final = 1
"""What the required affinity of a pod adds to the score of nodes for pods that it wants: kube-scheduler's hardPodAffinityWeight."""


class Crowd(NamedTuple):
    """Pods that all of the filters match.

    Args:
        filters: at least one.
        staying: whether pods that are being deleted are left out (as topology spread does).
    """

    filters: tuple[PodFilter, ...]
    staying: bool = False


@dataclass(frozen=True, slots=True)
class Heads:
    """Pods of a crowd by the name of their node: live views, good until the next change of the model.

    Args:
        bound: those that are bound.
        coming: those that are on their way: placed or pinned, not bound yet.
    """

    bound: Counter[str] = field(default_factory=Counter)
    coming: Counter[str] = field(default_factory=Counter)


class _Place(NamedTuple):
    pod: Pod
    node_name: str
    is_bound: bool


class Neighbours:
    """The pods on nodes, in the groups that placement asks for."""

    def __init__(self, namespace_labels: NamespaceLabels) -> None:
        self._namespace_labels = namespace_labels
        self._places: dict[str, _Place] = {}
        self._by_namespace: dict[str, dict[str, _Place]] = {}
        self._kept: dict[Crowd, Heads] = {}
        self._repelling: dict[AffinityTerm, Counter[str]] = {}
        self._drawing: dict[AffinityTerm, Counter[str]] = {}

    # --- what placement asks

    def heads(self, crowd: Crowd) -> Heads:
        """The pods of a crowd by node."""
        found = self._kept.pop(crowd, None) or self._counted(crowd)
        self._kept[crowd] = found  # the last one asked for is the last one dropped
        if len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]
        return found

    def repelling(self) -> Mapping[AffinityTerm, Counter[str]]:
        """Required anti-affinity of the pods on nodes: term → pods that have it, by node."""
        return self._repelling

    def drawing(self) -> Mapping[AffinityTerm, Counter[str]]:
        """Affinity of the pods on nodes, as far as it only ranks nodes: term → sum of weights, by node; below zero for anti-affinity."""
        return self._drawing

    # --- what the model tells

    def put(self, pod: Pod, node_name: str, *, is_bound: bool) -> None:
        """A pod has come to a node where it is not counted yet."""
        place = _Place(pod, node_name, is_bound)
        self._places[pod.uid] = place
        self._by_namespace.setdefault(pod.metadata.namespace, {})[pod.uid] = place
        self._count(place, 1)

    def drop(self, pod_uid: str) -> None:
        """A pod has left its node; nothing happens if it was on none."""
        place = self._places.pop(pod_uid, None)
        if place is None:
            return
        namespace = place.pod.metadata.namespace
        del self._by_namespace[namespace][pod_uid]
        if not self._by_namespace[namespace]:
            del self._by_namespace[namespace]
        self._count(place, -1)

    def namespaces_changed(self) -> None:
        """Labels of a namespace are others: what was counted by them is counted anew when it is asked for."""
        self._kept = {crowd: heads for crowd, heads in self._kept.items() if not _by_labels(crowd)}

    def _counted(self, crowd: Crowd) -> Heads:
        heads = Heads()
        for place in self._within(crowd):
            self._add(crowd, heads, place, 1)
        return heads

    def _within(self, crowd: Crowd) -> Iterator[_Place]:
        """Pods in the namespaces of the first filter, as far as those are told by name."""
        first = crowd.filters[0]
        if first.namespace_selector is not NOTHING:
            yield from self._places.values()
            return
        for namespace in first.namespaces:
            yield from self._by_namespace.get(namespace, {}).values()

    def _count(self, place: _Place, sign: int) -> None:
        for crowd, heads in self._kept.items():
            self._add(crowd, heads, place, sign)
        if place.pod.spec.affinity is not None:
            for term in required_anti_affinity(place.pod):
                _tally(self._repelling, term, place.node_name, sign)
            for term, weight in _preferences(place.pod):
                _tally(self._drawing, term, place.node_name, sign * weight)

    def _add(self, crowd: Crowd, heads: Heads, place: _Place, sign: int) -> None:
        pod = place.pod
        if crowd.staying and pod.metadata.deletion_timestamp is not None:
            return
        if not all(item.matches(pod, self._namespace_labels) for item in crowd.filters):
            return
        side = heads.bound if place.is_bound else heads.coming
        side[place.node_name] += sign
        if not side[place.node_name]:
            del side[place.node_name]


def required_affinity(pod: Pod) -> tuple[AffinityTerm, ...]:
    """The pod's required inter-pod affinity."""
    terms = pod.spec.affinity.pod_affinity if pod.spec.affinity else None
    required = terms.required_during_scheduling_ignored_during_execution if terms else ()
    return tuple(affinity_term(pod.metadata.namespace, item) for item in required)


def required_anti_affinity(pod: Pod) -> tuple[AffinityTerm, ...]:
    """The pod's required inter-pod anti-affinity."""
    terms = pod.spec.affinity.pod_anti_affinity if pod.spec.affinity else None
    required = terms.required_during_scheduling_ignored_during_execution if terms else ()
    return tuple(affinity_term(pod.metadata.namespace, item) for item in required)


def preferred_affinity(pod: Pod) -> Iterator[tuple[AffinityTerm, int]]:
    """The pod's preferred inter-pod affinity and anti-affinity with their weights, which are below zero for anti-affinity."""
    affinity = pod.spec.affinity
    if affinity is None:
        return
    for terms, sign in ((affinity.pod_affinity, 1), (affinity.pod_anti_affinity, -1)):
        for item in terms.preferred_during_scheduling_ignored_during_execution if terms else ():
            yield affinity_term(pod.metadata.namespace, item.pod_affinity_term), sign * item.weight


def _preferences(pod: Pod) -> Iterator[tuple[AffinityTerm, int]]:
    for term in required_affinity(pod):
        yield term, REQUIRED_WEIGHT
    yield from preferred_affinity(pod)


def _by_labels(crowd: Crowd) -> bool:
    return any(item.namespace_selector is not NOTHING for item in crowd.filters)


def _tally(terms: dict[AffinityTerm, Counter[str]], term: AffinityTerm, node_name: str, amount: int) -> None:
    """Add to, or take from, what a term counts on a node; what is zero is not there."""
    nodes = terms.setdefault(term, Counter())
    nodes[node_name] += amount
    if not nodes[node_name]:
        del nodes[node_name]
    if not nodes:
        del terms[term]
