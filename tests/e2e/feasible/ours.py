"""Asks our placement the same: the objects of a world, decoded into a cluster model, and every pod compared with every node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dra_operator.cluster import Cluster
from dra_operator.model import KINDS, Pod, from_object
from dra_operator.placement.checks import NodeChecks
from dra_operator.placement.resources import dra_resource_names
from dra_operator.placement.volumeclaims import hindrance

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from dra_operator.placement.nodes import NodeReason


def reasons(
    objects: Mapping[str, Sequence[dict[str, Any]]], names: Collection[str]
) -> dict[str, dict[str, str]]:
    """Why each node cannot take each pod, by names of pod and node; an empty reason for nodes that can.

    Args:
        objects: all objects by kind, as the API server has them.
        names: the pods to be placed. They are no part of the cluster: one that may go to one node only would be taken for a pod that we
            have sent there.
    """
    cluster = Cluster()
    pods: list[Pod] = []
    for kind, items in objects.items():
        values = [from_object(KINDS[kind], item) for item in items]
        if kind == "Pod":
            pods = [pod for pod in values if isinstance(pod, Pod) and pod.metadata.name in names]
        cluster.replace(kind, [value for value in values if value not in pods])
    return _reasons(cluster, pods)


def _reasons(cluster: Cluster, pods: Iterable[Pod]) -> dict[str, dict[str, str]]:
    resources = dra_resource_names(cluster.classes.values())
    found = {}
    for pod in pods:
        claims = [entry.claim for entry in cluster.claims_of_pod(pod) if entry.claim is not None]
        checks = NodeChecks(pod, cluster, resources, claims)
        held = hindrance(pod, cluster)
        found[pod.metadata.name] = {
            name: held.message
            if held is not None
            else _text(checks.claims_reason(node) or checks.reason(node))
            for name, node in cluster.nodes.items()
        }
    return found


def _text(reason: NodeReason | None) -> str:
    return reason.text if reason is not None else ""
