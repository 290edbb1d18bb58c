"""The problems that the allocator is compared with upstream on, without upstream: what they are like, and that it gives what there is.

Upstream's code is asked by `python -m tests.oracle allocator`; `test_any_problem` has what holds of every answer.
"""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.allocator import Options
from dra_operator.cel import default_compiler
from dra_operator.model import to_object
from dra_operator.validation import claims, classes, slices
from tests.conformance.problems import decode_problem
from tests.conformance.running import ask, options_for
from tests.oracle.allocations.proofs import has_solution, is_by_the_rules
from tests.properties.problems import TOPICS, problem
from tests.properties.problems.coverage import FIELDS, lines, measure, without

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Json = dict[str, Any]

SEED = 7
COMPILER = default_compiler()
AS_SHIPPED = Options()


def answer(raw: Json, options: Options = AS_SHIPPED) -> Json:
    """What our allocator says; `not built` where it hangs on what is not."""
    said = ask(decode_problem(raw), COMPILER, options)
    return {
        "outcome": "not built" if said.needs else said.outcome,
        "error": said.error,
        "results": [to_object(each) for each in said.results],
    }


def answered(count: int, *outcomes: str, first: int = 0) -> Iterator[tuple[Json, Json]]:
    """Problems with our answers, of those outcomes alone."""
    for number in range(first, first + count):
        raw = problem(SEED, number)
        said = answer(raw)
        if said["outcome"] in outcomes:
            yield raw, said


# --- the problems themselves


def test_a_number_gives_one_problem() -> None:
    assert [problem(1, number) for number in range(50)] == [problem(1, number) for number in range(50)]
    assert problem(1, 0) != problem(2, 0)


def test_all_topics_come_and_meet_in_pairs() -> None:
    met: Counter[frozenset[str]] = Counter()
    for number in range(2_000):
        topics = sorted(problem(SEED, number)["topic"].split(", "))
        met.update(frozenset((one, other)) for one in topics for other in topics)
    common = [name for name, topic in TOPICS.items() if name != "limit" and topic.weight]
    wanted = [frozenset((one, other)) for one in common for other in common]

    assert [sorted(pair) for pair in wanted if not met[pair]] == []
    assert met[frozenset({"limit"})]


def causes(raw: Json) -> list[object]:
    """What the API server would refuse. Lists it drops from attributes while their gate is off, which is so by default."""
    raw = copy.deepcopy(raw)
    for claim in raw["claims"]:
        claims.default_claim_spec(claim["spec"])
    for slice_ in raw["slices"]:
        for device in slice_["spec"].get("devices", ()):
            device["attributes"] = {
                name: each
                for name, each in device["attributes"].items()
                if not any(isinstance(value, list) for value in each.values())
            }
    return [
        *(cause for claim in raw["claims"] for cause in claims.check_claim(claim)),
        *(cause for each in raw["classes"] for cause in classes.check_class(each)),
        *(cause for each in raw["slices"] for cause in slices.check_slice(each)),
    ]


def test_objects_are_such_as_the_api_server_takes_unless_a_defect_is_noted() -> None:
    problems = [problem(SEED, number) for number in range(400)]

    assert [(raw["id"], causes(raw)) for raw in problems if not raw["note"] and causes(raw)] == []


def test_what_hangs_on_a_topic_is_measured_by_asking_without_it() -> None:
    def solve(problems: Sequence[Json]) -> list[Json]:
        """Says `none` if anything is tainted."""
        return [{"outcome": "none" if "'taints'" in str(raw) else "results"} for raw in problems]

    raw = {**problem(SEED, 0, frozenset({"taints", "config"})), "topic": "config, taints"}
    found = measure([raw], solve)

    assert found["taints"].hangs == 1
    assert found["config"].hangs == 0
    assert next(iter(lines({"taints": found["taints"]}))).endswith("the answer hangs on it in 100 %")


@pytest.mark.parametrize("topic", sorted(FIELDS))
def test_a_problem_without_a_topic_can_be_asked(topic: str) -> None:
    for number in range(10):
        decode_problem(without(problem(SEED, number, frozenset({topic})), topic))


# --- what the allocator says


@pytest.mark.parametrize("topic", sorted(name for name, topic in TOPICS.items() if topic.gates))
def test_objects_that_use_what_is_off_meet_errors_that_are_told(topic: str) -> None:
    """No crash, pruned or not: gates may go off while claims and devices use what they are for."""
    for number in range(120):
        raw = problem(SEED, number, frozenset({topic, "taken", "broken"} if number % 2 else {topic, "taken"}))
        off = {**raw["features"], **dict.fromkeys(TOPICS[topic].gates, False)}
        for options in (AS_SHIPPED, options_for(decode_problem(raw)), replace(AS_SHIPPED, patience=-1)):
            assert answer({**raw, "features": off}, options)["outcome"] in {"results", "none", "error"}, raw[
                "id"
            ]


def test_a_pruned_search_minds_no_counters_while_partitions_are_off() -> None:
    """Such a device can be taken by nobody, and yet a selector that fails on it keeps it in view."""
    raw = next(
        each
        for each in (problem(SEED, number, frozenset({"config"})) for number in range(100))
        if "nodes" not in each and answer(each)["outcome"] == "results"
    )
    requests = [
        {
            "name": name,
            "exactly": {
                "deviceClassName": raw["classes"][0]["metadata"]["name"],
                "count": 1,
                "allocationMode": "ExactCount",
                **more,
            },
        }
        for name, more in (
            ("r0", {}),
            ("r1", {"selectors": [{"cel": {"expression": "device.attributes['x'].gone"}}]}),
        )
    ]
    raw["claims"] = [{"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}}]
    raw["features"]["PartitionableDevices"] = False
    for each in raw["slices"]:
        for device in each["spec"].get("devices", ()):
            device["consumesCounters"] = [{"counterSet": "gone", "counters": {"c": {"value": "1"}}}]
            device.pop("allowMultipleAllocations", None)

    said = {answer(raw, replace(AS_SHIPPED, patience=patience))["outcome"] for patience in (-1, 9)}

    assert len(said) == 1


def test_devices_are_given_if_there_is_any_way_to_do_so() -> None:
    """Against trying everything, which knows nothing of the search."""
    judged: Counter[bool] = Counter()
    for raw, said in answered(200, "results", "none", first=1_000):
        exists = has_solution(raw, COMPILER).exists if is_by_the_rules(raw) else None
        if exists is not None:
            judged[exists] += 1
            assert exists == (said["outcome"] == "results"), raw["id"]

    assert judged[True] > 10
    assert judged[False] > 10
