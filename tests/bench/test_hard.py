"""Problems whose plain search does not come back (oracle 5, alloc B.2 no. 2): solved or refuted within some hundred steps, by the product's own limits.

Families that grow: what upstream needs doubles with each device. Step counts are exact and the same on every machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.allocator import AllocatedState, Allocator, Inputs, Options, SliceList
from dra_operator.cel import default_compiler
from dra_operator.errors import NoSolution
from dra_operator.features import DEFAULT_1_37
from dra_operator.model import DeviceClass, Node, ResourceClaim, ResourceSlice, from_object
from dra_operator.testing import builders as make

from . import hard
from .hard import DRIVER, has, parts, published, want

if TYPE_CHECKING:
    from collections.abc import Sequence

NODE = from_object(Node, make.node("n1"))
MOST = 500
"""Steps: five times as many as are taken plainly."""

COMPILER = default_compiler()


def solve(devices: Sequence[Any], *claims: Any, **spec: Any) -> list[str] | None:
    """Devices of all claims, None if it is impossible; within `MOST` steps."""
    inputs = Inputs(
        features=DEFAULT_1_37,
        classes={"gpu": from_object(DeviceClass, make.device_class("gpu", driver=DRIVER))},
        slices=SliceList(from_object(ResourceSlice, raw) for raw in published(DRIVER, devices, **spec)),
        allocated=AllocatedState(),
        selectors=COMPILER,
    )
    allocator = Allocator(inputs, Options(max_steps=MOST, max_looks=200 * MOST))
    try:
        results = allocator.allocate(NODE, [from_object(ResourceClaim, raw) for raw in claims])
    except NoSolution:
        return None
    return [entry.device for result in results for entry in result.devices.results]


def solved(problem: hard.Hard) -> list[str] | None:
    """The same for a problem of a family."""
    devices, claims, spec = problem
    return solve(devices, *claims, **spec)


@pytest.mark.parametrize("count", [8, 16, 31])
def test_one_more_than_there_are(count: int) -> None:
    assert solved(hard.too_many(count)) is None


@pytest.mark.parametrize("count", [16, 32, 64])
def test_a_late_request_that_nothing_matches(count: int) -> None:
    assert solved(hard.late(count)) is None


@pytest.mark.parametrize("count", [16, 32, 64])
def test_the_first_request_takes_what_the_second_must_have(count: int) -> None:
    found = solved(hard.greedy(count))
    assert found == [*(f"d{at:02}" for at in range(1, count // 4 + 1)), "d00"]


@pytest.mark.parametrize("claims", [8, 12, 32])
def test_claims_of_one_device_each_and_a_device_too_few(claims: int) -> None:
    assert solved(hard.claims(claims)) is None


@pytest.mark.parametrize(("pairs", "nics"), [(8, 7), (8, 8), (16, 15), (16, 16)])
@pytest.mark.parametrize("grouped", [True, False], ids=["grouped", "interleaved"])
def test_pairs_on_one_root_each(pairs: int, nics: int, *, grouped: bool) -> None:
    """FR-36, FR-40: the NICs are at the far end."""
    found = solved(hard.pairs(pairs, nics, grouped=grouped))
    assert (found is not None) == (pairs <= nics)


def test_three_constraints_at_once() -> None:
    """FR-31: one socket, one generation, different boards; only the last socket has them all."""
    devices = [
        make.device(
            f"d{at:02}",
            attributes={"socket": at // 8, "made": (at // 4) % 2 if at < 24 else 3, "board": at % 8},
        )
        for at in range(32)
    ]
    constraints = [
        {"matchAttribute": f"{DRIVER}/socket"},
        {"matchAttribute": f"{DRIVER}/made"},
        {"distinctAttribute": f"{DRIVER}/board"},
    ]
    requests = (want("r", count=4), want("q", count=4))
    found = solve(devices, make.claim("c", *requests, constraints=constraints))
    assert found == [f"d{at}" for at in range(24, 32)]
    assert solve(devices, make.claim("c", *requests, want("x"), constraints=constraints)) is None


@pytest.mark.parametrize("count", [16, 24, 32])
def test_more_different_values_than_there_are(count: int) -> None:
    assert solved(hard.distinct(count)) is None


# --- partitions


@pytest.mark.parametrize(("count", "possible"), [(15, True), (16, True), (17, False)])
def test_as_many_partitions_of_two_gpus_as_there_can_be(count: int, *, possible: bool) -> None:
    found = solved(hard.any_parts(2, count))
    assert (found is not None) == possible


@pytest.mark.parametrize(
    ("count", "first"), [(30, ["gpu-0-p2-0", "gpu-0-p2-2"]), (32, ["gpu-0-p1-0", "gpu-0-p1-1"])]
)
def test_as_many_partitions_of_four_gpus_as_there_can_be(count: int, first: list[str]) -> None:
    found = solved(hard.any_parts(4, count))
    assert found is not None
    assert found[:2] == first


def test_partitions_of_two_sizes_that_do_not_fit_together() -> None:
    devices, spec = parts(4)
    requests = (want("r", has("size", 2), count=15), want("q", has("size", 1), count=3))
    assert solve(devices, make.claim("c", *requests), **spec) is None


def test_sixty_four_partitions_for_the_pods_of_a_node() -> None:
    """FR-37: claims of an eighth each, one too many for eight GPUs."""
    devices, spec = parts(8)
    claims = [make.claim(f"c{at:02}", want("r", has("size", 1))) for at in range(65)]
    assert solve(devices, *claims[:64], **spec) is not None
    assert solve(devices, *claims, **spec) is None


# --- capacity, lists


def shared(count: int, memory: str) -> list[Any]:
    return [
        {"name": f"d{at:02}", "allowMultipleAllocations": True, "capacity": {"memory": {"value": memory}}}
        for at in range(count)
    ]


@pytest.mark.parametrize("count", [8, 12, 30])
def test_shares_of_more_than_half_of_a_device(count: int) -> None:
    """FR-38: one more than there are devices."""
    assert solved(hard.shares(count)) is None


@pytest.mark.parametrize(("count", "possible"), [(32, True), (33, False)])
def test_shares_that_fill_four_devices(count: int, *, possible: bool) -> None:
    claims = [
        make.claim(f"c{at:02}", want("r", capacity={"requests": {"memory": "1Gi"}})) for at in range(count)
    ]
    assert (solve(shared(4, "8Gi"), *claims) is not None) == possible


@pytest.mark.parametrize("lists", [5, 6, 8])
def test_prioritized_lists_that_cannot_all_be_had(lists: int) -> None:
    assert solved(hard.lists(lists)) is None
