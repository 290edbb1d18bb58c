"""Rows of claims, out of claims and the pods that name them. It must not look at devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.cluster import one_node

from .holding import consumers
from .rows import ClaimRow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dra_operator.model import DeviceRequest, NodeSelector, ResourceClaim

    from .known import Known


def claim_rows(cluster: Known) -> tuple[ClaimRow, ...]:
    """A row for each claim, by namespace and name."""
    keys = sorted({*cluster.claims, *cluster.unreadable}, key=lambda key: key.split("/"))
    return tuple(_row(cluster, key) for key in keys)


def _row(cluster: Known, key: str) -> ClaimRow:
    claim, unreadable = cluster.claims.get(key), cluster.unreadable.get(key)
    namespace, _, name = key.rpartition("/")
    allocation = unreadable.allocation if unreadable else claim.status.allocation if claim else None
    waiting = (pod for pod in cluster.pods_of_claim(key) if not pod.spec.node_name and not pod.is_done)
    return ClaimRow(
        namespace,
        name,
        "unreadable" if unreadable or claim is None else _state(claim),
        tuple(str(result.device_id) for result in allocation.devices.results) if allocation else (),
        _node(allocation.node_selector) if allocation else "",
        consumers(claim),
        tuple(pod.metadata.name for pod in waiting),
        (claim.metadata.creation_timestamp or "") if claim else "",
        _classes(claim),
        claim.metadata.labels if claim else {},
    )


def _state(claim: ResourceClaim) -> str:
    if claim.metadata.deletion_timestamp is not None:
        return "deleting"
    if not claim.is_allocated:
        return "pending"
    return "in use" if claim.status.reserved_for else "allocated"


def _node(selector: NodeSelector | None) -> str:
    return "any" if selector is None else one_node(selector) or "several"


def _classes(claim: ResourceClaim | None) -> tuple[str, ...]:
    requests = claim.spec.devices.requests if claim else ()
    return tuple(dict.fromkeys(name for request in requests for name in _classes_of(request) if name))


def _classes_of(request: DeviceRequest) -> Iterator[str]:
    if request.exactly is not None:
        yield request.exactly.device_class_name
    for alternative in request.first_available:
        yield alternative.device_class_name
