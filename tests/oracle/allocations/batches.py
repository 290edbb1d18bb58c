"""A batch: some problems, both answers, and what differs. Batches are independent, so they may run in any process.

The same seed and number give the same batch. While upstream's program works on a batch, our allocator does in this process.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from dra_operator.cel import default_compiler
from tests.oracle.found import Found
from tests.properties.problems import problem

from .differences import Difference, compare, is_late
from .faults import fault_of
from .ours import MAX_STEPS, Ours
from .proofs import AS_UPSTREAM, broken_rules, has_solution, is_by_the_rules

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Sequence

    from dra_operator.cel.interface import CelCompiler
    from tests.oracle.upstream import Upstream

Json = dict[str, Any]

PROBLEMS: Final = 250
"""In a batch."""

TIMEOUT: Final = 3.0
"""Seconds that upstream has for a problem: 500,000 steps and more."""

TRIED: Final = 20
"""One in so many problems is also solved by trying everything, or by a model."""


def run(
    upstream: Upstream, seed: int, number: int, *, also: frozenset[str] = frozenset()
) -> Found[Difference]:
    """Make and judge one batch; `also` are topics that all its problems have."""
    problems = [
        problem(seed, index, also=also) for index in range(number * PROBLEMS, (number + 1) * PROBLEMS)
    ]
    return judge(upstream, problems)


def judge(upstream: Upstream, problems: Sequence[Json]) -> Found[Difference]:
    """Put problems to both, and compare.

    Counted besides: problems, outcomes by `outcome NAME`, topics by `topic NAME`, steps of both searches, what is not built by `not built GATES`, problems
    that were also solved by trying everything by `tried`, those where that was too much and a model was solved by `proved` (and if upstream gave up on them by
    `gave up, and proved`), differences behind which is a fault of upstream by `fault NAME`, and by `gave up` those on which upstream gave up, where nothing shows that we are right.
    """
    theirs, ours, pruned = answers(upstream, problems)
    found: Found[Difference] = Found()
    compiler = default_compiler()
    for number, (asked, their, our, less) in enumerate(zip(problems, theirs, ours, pruned, strict=True)):
        _count(found.counts, asked, their, our)
        found.counts["our steps, pruned at once"] += _steps(less) * (their["outcome"] != "timeout")
        found.counts["late"] += is_late(their) and _steps(less) > _steps(their)
        difference = (
            compare(asked, their, our)
            or _broken(asked, their, our, compiler)
            or _pruned(asked, their, our, less)
        )
        if difference is None and (their["outcome"] == "timeout" or number % TRIED == 0):
            difference = _tried(found.counts, asked, their, our, compiler)
        if difference is None:
            continue
        if fault := fault_of(asked):
            found.counts[f"fault {fault}"] += 1
        else:
            found.note(difference)
    return found


def _steps(answer: Json) -> int:
    return int(answer.get("allocateOneInvocations") or 0)


def _pruned(asked: Json, theirs: Json, ours: Json, less: Json) -> Difference | None:
    """What differs once the search leaves out what it need not try, from our own answer where upstream has none."""
    right = ours if theirs["outcome"] == "timeout" else theirs
    found = compare(asked, right, less) if right["outcome"] != "gave up" else None
    return replace(found, detail="pruned from the first step on") if found is not None else None


def _broken(asked: Json, theirs: Json, ours: Json, compiler: CelCompiler) -> Difference | None:
    if ours["outcome"] != "results":
        return None
    broken = [each for each in broken_rules(asked, ours, compiler) if each.rule not in AS_UPSTREAM]
    return Difference("broken", asked, theirs, ours, "; ".join(map(str, broken))) if broken else None


def _tried(
    counts: Counter[str], asked: Json, theirs: Json, ours: Json, compiler: CelCompiler
) -> Difference | None:
    """Compare with what trying everything gives, or a model where that is too much: our answer if upstream has none, else upstream's, so that the checkers are checked."""
    gave_up = theirs["outcome"] == "timeout"
    said = ours if gave_up else theirs
    is_for_all = said.get("perNode") and "nodes" not in asked  # on the nodes after it there may be a solution
    is_answer = said["outcome"] in {"results", "none"} or (said["outcome"] == "error" and is_for_all)
    if not is_answer or not is_by_the_rules(asked):
        counts["gave up"] += gave_up
        return None
    exists, by_model = has_solution(asked, compiler, AS_UPSTREAM)
    if exists is None:
        counts["gave up"] += gave_up
        return None
    counts["proved" if by_model else "tried"] += 1
    counts["gave up, and proved"] += gave_up and by_model
    if exists == (said["outcome"] == "results"):
        return None
    return Difference(
        "missed" if gave_up else "checker",
        asked,
        theirs,
        ours,
        f"there is {'a' if exists else 'no'} solution",
    )


def answers(upstream: Upstream, problems: Sequence[Json]) -> tuple[list[Json], list[Json], list[Json]]:
    """Upstream's answers, ours, and ours if the search is pruned from its first step on; ours may take the steps that upstream's took."""
    engine, pruning = Ours(), Ours(pruned=True)
    with ThreadPoolExecutor(1) as beside:
        asked = beside.submit(upstream.solve, problems, timeout=TIMEOUT)
        ours = [engine.answer(each) for each in problems]
        pruned = [pruning.answer(each) for each in problems]
        theirs = asked.result()
    for index, (their, our) in enumerate(zip(theirs, ours, strict=True)):
        if our["outcome"] == "gave up" and their["allocateOneInvocations"] > MAX_STEPS:
            ours[index] = engine.answer(problems[index], their["allocateOneInvocations"])
    return theirs, ours, pruned


def _count(counts: Counter[str], asked: Json, theirs: Json, ours: Json) -> None:
    counts["problems"] += 1
    counts[f"outcome {theirs['outcome']}"] += 1
    for topic in asked["topic"].split(", "):
        counts[f"topic {topic}"] += 1
    if ours["outcome"] == "not built":
        counts["not built"] += 1
        counts[f"not built {ours['error']}"] += 1
    elif theirs["outcome"] != "timeout" and "allocateOneInvocations" in ours:
        counts["upstream's steps"] += theirs["allocateOneInvocations"]
        counts["our steps"] += ours["allocateOneInvocations"]
