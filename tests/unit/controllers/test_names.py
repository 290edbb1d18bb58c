"""Names and marks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.controllers.names import MARK, digest, holds_our_allocation, rule_name
from dra_operator.model import AllocationResult, PoolSelector, ResourceClaim, from_object

if TYPE_CHECKING:
    from collections.abc import Mapping

ALLOCATION = {"devices": {"results": [{"request": "gpu", "driver": "d", "pool": "n1", "device": "gpu-0"}]}}


def claim(mark: str | None, allocation: Mapping[str, object] | None = ALLOCATION) -> ResourceClaim:
    annotations = {} if mark is None else {MARK: mark}
    status = {} if allocation is None else {"allocation": allocation}
    metadata = {"name": "c", "namespace": "default", "annotations": annotations}
    return from_object(ResourceClaim, {"metadata": metadata, "status": status})


def test_the_digest_does_not_depend_on_the_time_of_writing() -> None:
    stamped = from_object(AllocationResult, {**ALLOCATION, "allocationTimestamp": "2026-11-01T00:00:00Z"})
    assert digest(stamped) == digest(from_object(AllocationResult, ALLOCATION))


def test_an_allocation_is_ours_only_if_the_mark_fits_it() -> None:
    mine = digest(from_object(AllocationResult, ALLOCATION))
    answers = [holds_our_allocation(claim(mark)) for mark in (None, "another", mine, "generated")]
    assert answers == [False, False, True, True]
    assert not holds_our_allocation(claim(mine, None))


def test_rule_names_differ_by_policy_and_selector_and_fit() -> None:
    whole, part = PoolSelector("gpu.example.com"), PoolSelector("gpu.example.com", "n1")
    names = {rule_name("p", whole), rule_name("p", part), rule_name("q", whole), rule_name("p" * 300, whole)}
    assert len(names) == 4
    assert rule_name("p", whole) == rule_name("p", PoolSelector("gpu.example.com", ""))
    assert max(len(name) for name in names) == 253
