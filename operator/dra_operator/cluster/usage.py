"""What pods ask of a node, and how much of each node is spoken for.

Fed by `model` with every change of a pod, and by the allocation controller with placements that are on their way. Placement
compares a node's usage with what it can allocate, and computes the demand of a new pod with the same functions, so that the two
never disagree. It must not know nodes: only names, so that pods may come before their node.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from dra_operator.quantity import Quantity

from .requests import ASSUMED, is_infeasible, is_sidecar, pod_requests, scored_requests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from dra_operator.model import (
        NodeAllocatableResourceClaimStatus,
        NodeSelector,
        NodeSelectorRequirement,
        NodeSelectorTerm,
        Pod,
    )

    from .neighbours import Neighbours
    from .storage import StorageIndex

ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 -- compared with, never bound to


class HostPort(NamedTuple):
    """A port of the node that a pod takes."""

    ip: str
    protocol: str
    port: int


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """What is spoken for on one node.

    Args:
        requested: requests of its pods, by resource; base units. Resources that add up to zero are left out.
        pods: number of pods.
        ports: host ports taken; one entry a pod and port.
    """

    requested: Mapping[str, Quantity] = field(default_factory=dict)
    pods: int = 0
    ports: tuple[HostPort, ...] = ()


EMPTY: Final = NodeUsage()
NOBODY: Final[Mapping[str, int]] = dict.fromkeys(ASSUMED, 0)


def pod_ports(pod: Pod) -> tuple[HostPort, ...]:
    """The host ports that a pod takes while it runs: those of its containers and sidecars."""
    running = chain(pod.spec.containers, filter(is_sidecar, pod.spec.init_containers))
    ports = (port for container in running for port in container.ports if port.host_port)
    return tuple(
        HostPort(port.host_ip or ANY_ADDRESS, port.protocol or "TCP", port.host_port) for port in ports
    )


def pinned_node(pod: Pod) -> str:
    """The one node that a released pod can go to because every affinity term of it says so; empty when there is none.

    That is how a pod looks between our release and its binding (cp I-24), also to an operator that has just started. Only pods
    with claims are looked at: the pods of DaemonSets are pinned in the same way, and may wait for their node for ever.
    """
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    if required is None or pod.is_held or not pod.spec.resource_claims:
        return ""
    return one_node(required)


def one_node(selector: NodeSelector) -> str:
    """The node that all terms of a selector name; empty if they name several, or not each of them one."""
    pins = {
        _pin(term) for term in selector.node_selector_terms if term.match_expressions or term.match_fields
    }
    return pins.pop() if len(pins) == 1 else ""


def _as_it_is(pod: Pod) -> Pod:
    return pod


class UsageIndex:
    """Usage by node. A pod counts where it is bound, else where we have placed it, else where it is pinned, if it was sent there.

    Args:
        neighbours: is told of every pod that comes to a node or leaves it.
        storage: the same.
        was_sent: whether a pinned pod has what only those have that a scheduler sent there. Anybody may write the pin of a pod, and would
            take the node from all others.
        as_counted: the pod with what the devices of its claims take of its node.
    """

    def __init__(
        self,
        neighbours: Neighbours,
        storage: StorageIndex,
        was_sent: Callable[[Pod], bool],
        as_counted: Callable[[Pod], Pod] = _as_it_is,
    ) -> None:
        self._neighbours = neighbours
        self._storage = storage
        self._was_sent = was_sent
        self._as_counted = as_counted
        self._taken: dict[str, tuple[NodeAllocatableResourceClaimStatus, ...]] = {}
        self._pods: dict[str, Pod] = {}
        self._placed: dict[str, str] = {}
        self._node_of: dict[str, str] = {}
        self._nodes: dict[str, _Tally] = {}
        self._nominated: dict[str, dict[str, Pod]] = {}
        self._listeners: list[Callable[[str], object]] = []

    def of(self, node_name: str) -> NodeUsage:
        """The usage of a node; nothing for names that no pod is on."""
        tally = self._nodes.get(node_name)
        return tally.usage() if tally else EMPTY

    def nominated(self, pod: Pod) -> tuple[Pod, ...]:
        """Pods on no node that are nominated to run on one, and come before this pod: those of the same or a higher priority."""
        if not self._nominated:
            return ()
        pods = chain.from_iterable(found.values() for found in self._nominated.values())
        return tuple(other for other in pods if _is_ahead(other, pod))

    def spoken_for(self, node_name: str) -> Mapping[str, int]:
        """Cpu and memory by which a node is scored, in nano units: as `of`, but no container asks for less than kube-scheduler assumes."""
        tally = self._nodes.get(node_name)
        return tally.scored if tally else NOBODY

    def on_change(self, listener: Callable[[str], object]) -> None:
        """Have a function called with the name of a node whenever its usage changes."""
        self._listeners.append(listener)

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Take over one pod. A placement ends when the pod is bound, done or gone."""
        pod = new or old
        assert pod is not None
        if old is not None and new is not None and _counts_alike(old, new):
            self._pods[new.uid] = new
            return
        self._discount(pod.uid)
        self._pods.pop(pod.uid, None)
        if new is None or new.spec.node_name or new.is_done:
            self._placed.pop(pod.uid, None)
        if new is not None:
            self._pods[new.uid] = new
            self._count(new)

    def look_again(self, pods: Iterable[Pod]) -> None:
        """Something else than the pods changed that tells whether they were sent, or what their devices take of the node."""
        for pod in pods:
            node_name = self._node_for(pod)
            is_news = node_name != self._node_of.get(pod.uid, "")
            if is_news or (node_name and _taken(self._as_counted(pod)) != self._taken[pod.uid]):
                self._discount(pod.uid)
                self._count(pod)

    def ahead(self, node_name: str, pod: Pod) -> NodeUsage:
        """The usage of a node as a pod finds it that is to be placed: with the pods that are nominated to run there and come before it.

        A scheduler nominates a pod to a node where it makes room for it. kube-scheduler counts those of the same or a higher priority.
        """
        nominated = self._nominated.get(node_name)
        others = [other for other in nominated.values() if _is_ahead(other, pod)] if nominated else []
        if not others:
            return self.of(node_name)
        tally = _Tally()
        for other in others:
            tally.add(other)
        return _together(self.of(node_name), tally.usage())

    def place(self, pod_uid: str, node_name: str) -> None:
        """Count a pod on a node before it is bound there. Nothing happens if the pod is gone, done or bound."""
        pod = self._pods.get(pod_uid)
        if pod is not None and not pod.spec.node_name and not pod.is_done:
            self._discount(pod_uid)
            self._placed[pod_uid] = node_name
            self._count(pod)

    def unplace(self, pod_uid: str) -> None:
        """Take a placement back; nothing happens if there is none."""
        if self._placed.pop(pod_uid, None) is not None:
            self._discount(pod_uid)
            self._count(self._pods[pod_uid])

    def placement(self, pod_uid: str) -> str:
        """The node that the pod is counted on; empty if on none."""
        return self._node_of.get(pod_uid, "")

    def _count(self, pod: Pod) -> None:
        if pod.is_done:
            return
        node_name = self._node_for(pod)
        if node_name:
            self._node_of[pod.uid] = node_name
            counted = self._as_counted(pod)
            self._taken[pod.uid] = _taken(counted)
            self._nodes.setdefault(node_name, _Tally()).add(counted)
            self._neighbours.put(pod, node_name, is_bound=bool(pod.spec.node_name))
            self._storage.put(pod, node_name)
            self._tell(node_name)
        elif pod.status.nominated_node_name:
            self._nominated.setdefault(pod.status.nominated_node_name, {})[pod.uid] = pod

    def _discount(self, pod_uid: str) -> None:
        known = self._pods.get(pod_uid)
        if known is not None and known.status.nominated_node_name in self._nominated:
            self._nominated[known.status.nominated_node_name].pop(pod_uid, None)
            if not self._nominated[known.status.nominated_node_name]:
                del self._nominated[known.status.nominated_node_name]
        node_name = self._node_of.pop(pod_uid, "")
        self._taken.pop(pod_uid, None)
        if node_name:
            self._neighbours.drop(pod_uid)
            self._storage.drop(pod_uid)
            if self._nodes[node_name].remove(pod_uid):
                del self._nodes[node_name]
            self._tell(node_name)

    def _tell(self, node_name: str) -> None:
        for listener in self._listeners:
            listener(node_name)

    def _node_for(self, pod: Pod) -> str:
        if pod.is_done:
            return ""
        known = pod.spec.node_name or self._placed.get(pod.uid)
        if known:
            return known
        pin = pinned_node(pod)
        return pin if pin and self._was_sent(pod) else ""


def _counts_alike(old: Pod, new: Pod) -> bool:
    """Whether nothing changed of what counts here: most changes of a pod are news of its kubelet."""
    return (
        old.spec == new.spec
        and old.metadata.labels == new.metadata.labels
        and old.metadata.deletion_timestamp == new.metadata.deletion_timestamp
        and old.is_done == new.is_done
        and _granted(old) == _granted(new)
    )


def _taken(pod: Pod) -> tuple[NodeAllocatableResourceClaimStatus, ...]:
    return pod.status.node_allocatable_resource_claim_statuses


def _granted(pod: Pod) -> tuple[object, ...]:
    """The part of the status that counts."""
    status = pod.status
    return (
        status.nominated_node_name,
        status.resource_claim_statuses,
        _taken(pod),
        status.container_statuses,
        status.init_container_statuses,
        status.allocated_resources,
        status.resources,
        is_infeasible(pod),
    )


class _Tally:
    """Running sums of one node.

    Attributes:
        scored: cpu and memory as they are scored, in nano units.
    """

    def __init__(self) -> None:
        self.scored = dict(NOBODY)
        self._scored: dict[str, Mapping[str, int]] = {}
        self._ports: dict[str, tuple[HostPort, ...]] = {}
        self._requests: dict[str, dict[str, Quantity]] = {}
        self._sums: dict[str, int] = {}
        self._usage: NodeUsage | None = None

    def add(self, pod: Pod) -> None:
        self._usage = None
        self._ports[pod.uid] = pod_ports(pod)
        self._requests[pod.uid] = pod_requests(pod)
        for name, amount in self._requests[pod.uid].items():
            self._sums[name] = self._sums.get(name, 0) + amount.nano
        self._scored[pod.uid] = scored_requests(pod, self._requests[pod.uid])
        for name, nano in self._scored[pod.uid].items():
            self.scored[name] += nano

    def remove(self, pod_uid: str) -> bool:
        """Whether the node is empty now."""
        self._usage = None
        del self._ports[pod_uid]
        for name, amount in self._requests.pop(pod_uid).items():
            self._sums[name] -= amount.nano
        for name, nano in self._scored.pop(pod_uid).items():
            self.scored[name] -= nano
        return not self._ports

    def usage(self) -> NodeUsage:
        if self._usage is None:
            requested = {name: Quantity(nano) for name, nano in sorted(self._sums.items()) if nano}
            ports = sorted(chain.from_iterable(self._ports.values()))
            self._usage = NodeUsage(requested, len(self._ports), tuple(ports))
        return self._usage


def _is_ahead(other: Pod, pod: Pod) -> bool:
    return other.uid != pod.uid and other.spec.priority >= pod.spec.priority


def _together(one: NodeUsage, other: NodeUsage) -> NodeUsage:
    names = sorted({*one.requested, *other.requested})
    zero = Quantity(0)
    requested = {name: one.requested.get(name, zero) + other.requested.get(name, zero) for name in names}
    return NodeUsage(requested, one.pods + other.pods, (*one.ports, *other.ports))


def _pin(term: NodeSelectorTerm) -> str:
    names = {requirement.values for requirement in term.match_fields if _names_a_node(requirement)}
    return names.pop()[0] if len(names) == 1 else ""


def _names_a_node(requirement: NodeSelectorRequirement) -> bool:
    return (requirement.key, requirement.operator, len(requirement.values)) == ("metadata.name", "In", 1)
