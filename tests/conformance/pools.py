"""Compares the pools that a node sees with recorded answers of upstream (oracle 1.4): part of `python -m tests.conformance`.

Compared are: which pools, in visiting order; whether each is incomplete, or invalid and why (upstream's words must be in ours); slices and devices
for the node and for others, in order; names of counter sets. It reads no files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from dra_operator.allocator import SliceList, view_of
from dra_operator.errors import InvalidPool
from dra_operator.features import Features
from dra_operator.model import Node, ResourceSlice, from_object

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dra_operator.allocator.pools import Pool

Json = dict[str, Any]

CHANNELS: Final = ("*", "incubating", "experimental")
"""Whose answer counts, the first that there is; `stable` visits slices in another order (alloc G-4)."""


def accepts(raw: Json) -> bool:
    """Whether a line is a case of this kind."""
    return "channels" in raw and "slices" in raw and "claims" not in raw


def difference(raw: Json) -> str:
    """What is wrong with our answer to a case; empty when nothing is."""
    theirs = next(raw["actual"][channel] for channel in CHANNELS if channel in raw["actual"])
    try:
        pools = gathered(raw)
    except InvalidPool as error:
        return "" if "error" in theirs else f"upstream {theirs}, ours the error {error}"
    if "error" in theirs:
        return f"upstream the error {theirs['error']}, ours {[_dump(pool) for pool in pools]}"
    wanted = theirs["pools"] or []
    if len(wanted) != len(pools):
        return f"upstream {[_name(each) for each in wanted]}, ours {[str(pool.id) for pool in pools]}"
    told = (_pool_difference(each, pool) for each, pool in zip(wanted, pools, strict=True))
    return "; ".join(text for text in told if text)


def gathered(raw: Json) -> tuple[Pool, ...]:
    """What our allocator makes of the slices, in upstream's scope of errors.

    Raises:
        InvalidPool: a node selector cannot be parsed (alloc E-4).
    """
    slices = SliceList([from_object(ResourceSlice, each) for each in raw["slices"] or ()])
    features = msgspec.convert(raw["features"], Features)
    return view_of(slices, from_object(Node, raw["node"]), features, strict=True).pools


def _name(theirs: Json) -> str:
    return f"{theirs['driver']}/{theirs['pool']}"


def _pool_difference(theirs: Json, pool: Pool) -> str:
    ours = _dump(pool)
    reason = theirs["invalidReason"]
    if reason and reason in ours["invalidReason"]:
        ours["invalidReason"] = reason
    return "" if theirs == ours else f"upstream {theirs}, ours {ours}"


def _dump(pool: Pool) -> Json:
    return {
        "driver": pool.id.driver,
        "pool": pool.id.pool,
        "incomplete": pool.is_incomplete,
        "invalid": pool.is_invalid,
        "invalidReason": pool.problem.detail if pool.problem and pool.is_invalid else "",
        "targeting": _slices(pool.slices),
        "notTargeting": _slices(pool.elsewhere),
        "counterSets": sorted(each.name for each in pool.counter_sets),
    }


def _slices(slices: Iterable[ResourceSlice]) -> list[Json]:
    return [
        {
            "slice": each.metadata.name,
            "generation": each.spec.pool.generation,
            "devices": [device.name for device in each.spec.devices],
        }
        for each in slices
    ]
