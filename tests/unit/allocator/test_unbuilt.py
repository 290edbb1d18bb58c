"""Features that are not built: never half-allocated, always named."""

from __future__ import annotations

from typing import Any

import pytest

from dra_operator.allocator import Collector, Rejection, RequestRef, Why
from dra_operator.errors import NoSolution
from dra_operator.testing import builders as make

from .worlds import allocate, claim, gpus, inputs, request

OF_1_36: dict[str, Any] = {"name": "new", "nodeAllocatableResourceMappings": {"cpu": {"newer": "1"}}}


def test_a_device_that_needs_it_is_no_candidate() -> None:
    world = inputs([gpus(OF_1_36, make.device("plain"))])
    collector = Collector()
    assert allocate(world, claim(request("r")), reporter=collector) == [["plain"]]
    rejections = list(collector.devices[RequestRef("default/c", "r")].values())
    assert rejections == [Rejection(Why.NOT_BUILT, "DRANodeAllocatableResources")]


def test_mode_all_counts_it_and_fails() -> None:
    """All without one of them would be less than all."""
    world = inputs([gpus(make.device("plain"), OF_1_36)])
    with pytest.raises(NoSolution):
        allocate(world, claim(request("r", allocationMode="All")))
