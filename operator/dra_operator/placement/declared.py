"""Features that a pod needs of its kubelet, and nodes declare: kube-scheduler's NodeDeclaredFeatures (from Kubernetes 1.36 on).

Made by `filters.prepare` for the few pods whose spec uses such a feature; an API server without it keeps the fields out of the spec. It
must not look at what claims need: that is the allocator's.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from .nodes import NodeReason
from .outcomes import Cause

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dra_operator.model import Node, Pod

UNDECLARED: Final = "node(s) didn't match Pod's required features"


def declared_features(pod: Pod) -> DeclaredFeatures | None:
    """The filter for a pod; None if it needs nothing that nodes declare."""
    wanted = frozenset(_wanted(pod))
    return DeclaredFeatures(wanted) if wanted else None


class DeclaredFeatures:
    """Nodes have to declare all of these features."""

    def __init__(self, wanted: frozenset[str]) -> None:
        self._wanted = wanted

    def reason(self, node: Node) -> NodeReason | None:
        """Why the node cannot take the pod; it lasts, as another kubelet would have to come."""
        if self._wanted <= set(node.status.declared_features):
            return None
        return NodeReason(Cause.KUBELET, UNDECLARED, lasting=True)


def _wanted(pod: Pod) -> Iterator[str]:
    spec = pod.spec
    for container in chain(spec.containers, spec.init_containers):
        if any(rule.action == "RestartAllContainers" for rule in container.restart_policy_rules):
            yield "RestartAllContainersOnContainerExits"
        if any(mount.bind_mount_options for mount in container.volume_mounts):
            yield "VolumeBindMountOptions"
    if spec.host_network and spec.host_users is False:
        yield "UserNamespacesHostNetworkSupport"
