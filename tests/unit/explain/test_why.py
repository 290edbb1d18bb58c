"""What `kubectl dra explain` says is the true cause, and what it proposes works: shown by doing it, and by counting again."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import pytest

from dra_operator.explain import CODES, EVENTS, Why, why_claim, why_pod
from dra_operator.simulation import Given, simulate
from dra_operator.simulation.making import Maker

from .situations import CLASSES, GPU, SITUATIONS, asks, gpu, gpus, held

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dra_operator.explain import Change
    from dra_operator.testing.builders import Obj

    from .situations import Situation


def given(objects: Iterable[Obj]) -> Given:
    found = Given()
    for obj in (*CLASSES, *objects):
        found.take(obj)
    return found


def explained(objects: Iterable[Obj], name: str = "p") -> Why:
    found = given(objects)
    cluster = found.cluster()
    Maker(found, cluster).make()
    key = f"default/{name}"
    if key in cluster.pods:
        return why_pod(cluster, found.features, cluster.pods[key])
    return why_claim(cluster, found.features, cluster.claims[key])


def changed(objects: Iterable[Obj], change: Change) -> list[Obj]:
    """The objects with the change made true."""
    found = copy.deepcopy(list(objects))
    for obj in found:
        key = f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"
        if obj["kind"] == "ResourceClaim" and change.spec and key == change.claim:
            obj["spec"] = change.spec
        if obj["kind"] == "ResourceClaim" and change.code == "FreeClaim" and key == change.value:
            obj.pop("status")
            obj["spec"] = {"devices": {"requests": []}}
        if obj["kind"] == "ResourceSlice" and change.code == "CompletePool" and _pool(obj) == change.value:
            obj["spec"]["pool"]["resourceSliceCount"] = 1
        if obj["kind"] == "ResourceSlice" and change.code == "AddDevices":
            like = [one for one in obj["spec"]["devices"] if f"{_pool(obj)}/{one['name']}" == change.like]
            obj["spec"]["devices"] += [
                {**one, "name": f"more-{at}"} for one in like for at in range(int(change.value))
            ]
    return found


def _pool(slice_: Obj) -> str:
    return f"{slice_['spec']['driver']}/{slice_['spec']['pool']['name']}"


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.name)
def test_cause_and_remedy(situation: Situation) -> None:
    found = explained(situation.objects)
    assert (found.code, found.verdict) == (situation.code, situation.verdict), found.first_line
    assert found.code in CODES or found.code in EVENTS
    for words in situation.says:
        assert words in found.first_line
    assert found.remedy or found.code in EVENTS
    assert set(situation.changes) <= {change.code for change in found.changes}, found.changes


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.name)
def test_each_change_that_is_proposed_works(situation: Situation) -> None:
    assert not [
        one for one in simulate(given(situation.objects)).outcomes if one.name == "p" and one.is_placed
    ]
    for change in explained(situation.objects).changes:
        report = simulate(given(changed(situation.objects, change)))
        outcome = next(one for one in report.outcomes if one.name == "p")
        assert outcome.is_placed, (change.text, outcome.message)


def test_every_situation_is_another() -> None:
    assert len({situation.name for situation in SITUATIONS}) == len(SITUATIONS) >= 40


def test_what_is_served() -> None:
    world = [*gpus("n1", 2), held("x", "gpu-0")]
    found = explained([*world, *asks(gpu())])
    assert (found.code, found.verdict, found.is_served) == ("CanBeAllocated", "now", True)
    found = explained(world, "x")
    assert (found.code, found.verdict) == ("Allocated", "served")
    assert found.held[0].devices == (f"{GPU}/n1/gpu-0",)
    assert "for pod old" in found.first_line


def test_a_claim_that_nobody_asks_for_says_so() -> None:
    found = explained([*gpus("n1", 1), *asks(gpu())[:1]], "c")
    assert "no pod asks for it" in found.first_line


def test_equal_pools_are_folded_and_rows_are_bounded() -> None:
    world = [obj for number in range(40) for obj in gpus(f"n{number}", 2)]
    found = explained([*world, *asks(gpu(3))])
    (row,) = found.asked[0].rows
    assert (row.pools, row.seen, row.free, len(row.nodes)) == (40, 2, 2, 4)
    world = [obj for number in range(30) for obj in gpus(f"n{number}", number + 1)]
    (asked,) = explained([*world, *asks(gpu(32))]).asked
    assert (len(asked.rows), asked.more_rows) == (12, 18)
    assert (asked.best_node, asked.best, asked.free) == ("n29", 30, 465)
