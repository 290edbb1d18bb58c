"""Whether a node has room for a pod: cpu, memory, other resources, pod count, host ports.

Called by nodes.py. What pods ask for is computed by the cluster model (`cluster.usage`), so that the accounting of placed pods
and the demand of the new one can never disagree. Texts are kube-scheduler's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dra_operator.cluster import pod_ports, pod_requests, with_statuses
from dra_operator.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from dra_operator.cluster import HostPort, NodeUsage
    from dra_operator.model import DeviceClass, Node, NodeAllocatableResourceClaimStatus, Pod

IMPLICIT_PREFIX = "deviceclass.resource.kubernetes.io/"
"""Extended resources that name a device class directly (cp S-95)."""

PORTS = "node(s) didn't have free ports for the requested pod ports"
TOO_MANY_PODS = "Too many pods"

ZERO = Quantity(0)
ONE = Quantity.parse(1)


@dataclass(frozen=True, slots=True)
class Demand:
    """What a pod asks of any node: resources (no zeros) and host ports."""

    resources: Mapping[str, Quantity]
    ports: tuple[HostPort, ...]


def demand_of(pod: Pod, taken: tuple[NodeAllocatableResourceClaimStatus, ...] = ()) -> Demand:
    """The pod's demand, to be computed once and compared with many nodes.

    Args:
        pod: the pod.
        taken: what the devices of its claims take of the node; what its status says of that may be of an attempt that failed.
    """
    requests = pod_requests(with_statuses(pod, taken))
    resources = {name: amount for name, amount in sorted(requests.items()) if amount > ZERO}
    return Demand(resources, tuple(pod_ports(pod)))


def dra_resource_names(classes: Collection[DeviceClass]) -> frozenset[str]:
    """Extended resources that kube-scheduler turns into a claim of its own: explicit and implicit names."""
    explicit = {item.spec.extended_resource_name for item in classes if item.spec.extended_resource_name}
    return frozenset(explicit | {IMPLICIT_PREFIX + item.metadata.name for item in classes})


def classes_by_resource(classes: Collection[DeviceClass]) -> dict[str, str]:
    """Extended resource → name of the class that kube-scheduler takes devices of for it."""
    implicit = {IMPLICIT_PREFIX + item.metadata.name: item.metadata.name for item in classes}
    named = {item.spec.extended_resource_name or "": item.metadata.name for item in classes}
    return {name: class_name for name, class_name in (named | implicit).items() if name}


def resource_reason(
    demand: Demand, node: Node, usage: NodeUsage, dra_resources: Collection[str]
) -> str | None:
    """Why the node has no room, in kube-scheduler's words; None if it has."""
    if any(conflicts(wanted, taken) for wanted in demand.ports for taken in usage.ports):
        return PORTS
    return ", ".join(_shortages(demand, node, usage, dra_resources)) or None


def absent_resources(demand: Demand, node: Node, dra_resources: Collection[str]) -> tuple[str, ...]:
    """What the pod asks for and the node does not offer at all."""
    offered = node.status.allocatable
    return tuple(
        name for name in demand.resources if name not in dra_resources and not offered.get(name, ZERO) > ZERO
    )


def conflicts(one: HostPort, other: HostPort) -> bool:
    """Whether two host ports exclude each other: same protocol and number, and addresses that overlap."""
    if (one.protocol, one.port) != (other.protocol, other.port):
        return False
    return one.ip == other.ip or "0.0.0.0" in {one.ip, other.ip}  # noqa: S104 -- compared, never bound to


def _shortages(demand: Demand, node: Node, usage: NodeUsage, dra_resources: Collection[str]) -> Iterator[str]:
    allocatable = node.status.allocatable
    if Quantity.parse(usage.pods) + ONE > allocatable.get("pods", ZERO):
        yield TOO_MANY_PODS
    for name, amount in demand.resources.items():
        if name not in allocatable and name in dra_resources:
            continue
        if usage.requested.get(name, ZERO) + amount > allocatable.get(name, ZERO):
            yield f"Insufficient {name}"
