"""Gathers what the status of an AllocationPolicy is made of, from the model and the ages of its rules.

Called by `ownership`, whose answers from the API server about the rules it is given; `policystatus` puts the facts into words.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from dra_operator.allocator import pool_problem

from .policystatus import Facts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dra_operator.allocator import Rejection
    from dra_operator.cluster import Cluster
    from dra_operator.features import Features
    from dra_operator.model import AllocationPolicy, PoolId

    from .settling import Settling


def gather(policy: AllocationPolicy, cluster: Cluster, settling: Settling, features: Features) -> Facts:
    """The facts about one policy, now."""
    pools = cluster.pools_of_policy(policy.metadata.name)
    devices = {
        slice_.device_id(device)
        for pool_id in pools
        for slice_ in cluster.slices.of_pool(pool_id)
        for device in slice_.spec.devices
    }
    left = [settling.remaining(policy, selector) for selector in policy.spec.pools]
    return Facts(
        pools=len(pools),
        devices=len(devices),
        allocated=sum(1 for device in devices if cluster.holders(device)),
        enforced=settling.enforced,
        standing=sum(1 for seconds in left if seconds is not None) if settling.enforced else 0,
        wanted=len(left),
        settling=sum(1 for seconds in left if seconds),
        settle_seconds=settling.seconds,
        refusal=settling.refusals.get(policy.metadata.name, ""),
        elsewhere=_elsewhere(policy, cluster),
        broken=_broken(pools, cluster, features),
    )


def _elsewhere(policy: AllocationPolicy, cluster: Cluster) -> Counter[str]:
    """How many published pools the policy selects that another one rules, by the other's name."""
    published = (
        pool_id
        for driver in {selector.driver for selector in policy.spec.pools}
        for pool_id in cluster.slices.pools_of_driver(driver)
    )
    selected = (
        pool_id for pool_id in published if any(selector.matches(pool_id) for selector in policy.spec.pools)
    )
    owners = (cluster.owned(pool_id) for pool_id in selected)
    return Counter(
        owner.metadata.name
        for owner in owners
        if owner is not None and owner.metadata.name != policy.metadata.name
    )


def _broken(pools: Iterable[PoolId], cluster: Cluster, features: Features) -> dict[PoolId, Rejection]:
    problems = ((pool_id, pool_problem(cluster.slices, pool_id, features)) for pool_id in pools)
    return {pool_id: problem for pool_id, problem in problems if problem is not None}
