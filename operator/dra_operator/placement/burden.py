"""How much of a pod's spec has to be compared with each node, and with other pods: what a look at it costs, apart from devices.

The API server limits neither tolerations nor affinity terms nor constraints but by the size of the object, some 40,000 of them. Counted by `Placer`, so that
nobody's pod takes more than its part of the time. It must not evaluate anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dra_operator.model import LabelSelector, NodeSelectorTerm, Pod, PodAffinityTerms

NODES: Final = 400_000
"""Items that one decision compares with nodes: a second or so. 80 for each of 5,000 nodes."""

PAIRS: Final = 500_000
"""Pairs of a term or expression about other pods and such a pod: a second or so. 10 of them among 50,000 pods."""

PREFERENCES: Final = 500
"""Items of what a pod prefers of nodes; one with more is taken to prefer nothing."""

_VALUES: Final = 4
"""Values of an expression that cost as much as an expression."""


def by_node(pod: Pod) -> int:
    """Items that are compared with each node; 1 at least."""
    spec = pod.spec
    affinity = spec.affinity.node_affinity if spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    terms = required.node_selector_terms if required else ()
    return 1 + len(spec.tolerations) + len(spec.node_selector) + _items(terms)


def by_preference(pod: Pod) -> int:
    """Items that are compared with each node that can take the pod."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    preferred = affinity.preferred_during_scheduling_ignored_during_execution if affinity else ()
    return _items(term.preference for term in preferred)


def by_pod(pod: Pod) -> int:
    """Items that are compared with each other pod."""
    affinity = pod.spec.affinity
    sides = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ()
    spread = sum(_labels(constraint.label_selector) for constraint in pod.spec.topology_spread_constraints)
    return spread + sum(_terms(side) for side in sides)


def _terms(side: PodAffinityTerms | None) -> int:
    if side is None:
        return 0
    preferred = side.preferred_during_scheduling_ignored_during_execution
    terms = (
        *side.required_during_scheduling_ignored_during_execution,
        *(item.pod_affinity_term for item in preferred),
    )
    return sum(_labels(term.label_selector) + len(term.namespaces) // _VALUES for term in terms)


def _labels(selector: LabelSelector | None) -> int:
    if selector is None:
        return 1
    expressions = sum(1 + len(item.values) // _VALUES for item in selector.match_expressions)
    return 1 + len(selector.match_labels) + expressions


def _items(terms: Iterable[NodeSelectorTerm]) -> int:
    """Expressions of terms, with their values, and the terms themselves."""
    count = 0
    for term in terms:
        count += 1
        for expression in (*term.match_expressions, *term.match_fields):
            count += 1 + len(expression.values) // _VALUES
    return count
