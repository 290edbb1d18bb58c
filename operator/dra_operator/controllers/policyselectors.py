"""What the pool selectors of a policy hit: nothing, or what another policy selects as well. Facts and their words, pure.

Called by `policyfacts` and `policystatus`. It must not decide who rules a pool: the model does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dra_operator.model import PoolId
from dra_operator.words import listed, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dra_operator.cluster import Cluster
    from dra_operator.model import AllocationPolicy, PoolSelector

NAMED: Final = 3
"""Selectors that a message names; the others are counted."""

SEPARATOR: Final = "; "
"""Between selectors, of which each is a sentence."""

ANY_POOL: Final = "*"
"""Stands for the pools of a driver that no selector names; no published pool has that name."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A selector that no published pool matches.

    Attributes:
        index: in `spec.pools`.
        driver, pool: of the selector; the pool is empty if it selects all.
        meant: the name of a published driver, or pool of the driver, that is nearly the same; empty if there is none.
        is_driver_known: whether the driver has published anything.
    """

    index: int
    driver: str
    pool: str
    meant: str
    is_driver_known: bool


@dataclass(frozen=True, slots=True)
class Overlap:
    """A selector that selects published pools that another policy selects, too.

    Attributes:
        index: in `spec.pools`.
        other: the other policy's name.
        rules: whether the policy in question rules what both select.
        pools: published pools among that; at least one.
    """

    index: int
    other: str
    rules: bool
    pools: int


def unknown_selectors(policy: AllocationPolicy, cluster: Cluster) -> Iterator[Unknown]:
    """The selectors that no published pool matches; what was meant is looked for only for those that a message names."""
    named = NAMED
    for index, selector in enumerate(policy.spec.pools):
        published = cluster.slices.pools_of_driver(selector.driver)
        if any(selector.matches(pool_id) for pool_id in published):
            continue
        meant = ""
        if named:
            named -= 1
            wanted, names = selector.pool or "", {pool_id.pool for pool_id in published}
            if not published:
                wanted, names = selector.driver, {pool_id.driver for pool_id in cluster.slices.pools()}
            meant = nearest(wanted, names)
        yield Unknown(index, selector.driver, selector.pool or "", meant, bool(published))


def overlaps(policy: AllocationPolicy, cluster: Cluster) -> Iterator[Overlap]:
    """What others select as well of what is published, each selector and other policy once; policies that are being removed do not count."""
    others = [
        other
        for name, other in sorted(cluster.policies.items())
        if name != policy.metadata.name and other.metadata.deletion_timestamp is None
    ]
    for index, selector in enumerate(policy.spec.pools):
        for other in others:
            common = [pair for theirs in other.spec.pools if (pair := _common(selector, theirs)) is not None]
            if not common:
                continue
            published = {
                pool_id
                for pool_id in cluster.slices.pools_of_driver(selector.driver)
                if any(pair.pool in {ANY_POOL, pool_id.pool} for pair in common)
            }
            if not published:
                continue  # nobody is to choose between policies for what is not there: PoolsFound tells the cause
            ranking = [found.metadata.name for found in cluster.policies_matching(common[0])]
            rules = ranking.index(policy.metadata.name) < ranking.index(other.metadata.name)
            yield Overlap(index, other.metadata.name, rules, len(published))


def _common(one: PoolSelector, other: PoolSelector) -> PoolId | None:
    """A pool that both select, `ANY_POOL` for all of the driver; None if there is none."""
    if one.driver != other.driver or (one.pool and other.pool and one.pool != other.pool):
        return None
    return PoolId(one.driver, one.pool or other.pool or ANY_POOL)


def unknown_text(found: Sequence[Unknown]) -> str:
    """The sentence for a condition and an event."""
    parts = [_unknown(item) for item in found]
    return f"{listed(parts, NAMED, SEPARATOR)}. Correct it or start the driver: the policy goes on by itself (see kubectl get resourceslices)"


def _unknown(item: Unknown) -> str:
    meant = f" (did you mean {item.meant}?)" if item.meant else ""
    if item.is_driver_known:
        return f"spec.pools[{item.index}].pool: driver {item.driver} publishes no pool {item.pool}{meant}"
    return f"spec.pools[{item.index}].driver: no ResourceSlice of driver {item.driver} is published{meant}"


def overlap_text(found: Sequence[Overlap]) -> str:
    """The sentence for a condition and an event."""
    parts = [_overlap(item) for item in found]
    return f"{listed(parts, NAMED, SEPARATOR)}. One policy rules a pool, the oldest: take the pools out of all others"


def _overlap(item: Overlap) -> str:
    counted = f"{item.pools} published pool{'' if item.pools == 1 else 's'}"
    winner = "this policy" if item.rules else "that one"
    return f"spec.pools[{item.index}]: AllocationPolicy {item.other} selects the same, {counted}, and {winner} rules them"
