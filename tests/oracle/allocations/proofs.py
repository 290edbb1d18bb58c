"""What can be said without upstream: whether an allocation obeys all rules, and whether there is one at all."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dra_operator.model import AllocationResult, from_object
from dra_operator.verification import Allocated, Snapshot, Taken, verify
from tests.conformance.problems import decode_problem
from tests.properties.assignments import Call
from tests.properties.exhaustive import Exhaustive, TooManyError
from tests.properties.satisfiable import Satisfiable, UndecidedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dra_operator.cel.interface import CelCompiler
    from dra_operator.verification import Broken
    from tests.conformance.problems import Problem

Json = dict[str, Any]


def broken_rules(raw: Json, answer: Json, compiler: CelCompiler) -> list[Broken]:
    """Rules that the results of an answer break; share ids of upstream's program are all the same, and made different here."""
    results = [
        from_object(AllocationResult, _numbered(result, index))
        for index, result in enumerate(answer["results"])
    ]
    return broken(decode_problem(raw), results, compiler)


def broken(problem: Problem, results: Sequence[AllocationResult], compiler: CelCompiler) -> list[Broken]:
    """Rules that allocations break, on the node where they break least: an answer does not say which of several it is for."""
    snapshot = snapshot_of(problem, compiler)
    found = []
    for node in problem.nodes:
        judged = [
            Allocated(claim, result, node) for claim, result in zip(problem.claims, results, strict=True)
        ]
        found.append(verify(judged, snapshot))
    return min(found, key=len)


def snapshot_of(problem: Problem, compiler: CelCompiler) -> Snapshot:
    """What a problem looks like to the verifier."""
    taken = problem.allocated
    return Snapshot(
        problem.features,
        problem.slices,
        {each.metadata.name: each for each in problem.classes},
        compiler,
        Taken(taken.devices, taken.shared, taken.capacity),
    )


AS_UPSTREAM: Final = frozenset({"shared"})
"""Rules that upstream does not keep: it gives devices as a whole of which there are shares (alloc Q-8)."""


class Existence(NamedTuple):
    """Whether there is a solution.

    Attributes:
        exists: None if that was not found out.
        by_model: whether there was too much to try on some node, so that CP-SAT was asked.
    """

    exists: bool | None
    by_model: bool = False


def has_solution(
    raw: Json, compiler: CelCompiler, ignored: frozenset[str] = frozenset(), most: int = 5_000
) -> Existence:
    """Whether any assignment, on any of the nodes, obeys all rules but the ignored ones.

    Args:
        raw: the problem.
        compiler: of its selectors.
        ignored: rules that need not be obeyed.
        most: devices that are judged where everything is tried; where that does not suffice, a model is solved.
    """
    problem = decode_problem(raw)
    snapshot = snapshot_of(problem, compiler)
    by_model, undecided = False, False
    for node in problem.nodes:
        found = _on(Call(problem.claims, node, snapshot, ignored), most)
        by_model |= found.by_model
        undecided |= found.exists is None
        if found.exists:
            return Existence(exists=True, by_model=by_model)
    return Existence(None if undecided else False, by_model)


def _on(call: Call, most: int) -> Existence:
    try:
        return Existence(Exhaustive(call, most).solution() is not None)
    except TooManyError:
        pass
    try:
        return Existence(Satisfiable(call).solution() is not None, by_model=True)
    except UndecidedError:
        return Existence(None, by_model=True)


def is_by_the_rules(raw: Json) -> bool:
    """Whether upstream's answer hangs on the rules alone, and on none of its faults.

    In 0.37 admin access draws from counters (BUG-9); what goes with devices of mixed compatibility groups depends on their order; and the
    experimental copy refuses what skips node operations while that is off (oracle 7 no. 6).
    """
    text = json.dumps(raw)
    counters, taken = '"consumesCounters"' in text, any(raw["allocated"].values())
    operations = '"skipNodeOperations"' in text and not raw["features"].get("OptionalNodeOperations")
    return not (
        (counters and '"adminAccess": true' in text)
        or (taken and '"compatibilityGroups"' in text)
        or (operations and raw["channel"] == "experimental")
    )


def _numbered(result: Json, claim: int) -> Json:
    results = [
        {**each, "shareID": f"{claim}/{number}"} if each.get("shareID") else each
        for number, each in enumerate(result.get("devices", {}).get("results") or ())
    ]
    return {**result, "devices": {**result.get("devices", {}), "results": results}}
