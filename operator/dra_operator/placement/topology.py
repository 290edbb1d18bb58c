"""Pods by domain: what inter-pod affinity and topology spread have in common.

A domain is all nodes with the same value of a label. Pods that are on their way to a node, ours and those that kube-scheduler has
nominated, may never arrive: as kube-scheduler does for nominated pods, a node has to do both with them and without, so that a pod
that was sent there is not stranded when they do not come. It must not know what the pods are counted for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from dra_operator.cluster import AffinityTerm, Cluster, Crowd
    from dra_operator.model import Pod


class Domain(NamedTuple):
    """One label and value of nodes."""

    key: str
    value: str


class Crowds(NamedTuple):
    """Pods by node.

    Args:
        bound: the bound ones.
        expected: the bound ones, and those on their way.
    """

    bound: Mapping[str, int]
    expected: Mapping[str, int]


def crowds(crowd: Crowd, cluster: Cluster, others: Iterable[Pod]) -> Crowds:
    """The pods of a crowd by node, `others` counted on the nodes that they are nominated for."""
    heads = cluster.heads(crowd)
    expected: dict[str, int] = dict(heads.bound)
    for node_name, number in heads.coming.items():
        expected[node_name] = expected.get(node_name, 0) + number
    for other in others:
        if belongs(other, crowd, cluster):
            node_name = other.status.nominated_node_name
            expected[node_name] = expected.get(node_name, 0) + 1
    return Crowds(heads.bound, expected)


def belongs(pod: Pod, crowd: Crowd, cluster: Cluster) -> bool:
    """Whether a pod is one of a crowd."""
    if crowd.staying and pod.metadata.deletion_timestamp is not None:
        return False
    return all(item.matches(pod, cluster.namespace_labels) for item in crowd.filters)


def domains(keys: Iterable[str], node_names: Iterable[str], cluster: Cluster) -> Iterator[Domain]:
    """The domains of these labels in which the nodes are; a node that is not known, or lacks a label, is in none of it."""
    wanted = tuple(keys)
    for name in node_names:
        node = cluster.nodes.get(name)
        if node is None:
            continue
        labels = node.metadata.labels
        for key in wanted:
            if key in labels:
                yield Domain(key, labels[key])


def matching(
    pod: Pod, terms: Mapping[AffinityTerm, Mapping[str, int]], cluster: Cluster
) -> Iterator[tuple[AffinityTerm, Mapping[str, int]]]:
    """The terms of other pods that mean this one."""
    labels: Callable[[str], Mapping[str, str]] = cluster.namespace_labels
    return ((term, nodes) for term, nodes in terms.items() if term.pods.matches(pod, labels))
