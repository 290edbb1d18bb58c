"""Gathers what the status of an AllocationPolicy is made of, from the model and the ages of its rules.

Called by `ownership`, whose answers from the API server about the rules it is given; `policystatus` puts the facts into words.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from dra_operator.allocator import Rejection, Why, pool_problem
from dra_operator.model import OwnedPool, PoolId

from .policyselectors import overlaps, unknown_selectors
from .policystatus import LISTED, Facts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dra_operator.cluster import Cluster
    from dra_operator.features import Features
    from dra_operator.model import AllocationPolicy

    from .settling import Settling


def gather(policy: AllocationPolicy, cluster: Cluster, settling: Settling, features: Features) -> Facts:
    """The facts about one policy, now."""
    pools = [_owned(pool_id, cluster) for pool_id in cluster.pools_of_policy(policy.metadata.name)]
    left = [settling.remaining(policy, selector) for selector in policy.spec.pools]
    return Facts(
        pools=len(pools),
        devices=sum(pool.devices for pool in pools),
        allocated=sum(pool.allocated_devices for pool in pools),
        enforced=settling.enforced,
        standing=sum(1 for seconds in left if seconds is not None) if settling.enforced else 0,
        wanted=len(left),
        settling=sum(1 for seconds in left if seconds),
        settle_seconds=settling.seconds,
        refusal=settling.refusals.get(policy.metadata.name, ""),
        elsewhere=_elsewhere(policy, cluster),
        broken=_broken((PoolId(pool.driver, pool.name) for pool in pools), cluster, features),
        disputed=_disputed((PoolId(pool.driver, pool.name) for pool in pools), cluster),
        listed=tuple(pools[:LISTED]),
        unknown=tuple(unknown_selectors(policy, cluster)),
        overlaps=tuple(overlaps(policy, cluster)),
    )


def _owned(pool_id: PoolId, cluster: Cluster) -> OwnedPool:
    slices = cluster.slices.of_pool(pool_id)
    devices = {slice_.device_id(device) for slice_ in slices for device in slice_.spec.devices}
    named = {slice_.spec.node_name for slice_ in slices}
    named |= {device.node_name for slice_ in slices for device in slice_.spec.devices}
    return OwnedPool(
        driver=pool_id.driver,
        name=pool_id.pool,
        nodes=sum(1 for name in named if name),
        slices=len(slices),
        devices=len(devices),
        allocated_devices=sum(1 for device in devices if cluster.holders(device)),
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
    problems = (
        (pool_id, pool_problem(cluster.slices, pool_id, features) or _nowhere(pool_id, cluster))
        for pool_id in pools
    )
    return {pool_id: problem for pool_id, problem in problems if problem is not None}


def _disputed(pools: Iterable[PoolId], cluster: Cluster) -> dict[PoolId, list[int]]:
    """Pools whose newest slices do not agree on how many they are."""
    found = {}
    for pool_id in pools:
        published = [slice_.spec.pool for slice_ in cluster.slices.of_pool(pool_id)]
        newest = max((pool.generation for pool in published), default=0)
        counts = {pool.resource_slice_count for pool in published if pool.generation == newest}
        if len(counts) > 1:
            found[pool_id] = sorted(counts)
    return found


def _nowhere(pool_id: PoolId, cluster: Cluster) -> Rejection | None:
    """A slice that says of no node that it can use the devices, which API servers refuse today (cp V-91)."""
    for slice_ in cluster.slices.of_pool(pool_id):
        spec = slice_.spec
        if not (spec.node_name or spec.node_selector or spec.all_nodes or spec.per_device_node_selection):
            places = "nodeName, nodeSelector, allNodes and perDeviceNodeSelection"
            return Rejection(
                Why.POOL_INVALID, f"ResourceSlice {slice_.metadata.name}: spec has none of {places}"
            )
    return None
