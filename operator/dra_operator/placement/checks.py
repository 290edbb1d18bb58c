"""All that kube-scheduler's default filters ask of a node for one pod, but for the choice of devices.

Made by `Placer` once a decision; `tests/e2e/test_feasible.py` compares its answers with those of the real kube-scheduler. What depends
on the pod alone is computed once; good until the next change of the cluster model. It must not choose: which node is the better one is
not asked here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.allocator import selector_matches

from .filters import first_lasting_reason, first_reason, prepare
from .nodeallocatable import devices_reason, sharing_reason
from .nodes import NodeReason, lasting_reason, node_reason
from .outcomes import Cause
from .resources import demand_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from dra_operator.cluster import Cluster
    from dra_operator.model import Node, Pod, ResourceClaim

    from .outcomes import ClaimDecision


class NodeChecks:
    """The questions of one pod to every node.

    Args:
        pod: the pod.
        cluster: the model; read, never changed.
        dra_resources: extended resources that kube-scheduler serves by a device class.
        allocated: the claims of the pod that hold an allocation.
        is_bound: what the node of a bound pod has room for was decided by others: only the claims are asked about then.

    Attributes:
        is_bound: as given.
    """

    def __init__(
        self,
        pod: Pod,
        cluster: Cluster,
        dra_resources: Collection[str] = (),
        allocated: Iterable[ResourceClaim] = (),
        *,
        is_bound: bool = False,
    ) -> None:
        self._pod = pod
        self._cluster = cluster
        self._dra_resources = dra_resources
        self._allocated = tuple(allocated)
        self._demand = demand_of(pod)
        self._filters = () if is_bound else prepare(pod, cluster)
        self.is_bound = is_bound

    def claims_reason(self, node: Node) -> NodeReason | None:
        """Why the claims that hold an allocation keep the pod off the node (alloc H-2, cp S-21); None if they do not.

        They do so as long as another pod uses them (cp C-62).
        """
        shared = None if self.is_bound else sharing_reason(self._pod, self._cluster, self._allocated)
        if shared is not None:
            return shared
        for claim in self._allocated:
            selector = claim.status.allocation.node_selector if claim.status.allocation else None
            if selector is not None and not selector_matches(selector, node):
                text = f"node(s) cannot reach the devices that claim {claim.key} holds"
                in_use = any(consumer.uid != self._pod.uid for consumer in claim.status.reserved_for)
                return NodeReason(Cause.CLAIM, text, lasting=not in_use)
        return None

    def reason(self, node: Node) -> NodeReason | None:
        """Why the node cannot take the pod now, claims aside; None if it can."""
        if self.is_bound:
            return None
        usage = self._cluster.usage_ahead(node.name, self._pod)
        found = node_reason(self._pod, self._demand, node, usage, self._dra_resources)
        return found or first_reason(self._filters, node)

    def devices_reason(self, node: Node, decisions: Iterable[ClaimDecision]) -> NodeReason | None:
        """Why the node cannot take the pod with the devices that were chosen there; None if it can."""
        return None if self.is_bound else devices_reason(self._pod, self._cluster, node, decisions)

    def lasting_reason(self, node: Node) -> NodeReason | None:
        """Why the node cannot take the pod even when it is up and empty, claims aside; None if it can."""
        if self.is_bound:
            return None
        found = lasting_reason(self._pod, self._demand, node, self._dra_resources)
        return found or first_lasting_reason(self._filters, node)
