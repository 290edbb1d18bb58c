"""Who holds which device, by what claims have in their status. Claims whose newest version cannot be read hold what can be read of it.

Used by the other modules of this package. It must not look at what is published.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dra_operator.model import PoolId

from .rows import Holder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dra_operator.features import Features
    from dra_operator.model import AllocationResult, DeviceRequestAllocationResult, ResourceClaim

    from .known import Known


class Use(NamedTuple):
    """One result of a claim.

    Attributes:
        holder: its row.
        result: as the claim has it.
        is_share: whether others may hold shares of the same device (alloc A-2).
    """

    holder: Holder
    result: DeviceRequestAllocationResult
    is_share: bool


Uses = dict[PoolId, dict[str, list[Use]]]
"""Pool → name of a device → who uses it, by the names of claims."""


def uses_of(cluster: Known, features: Features) -> Uses:
    """All that claims hold."""
    found: Uses = {}
    for key, allocation in allocations(cluster):
        pods = consumers(cluster.claims.get(key))
        for result in allocation.devices.results:
            amounts = {name: amount.text or str(amount) for name, amount in result.consumed_capacity.items()}
            holder = Holder(
                key,
                result.request,
                pods,
                admin=bool(result.admin_access),
                amounts=amounts,
                since=allocation.allocation_timestamp or "",
            )
            use = Use(holder, result, features.consumable_capacity and result.share_id is not None)
            of_pool = found.setdefault(PoolId(result.driver, result.pool), {})
            of_pool.setdefault(result.device, []).append(use)
    return found


def allocations(cluster: Known) -> Iterator[tuple[str, AllocationResult]]:
    """Keys of claims, in their order, with what they hold."""
    for key in sorted({*cluster.claims, *cluster.unreadable}):
        allocation = (
            cluster.unreadable[key].allocation
            if key in cluster.unreadable
            else cluster.claims[key].status.allocation
        )
        if allocation is not None:
            yield key, allocation


def consumers(claim: ResourceClaim | None) -> tuple[str, ...]:
    """Names of pods, and `resource/name` of others, that a claim is reserved for."""
    return tuple(
        consumer.name if consumer.resource == "pods" else f"{consumer.resource}/{consumer.name}"
        for consumer in (claim.status.reserved_for if claim else ())
    )


def is_used(uses: Sequence[Use]) -> bool:
    """Whether somebody does more than look (alloc A-2)."""
    return any(not use.holder.admin for use in uses)
