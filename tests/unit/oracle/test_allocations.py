"""The comparison with upstream's allocator, without that code: what counts as a difference, how one is made small, what is tried."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.cel import default_compiler
from dra_operator.testing import builders as make
from tests.oracle.allocations.batches import judge
from tests.oracle.allocations.differences import KINDS, Difference, compare, devices
from tests.oracle.allocations.faults import MIXED
from tests.oracle.allocations.ours import Ours
from tests.oracle.allocations.proofs import broken_rules, has_solution, is_by_the_rules
from tests.oracle.allocations.smaller import smallest
from tests.oracle.upstream import Upstream
from tests.properties.problems import problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from tests.oracle.found import Found

Json = dict[str, Any]

COMPILER = default_compiler()
NONE = {"outcome": "none", "allocateOneInvocations": 1}
LATE = "claim c, request r: cannot add device d because a claim constraint would not be satisfied"


def given(*devices: str, **more: Any) -> Json:
    results = [{"request": "r", "driver": "d", "pool": "p", "device": name, **more} for name in devices]
    return {"outcome": "results", "results": [{"devices": {"results": results}}], "allocateOneInvocations": 3}


def error(text: str = "x", *, per_node: bool = False) -> Json:
    return {"outcome": "error", "error": text, "perNode": per_node, "allocateOneInvocations": 0}


@pytest.mark.parametrize(
    ("theirs", "ours", "kind"),
    [
        (NONE, {**NONE, "results": []}, None),
        (given("a"), given("a"), None),
        (given("a", shareID="1"), given("a", shareID="2"), None),
        (given("a", consumedCapacity={"m": "1Gi"}), given("a", consumedCapacity={"m": "1024Mi"}), None),
        (given("a"), given("b"), "devices"),
        (given("a", "b"), given("b", "a"), "devices"),
        (given("a"), given("a", adminAccess=True), "written"),
        (given("a"), NONE, "refuses"),
        (NONE, given("a"), "gives"),
        (NONE, error(), "fails"),
        (error(), NONE, "passes"),
        (error(LATE), NONE, None),
        (error(LATE), given("a"), "passes"),
        (error("one"), error("other words"), None),
        (error(), error(per_node=True), "scope"),
        ({"outcome": "panic"}, error(), None),
        ({"outcome": "panic"}, NONE, "passes"),
        ({"outcome": "timeout"}, NONE, None),
        ({"outcome": "timeout"}, {"outcome": "gave up"}, None),
        (NONE, {"outcome": "gave up"}, "gave up"),
        (NONE, {"outcome": "not built"}, None),
        ({"outcome": "timeout"}, {"outcome": "crash"}, "crash"),
        ({"outcome": "unsupported"}, NONE, "asked"),
        (NONE, {**NONE, "allocateOneInvocations": 2}, "steps"),
        (NONE, {**NONE, "allocateOneInvocations": 0}, None),
        (error(LATE), {**NONE, "allocateOneInvocations": 9}, None),
    ],
)
def test_what_differs_has_a_kind(theirs: Json, ours: Json, kind: str | None) -> None:
    found = compare(problem(1, 0), theirs, ours)

    assert (found.kind if found else None) == kind
    assert kind is None or kind in KINDS


class Pretending(Upstream):
    """Answers as ours does, but for problems of which it is told otherwise."""

    def __init__(self, folder: Path, otherwise: Callable[[Json], Json | None]) -> None:
        super().__init__(folder)
        object.__setattr__(self, "_otherwise", otherwise)

    def solve(self, problems: Iterable[Json], *, timeout: float = 0.0) -> list[Json]:
        del timeout
        engine = Ours()
        otherwise: Callable[[Json], Json | None] = object.__getattribute__(self, "_otherwise")
        return [otherwise(raw) or {"allocateOneInvocations": 10**6, **engine.answer(raw)} for raw in problems]


def judged(folder: Path, otherwise: Callable[[Json], Json | None], count: int = 60) -> Found[Difference]:
    return judge(Pretending(folder, otherwise), [problem(5, number) for number in range(count)])


def test_answers_that_agree_are_counted_and_no_difference(tmp_path: Path) -> None:
    found = judged(tmp_path, lambda _: None)

    assert found.differences == []
    assert found.counts["problems"] == 60
    assert found.counts["tried"] > 0


def test_a_difference_is_made_small(tmp_path: Path) -> None:
    def refusing(raw: Json) -> Json | None:
        """Fails wherever a device has more than one attribute."""
        devices = [each for slice_ in raw["slices"] for each in slice_["spec"].get("devices", ())]
        return error() if any(len(each.get("attributes", ())) > 1 for each in devices) else None

    upstream = Pretending(tmp_path, refusing)
    found = next(each for each in judged(tmp_path, refusing).differences if each.kind == "passes")

    small = smallest(upstream, found).problem

    assert (small["claims"], small["classes"], small["allocated"]["devices"]) == ([], [], [])
    assert [len(each["attributes"]) for each in small["slices"][0]["spec"]["devices"]] == [2]


def test_where_upstream_gives_up_everything_is_tried(tmp_path: Path) -> None:
    found = judged(tmp_path, lambda _: {"outcome": "timeout", "allocateOneInvocations": 10**6})

    assert found.differences == []
    assert found.counts["tried"] > 10
    assert found.counts["tried"] + found.counts["proved"] + found.counts["gave up"] == 60


SIMPLE = next(
    raw
    for raw in (problem(5, number, frozenset({"config"})) for number in range(100))
    if "nodes" not in raw and devices(Ours().answer(raw)) and has_solution(raw, COMPILER).exists
)
"""One that is solved, and has no solution if all devices are taken."""


def test_what_upstream_says_is_tried_as_well_and_a_wrong_answer_noted(tmp_path: Path) -> None:
    wrong = judge(Pretending(tmp_path, lambda _: NONE), [SIMPLE])
    kinds = [each.kind for each in wrong.differences]

    assert kinds == ["gives"]
    assert has_solution(SIMPLE, COMPILER).exists is True


def partition(name: str, *groups: str) -> Json:
    return {"name": name, "consumesCounters": [{"counterSet": "card", "compatibilityGroups": list(groups)}]}


def shared_card(*held: str, nodes: int = 2, on: bool = True) -> Json:
    """A card of which partitions with and without groups are there, on some nodes."""
    one = make.resource_slice("one", "d", [partition("with", "ga"), partition("with-too", "ga")], node="n0")
    other = make.resource_slice("other", "d", [partition("without")], node="n0")
    sets = make.resource_slice("sets", "d", [], node="n0", sharedCounters=[{"name": "card", "counters": {}}])
    for slice_ in (one, other, sets):
        slice_["spec"]["pool"] = {"name": "p", "generation": 1, "resourceSliceCount": 3}
    taken = [{"driver": "d", "pool": "p", "device": name} for name in held]
    return {
        **SIMPLE,
        "features": {**SIMPLE["features"], "CompatibilityGroups": on, "PartitionableDevices": True},
        "nodes": [make.node(f"n{number}") for number in range(nodes)],
        "slices": [one, other, sets],
        "allocated": {"devices": taken, "sharedDeviceIDs": [], "aggregatedCapacity": []},
    }


@pytest.mark.parametrize(
    ("asked", "known"),
    [
        (shared_card("with", "without"), True),
        (shared_card("with", "with-too"), False),
        (shared_card("without"), False),
        (shared_card("with", "without", nodes=1), False),
        (shared_card("with", "without", on=False), False),
    ],
)
def test_a_difference_behind_which_is_a_known_fault_is_counted_apart(
    tmp_path: Path, asked: Json, *, known: bool
) -> None:
    """Devices that do not go together are allocated, and upstream keeps what the first node saw of them (alloc M-4)."""
    found = judge(Pretending(tmp_path, lambda _: given("of another card")), [asked])

    assert found.counts[f"fault {MIXED}"] == known
    assert len(found.differences) == (not known)


def test_an_allocation_that_breaks_a_rule_is_told_with_the_rule() -> None:
    said = Ours().answer(SIMPLE)
    taken = [
        {name: each[name] for name in ("driver", "pool", "device")}
        for result in said["results"]
        for each in result["devices"]["results"]
    ]
    again = {**SIMPLE, "allocated": {**SIMPLE["allocated"], "devices": taken}}

    assert broken_rules(SIMPLE, said, COMPILER) == []
    assert {each.rule for each in broken_rules(again, said, COMPILER)} == {"in-use"}


ADMIN = [{"adminAccess": True}]
PARTS = [{"consumesCounters": [{"counterSet": "c"}]}]
GROUPED = [{"consumesCounters": [{"compatibilityGroups": ["g"]}]}]
TAKEN = {"devices": [{"device": "d"}]}


@pytest.mark.parametrize(
    ("changed", "fair"),
    [
        ({}, True),
        ({"claims": ADMIN}, True),
        ({"claims": ADMIN, "slices": PARTS}, False),
        ({"slices": GROUPED}, True),
        ({"slices": GROUPED, "allocated": TAKEN}, False),
        ({"slices": [{"skipNodeOperations": ["*"]}]}, False),
        ({"slices": [{"skipNodeOperations": ["*"]}], "channel": "incubating"}, True),
        ({"slices": [{"skipNodeOperations": ["*"]}], "features": {"OptionalNodeOperations": True}}, True),
    ],
)
def test_what_hangs_on_faults_of_upstreams_is_not_tried(changed: Json, *, fair: bool) -> None:
    plain: Json = {
        "claims": [],
        "slices": [],
        "allocated": {"devices": []},
        "features": {},
        "channel": "experimental",
    }

    assert is_by_the_rules({**plain, **changed}) is fair


def test_a_difference_names_the_problem_and_both_answers() -> None:
    lines = Difference("gives", problem(1, 3), NONE, given("a"), "why").lines()

    assert lines[0].startswith("gives: ")
    assert "problem 1/3" in lines[0]
    assert [line.split()[0] for line in lines[1:]] == ["problem", "upstream", "ours"]
