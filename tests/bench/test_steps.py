"""Search steps without pruning, counted as upstream counts invocations (alloc I-7, appendix A.3), and what a step costs here.

Step counts are exact and the same on every machine. The rate is printed, never asserted.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.allocator import AllocatedState, Allocator, Inputs, Options, SliceList
from dra_operator.cel import default_compiler
from dra_operator.errors import NoSolution, SearchLimitReached
from dra_operator.features import Features
from dra_operator.model import DeviceClass, Node, ResourceClaim, ResourceSlice, from_object
from dra_operator.testing import builders as make

if TYPE_CHECKING:
    from collections.abc import Sequence

DRIVER = "gpu.dra.test"
COUNTED = {"allocationMode": "ExactCount"}  # what the API server fills in
NODE = from_object(Node, make.node("n1"))
ANY = make.device_class("any", driver=DRIVER)
TYPED = {
    kind: make.device_class(kind, f'device.attributes["{DRIVER}"].type == "{kind}"', driver=DRIVER)
    for kind in "XYAB"
}


def devices(kinds: str, prefix: str = "d") -> list[Any]:
    return [
        make.device(f"{prefix}{number:02}", attributes={"type": kind}) for number, kind in enumerate(kinds)
    ]


def published(*pools: Sequence[Sequence[Any]]) -> list[Any]:
    """Pools of slices of devices, all on the node."""
    return [
        make.resource_slice(
            f"s{pool}-{number}", DRIVER, held, node="n1", pool=f"p{pool}", resourceSliceCount=len(slices)
        )
        for pool, slices in enumerate(pools)
        for number, held in enumerate(slices)
    ]


def allocator(slices: Sequence[Any], max_steps: int | None = None) -> Allocator:
    classes = [from_object(DeviceClass, raw) for raw in (ANY, *TYPED.values())]
    inputs = Inputs(
        features=Features(prioritized_list=True),
        classes={each.metadata.name: each for each in classes},
        slices=SliceList(from_object(ResourceSlice, raw) for raw in slices),
        allocated=AllocatedState(),
        selectors=default_compiler(),
    )
    return Allocator(inputs, Options(max_steps=max_steps, patience=sys.maxsize))


def steps(slices: Sequence[Any], *requests: Any, solvable: bool) -> int:
    tried = allocator(slices)
    claim = from_object(ResourceClaim, make.claim("c", *requests))
    if solvable:
        tried.allocate(NODE, [claim])
    else:
        with pytest.raises(NoSolution):
            tried.allocate(NODE, [claim])
    return tried.steps


FOUR = devices("XXXX")
XYY = devices("XYY")


@pytest.mark.parametrize(
    "pools",
    [
        [[FOUR]],
        [[FOUR[:2], FOUR[2:]]],
        [[[device]] for device in FOUR],
        [[FOUR[:1], FOUR[1:2]], [FOUR[2:3], FOUR[3:]]],
    ],
    ids=["one slice", "two slices", "four pools", "two pools of two slices"],
)
def test_five_wanted_of_four(pools: Sequence[Sequence[Sequence[Any]]]) -> None:
    assert steps(published(*pools), make.request("r", "any", count=5, **COUNTED), solvable=False) == 16


@pytest.mark.parametrize("pools", [[[XYY]], [[XYY[:1]], [XYY[1:2], XYY[2:]]]], ids=["one slice", "two pools"])
def test_two_of_any_and_one_of_a_type(pools: Sequence[Sequence[Sequence[Any]]]) -> None:
    requests = (make.request("r", "any", count=2, **COUNTED), make.request("q", "X", count=1, **COUNTED))
    assert steps(published(*pools), *requests, solvable=True) == 12


def test_two_prioritized_lists() -> None:
    requests = (
        make.first_available(
            "r",
            make.alternative("a", "Y", count=3, **COUNTED),
            make.alternative("b", "any", count=2, **COUNTED),
        ),
        make.first_available(
            "q",
            make.alternative("a", "any", count=2, **COUNTED),
            make.alternative("b", "X", count=1, **COUNTED),
        ),
    )
    assert steps(published([XYY]), *requests, solvable=True) == 26


def test_alternatives_up_to_the_limit_of_a_claim() -> None:
    requests = [
        make.first_available(
            name,
            make.alternative("a", "any", count=32, **COUNTED),
            make.alternative("b", "any", count=16, **COUNTED),
        )
        for name in ("r", "q")
    ]
    assert steps(published([devices("X" * 64)]), *requests, solvable=True) == 75


def test_all_that_would_exceed_the_limit() -> None:
    requests = (
        make.first_available(
            "r",
            make.alternative("a", "A", allocationMode="All"),
            make.alternative("b", "A", count=2, **COUNTED),
        ),
        make.request("q", "B", count=2, **COUNTED),
    )
    assert steps(published([devices("A" * 31 + "BB")]), *requests, solvable=True) == 42


def test_the_step_limit_bounds_a_hopeless_search(capsys: pytest.CaptureFixture[str]) -> None:
    """Wanting 32 of 31 visits 2^31 states (alloc B.2 no. 2): the limit says that nothing is known."""
    tried = allocator(published([devices("X" * 31)]), max_steps=20_000)
    claim = from_object(ResourceClaim, make.claim("c", make.request("r", "any", count=32, **COUNTED)))
    began = time.perf_counter()
    with pytest.raises(SearchLimitReached):
        tried.allocate(NODE, [claim])
    rate = 20_000 / (time.perf_counter() - began)
    with capsys.disabled():
        print(f"\n  search: {rate:,.0f} steps a second")
