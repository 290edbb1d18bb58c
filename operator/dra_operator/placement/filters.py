"""Filters that are prepared once a decision and then asked node by node: what looks at other pods, at volumes, at whole topologies.

`Placer` asks `nodes.node_reason` first, which needs nothing but the pod and the node, and then these, in the order in which kube-scheduler's
default profile runs the plugins of these names (cp S-33, I-27). Whatever does not depend on the node is computed in `prepare`, and a
pod that a filter has nothing to say about gets none of it. A filter must not change the cluster model, and holds good only until the
next change of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from .affinity import inter_pod_affinity
from .declared import declared_features
from .spread import topology_spread
from .volumes import volume_filters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dra_operator.cluster import Cluster
    from dra_operator.model import Node, Pod

    from .nodes import NodeReason


class Filter(Protocol):
    """One of kube-scheduler's filters, for one pod and the cluster as it is."""

    def reason(self, node: Node) -> NodeReason | None:
        """Why the node cannot take the pod, in kube-scheduler's words; None if it can.

        `lasting` tells that no pod which ends, and nothing that is freed, changes it.
        """
        ...


def prepare(pod: Pod, cluster: Cluster) -> tuple[Filter, ...]:
    """The filters that have something to say about a pod, in kube-scheduler's order: volumes, topology spread, inter-pod affinity, features."""
    volumes = volume_filters(pod, cluster) if pod.spec.volumes else ()
    found: tuple[Filter | None, ...] = (
        topology_spread(pod, cluster),
        inter_pod_affinity(pod, cluster),
        declared_features(pod),
    )
    return (*volumes, *(item for item in found if item is not None))


def first_reason(filters: Sequence[Filter], node: Node) -> NodeReason | None:
    """The reason of the first filter that turns the node down; None if all let it pass."""
    found = (item.reason(node) for item in filters)
    return next((reason for reason in found if reason is not None), None)


def first_lasting_reason(filters: Sequence[Filter], node: Node) -> NodeReason | None:
    """The first reason that lasts, whatever passing one hides it; None if there is none."""
    found = (item.reason(node) for item in filters)
    return next((reason for reason in found if reason is not None and reason.lasting), None)
