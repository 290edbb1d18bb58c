"""Label selectors and inter-pod affinity terms in the form in which they are compared: hashable, so that equal ones of many pods are one.

Used by the indexes of this package and by placement. Pure comparisons, as kube-scheduler makes them; a selector that could not be
parsed, which the API server does not take, matches nothing. It must not know where pods are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dra_operator.model import LabelSelector, Pod, PodAffinityTerm


class Requirement(NamedTuple):
    """`key operator values`, values sorted."""

    key: str
    operator: str
    values: tuple[str, ...]


class Selector(NamedTuple):
    """ANDed requirements, sorted; None matches nothing, no requirement everything."""

    requirements: tuple[Requirement, ...] | None

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels meet all requirements."""
        if self.requirements is None:
            return False
        for key, operator, values in self.requirements:
            if not _OPERATORS[operator](labels.get(key), values):
                return False
        return True


NOTHING: Final = Selector(None)


class PodFilter(NamedTuple):
    """Pods by namespace and labels. Namespaces are meant by name or by their own labels."""

    namespaces: frozenset[str]
    namespace_selector: Selector
    selector: Selector

    def matches(self, pod: Pod, namespace_labels: Callable[[str], Mapping[str, str]]) -> bool:
        """Whether a pod is meant.

        Args:
            pod: the pod.
            namespace_labels: the labels of a namespace; only asked for if the filter chooses by them.
        """
        namespace = pod.metadata.namespace
        if namespace not in self.namespaces and not (
            self.namespace_selector is not NOTHING
            and self.namespace_selector.matches(namespace_labels(namespace))
        ):
            return False
        return self.selector.matches(pod.metadata.labels)


class AffinityTerm(NamedTuple):
    """Pods, and the label of nodes whose value makes the domain."""

    pods: PodFilter
    topology_key: str


def selector_of(value: LabelSelector | None) -> Selector:
    """A label selector of the API; one that is absent matches nothing."""
    if value is None:
        return NOTHING
    wanted = [Requirement(key, "In", (text,)) for key, text in value.match_labels.items()]
    for item in value.match_expressions:
        if item.operator not in _OPERATORS:
            return NOTHING
        wanted.append(Requirement(item.key, item.operator, tuple(sorted(item.values))))
    return Selector(tuple(sorted(set(wanted))))


def with_labels(selector: Selector, labels: Mapping[str, str]) -> Selector:
    """A selector that asks for these labels as well; one that matches nothing stays as it is."""
    if selector.requirements is None or not labels:
        return selector
    added = {Requirement(key, "In", (value,)) for key, value in labels.items()}
    return Selector(tuple(sorted(added | set(selector.requirements))))


def affinity_term(namespace: str, value: PodAffinityTerm) -> AffinityTerm:
    """A term of a pod in that namespace, which is meant if the term names none and chooses none."""
    chosen = selector_of(value.namespace_selector)
    named = value.namespaces
    if not named and value.namespace_selector is None:
        named = (namespace,)
    pods = PodFilter(frozenset(named), chosen, selector_of(value.label_selector))
    return AffinityTerm(pods, value.topology_key)


_OPERATORS: Final[Mapping[str, Callable[[str | None, tuple[str, ...]], bool]]] = {
    "In": lambda actual, values: actual in values,
    "NotIn": lambda actual, values: actual not in values,
    "Exists": lambda actual, _: actual is not None,
    "DoesNotExist": lambda actual, _: actual is None,
}
