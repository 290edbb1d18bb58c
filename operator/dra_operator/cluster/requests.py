"""What a pod asks of its node, as kube-scheduler counts it: cpu, memory and other resources, resizes in place included.

Used for pods that are to be placed and for those on nodes alike, so that the two never disagree. Pure; knows one pod only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dra_operator.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from dra_operator.model import Container, NodeAllocatableResourceClaimStatus, Pod

    Amounts = Mapping[str, Quantity]
    Ask = Callable[[Container], Amounts]

_POD_LEVEL: Final = ("cpu", "memory")

HUGE_PAGES: Final = "hugepages-"

RESIZE_PENDING: Final = "PodResizePending"
INFEASIBLE: Final = "Infeasible"

NOTHING: Final[Amounts] = {}

ASSUMED: Final = {"cpu": Quantity.parse("100m").nano, "memory": Quantity.parse("200Mi").nano}
"""What kube-scheduler takes a container for that asks for no cpu, or no memory, when it scores nodes; nano units."""


def pod_requests(pod: Pod) -> dict[str, Quantity]:
    """What a pod needs at its hungriest moment, by resource; base units.

    The larger of (containers and sidecars together) and (each init container with the sidecars started before it); where the pod
    states requests of its own (cpu, memory, huge pages), those instead; its overhead on top. While a resize in place is on its way,
    the larger of what is asked for, granted and given counts; one that the kubelet calls infeasible is not asked for any longer. What
    the devices of its claims take, as its status says, belongs to the containers (KEP 5517).
    """
    totals = _container_requests(pod)
    if pod.spec.resources is not None:
        totals |= {
            name: nano for name, nano in _pod_level(pod, pod.spec.resources.requests) if is_pod_level(name)
        }
    for name, amount in pod.spec.overhead.items():
        totals[name] = totals.get(name, 0) + amount.nano
    return {name: Quantity(nano) for name, nano in totals.items()}


def container_requests(pod: Pod) -> dict[str, Quantity]:
    """The same without what the pod states as a whole, and without its overhead."""
    return {name: Quantity(nano) for name, nano in _container_requests(pod).items()}


def container_limits(pod: Pod) -> dict[str, Quantity]:
    """What containers and devices may use together at most; a resource that no container limits is left out, but for huge pages."""
    limits = _together(pod, lambda container: container.resources.limits)
    for name, nano in taken_by_devices(pod.status.node_allocatable_resource_claim_statuses).items():
        if name in limits or name.startswith(HUGE_PAGES):
            limits[name] = limits.get(name, 0) + nano
    return {name: Quantity(nano) for name, nano in limits.items()}


def taken_by_devices(statuses: Iterable[NodeAllocatableResourceClaimStatus]) -> dict[str, int]:
    """What claims take of the node for one pod, by resource, in nano units: each claim once, overheads once a container besides (alloc J-3)."""
    totals: dict[str, int] = {}
    for status in statuses:
        for name, nano in _parts(status, len(status.containers)):
            totals[name] = totals.get(name, 0) + nano
    return totals


def taken_by_devices_of(pod: Pod, container: str) -> dict[str, int]:
    """What the claims that a container refers to add to its limits, by resource, in nano units."""
    totals: dict[str, int] = {}
    for status in pod.status.node_allocatable_resource_claim_statuses:
        for name, nano in _parts(status, 1) if container in status.containers else ():
            totals[name] = totals.get(name, 0) + nano
    return totals


def scored_requests(pod: Pod, requests: Amounts) -> dict[str, int]:
    """What a pod counts for when nodes are scored: cpu and memory, in nano units.

    Args:
        pod: the pod.
        requests: what it asks for, from `pod_requests`.
    """
    whole = pod.spec.resources.requests if pod.spec.resources is not None else NOTHING
    found = {}
    for name, assumed in ASSUMED.items():
        running = (*pod.spec.containers, *filter(is_sidecar, pod.spec.init_containers))
        silent = 0 if name in whole else sum(name not in item.resources.requests for item in running)
        found[name] = (requests[name].nano if name in requests else 0) + silent * assumed
    return found


def is_infeasible(pod: Pod) -> bool:
    """Whether the kubelet has refused a resize of the pod for good."""
    pending = (item for item in pod.status.conditions if item.type == RESIZE_PENDING)
    return any(item.reason == INFEASIBLE for item in pending)


def is_sidecar(container: Container) -> bool:
    """Whether an init container runs on beside the containers."""
    return container.restart_policy == "Always"


def _pod_level(pod: Pod, stated: Amounts) -> Iterator[tuple[str, int]]:
    """Requests of the pod as a whole; what was granted and given counts where the kubelet tells that it has given something."""
    given = pod.status.resources
    if given is None or not any(map(is_pod_level, stated)):
        yield from ((name, amount.nano) for name, amount in stated.items())
        return
    asked = NOTHING if is_infeasible(pod) else stated
    yield from _largest(
        map(_nano, (asked, given.requests, pod.status.allocated_resources or NOTHING))
    ).items()


def _parts(status: NodeAllocatableResourceClaimStatus, containers: int) -> Iterator[tuple[str, int]]:
    for mapped in status.mapping:
        if mapped.quantity is not None:
            yield mapped.name, mapped.quantity.nano
    for overhead in status.overhead:
        once, each = (
            part.nano if part is not None else 0 for part in (overhead.per_pod, overhead.per_container)
        )
        yield overhead.name, once + each * containers


def _container_requests(pod: Pod) -> dict[str, int]:
    added = taken_by_devices(pod.status.node_allocatable_resource_claim_statuses)
    asked = _plus(_together(pod, lambda container: container.resources.requests), added)
    known = _of_the_kubelet(pod, added)
    if not known:
        return asked
    return _largest(known if is_infeasible(pod) else [asked, *known])


def _of_the_kubelet(pod: Pod, added: Mapping[str, int]) -> list[dict[str, int]]:
    """What the kubelet has granted, and what runs; empty if it has told neither.

    What devices take is in what it tells of the pod as a whole, and of what runs, but not in what it has granted to containers.
    """
    status = pod.status
    if status.allocated_resources is not None and status.resources is not None and status.resources.requests:
        return [_nano(status.allocated_resources), _nano(status.resources.requests)]
    told = {
        item.name: item
        for item in (*status.init_container_statuses, *status.container_statuses)
        if item.allocated_resources is not None or item.resources is not None
    }
    if not told:
        return []
    fresh = not is_infeasible(pod)

    def granted(container: Container) -> Amounts:
        found = told.get(container.name)
        if found is not None and found.allocated_resources is not None:
            return found.allocated_resources
        return container.resources.requests if fresh else NOTHING

    def running(container: Container) -> Amounts:
        found = told.get(container.name)
        if found is not None and found.resources is not None and found.resources.requests:
            return found.resources.requests
        return granted(container)

    return [_plus(_together(pod, granted), added), _together(pod, running)]


def _plus(totals: dict[str, int], added: Mapping[str, int]) -> dict[str, int]:
    for name, nano in added.items():
        totals[name] = totals.get(name, 0) + nano
    return totals


def _together(pod: Pod, ask: Ask) -> dict[str, int]:
    """All containers at the hungriest moment, by what each asks for."""
    totals = _sum(pod.spec.containers, ask)
    _plus(totals, _sum(filter(is_sidecar, pod.spec.init_containers), ask))
    return _largest([totals, *_init_peaks(pod.spec.init_containers, ask)])


def _init_peaks(init_containers: Sequence[Container], ask: Ask) -> Iterator[dict[str, int]]:
    """What is needed while each plain init container runs: it, and the sidecars before it."""
    sidecars: list[Container] = []
    for container in init_containers:
        if is_sidecar(container):
            sidecars.append(container)
        else:
            yield _sum([*sidecars, container], ask)


def _sum(containers: Iterable[Container], ask: Ask) -> dict[str, int]:
    totals: dict[str, int] = {}
    for container in containers:
        for name, amount in ask(container).items():
            totals[name] = totals.get(name, 0) + amount.nano
    return totals


def _largest(many: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The largest amount of each resource."""
    totals: dict[str, int] = {}
    for amounts in many:
        for name, nano in amounts.items():
            totals[name] = max(totals.get(name, nano), nano)
    return totals


def _nano(amounts: Amounts) -> dict[str, int]:
    return {name: amount.nano for name, amount in amounts.items()}


def is_pod_level(resource: str) -> bool:
    """Whether a pod may state how much of the resource it needs as a whole."""
    return resource in _POD_LEVEL or resource.startswith(HUGE_PAGES)
