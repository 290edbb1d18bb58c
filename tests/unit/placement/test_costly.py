"""Pods whose selectors take more work than one decision may do: the words, the place, and that nothing else hangs on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dra_operator.errors import Spot, WorkLimitReached
from dra_operator.placement import Allocate, PlacementOptions, Placer
from dra_operator.placement.census import JUDGING
from dra_operator.placement.faults import costly

from .build import (
    ToyCompiler,
    claim,
    cluster_of,
    exactly,
    form,
    gpu_class,
    nic_class,
    node,
    pod,
    policy,
    slice_,
)

if TYPE_CHECKING:
    from collections.abc import Callable

BIG = {"name": "r1", "firstAvailable": [{"name": "big", **form("gpu", "a", "b")}]}
CLAIMS = (claim("one", exactly("r0", "gpu", "true")), claim("two", exactly("r0", "nic"), BIG))


@pytest.mark.parametrize(
    ("spot", "where", "blamed"),
    [
        (
            Spot("", "selectors[1].cel.expression", "", "b"),
            "ResourceClaim ns/two: spec.devices.requests[1].firstAvailable[0].selectors[1].cel.expression: ",
            "ns/two",
        ),
        (
            Spot("DeviceClass nic", "spec.selectors[0].cel.expression", "", "x"),
            "ResourceClaim ns/two: spec.devices.requests[0].exactly.deviceClassName: DeviceClass nic: spec.selectors[0].cel.expression: ",
            "ns/two",
        ),
        (None, "ResourceClaim ns/one: spec.devices.requests: ", "ns/one"),
    ],
    ids=["of a claim", "of a class", "nowhere"],
)
def test_the_place_at_which_the_work_ended_is_named(spot: Spot | None, where: str, blamed: str) -> None:
    text, found = costly(WorkLimitReached(1, spot), CLAIMS)
    assert text.startswith(where)
    assert "goes on by itself" in text
    assert "Fewer or simpler selectors" in text
    assert found == blamed


def test_each_decision_has_an_allowance_of_its_own_and_goes_on_where_the_last_one_ended() -> None:
    slices = [slice_(f"s{number}", ["d:x"], on=f"n{number}") for number in range(6)]
    nodes = [node(f"n{number}") for number in range(6)]
    large, small = claim("large", exactly("gpu", "gpu", "model=x")), claim("small", exactly("nic", "nic"))
    cluster = cluster_of(*slices, *nodes, gpu_class(), nic_class(), policy(), large, small)
    placer = Placer(cluster, ToyCompiler(), options=PlacementOptions(selector_work=2 * JUDGING))
    for _ in range(2):
        with pytest.raises(WorkLimitReached) as caught:
            placer.classify(pod("p", "large"))
        assert caught.value.claim == "ns/large"
    assert isinstance(placer.classify(pod("p", "large")), Allocate)
    assert placer.work == 6 * JUDGING


def test_who_only_watches_makes_do_with_what_is_known() -> None:
    cluster = cluster_of(slice_("s", ["d"], on="n"), node("n"), gpu_class(), policy(), claim("c"))
    placer = Placer(cluster, ToyCompiler())
    with pytest.raises(WorkLimitReached):
        placer.classify(pod("p", "c"), thorough=False)
    with pytest.raises(WorkLimitReached):
        placer.wanted_of_ours(claim("c"), thorough=False)
    assert placer.work == 0
    assert isinstance(placer.classify(pod("p", "c")), Allocate)
    assert isinstance(placer.classify(pod("p", "c"), thorough=False), Allocate)
    assert placer.wanted_of_ours(claim("c"), thorough=False) is not None


LARGE = claim("large", exactly("gpu", "gpu", "model=x"))
ASKED: dict[str, Callable[[Placer], object]] = {
    "who tells of claims": lambda placer: placer.wanted_of_ours(LARGE),
    "who starts anew": lambda placer: placer.for_kube_scheduler(pod("p", "large"), "n0"),
}


@pytest.mark.parametrize("who", ASKED)
def test_others_go_on_in_portions_as_decisions_do(who: str) -> None:
    slices = [slice_(f"s{number}", ["d:x"], on=f"n{number}") for number in range(6)]
    nodes = [node(f"n{number}") for number in range(6)]
    cluster = cluster_of(*slices, *nodes, gpu_class(), policy(), LARGE, pod("p", "large"))
    placer = Placer(cluster, ToyCompiler(), options=PlacementOptions(selector_portion=2 * JUDGING))
    for look in range(1, 3):
        with pytest.raises(WorkLimitReached):
            ASKED[who](placer)
        assert placer.work == look * 2 * JUDGING
    ASKED[who](placer)
    assert placer.work == 6 * JUDGING
