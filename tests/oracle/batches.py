"""A batch: some random expressions and devices, both answers, and what differs. Batches are independent, so they may run in any process.

The same seed and number give the same batch. While upstream's program works on a batch, our engine does in this process.
"""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from .devices import device
from .differences import Difference, compare
from .expressions import Generator
from .faults import explained
from .found import Found
from .ours import Ours
from .upstream import RUNS

if TYPE_CHECKING:
    from collections import Counter

    from .expressions import Tree
    from .upstream import Upstream

Json = dict[str, Any]

EXPRESSIONS: Final = 250
"""In a batch."""

DEVICES: Final = 8
"""For each expression, out of `POOL`."""

POOL: Final = 40
"""Devices in a batch."""

DERIVED: Final = 0.15
"""How many expressions are derived attributes."""

ENVIRONMENTS: Final = (
    (12, "StoredExpressions", True, True), (2, "StoredExpressions", False, False), (2, "NewExpressions", True, True), (3, "NewExpressions", True, False),
    (1, "NewExpressions", False, False), (1, "NewExpressions", False, True),
)  # fmt: skip
"""Weight, environment, gates ConsumableCapacity and ListTypeAttributes."""


def run(upstream: Upstream, seed: int, number: int) -> Found[Difference]:
    """Make and judge one batch. Counted besides: expressions, comparisons, refused, failed, unstable, and faults by `fault NAME`."""
    rng = random.Random(f"{seed}/{number}")
    pool = [device(rng) for _ in range(POOL)]
    generator = Generator(rng)
    trees, questions = [], []
    for _ in range(EXPRESSIONS):
        question = _question(rng)
        tree = generator.derived() if question["derived"] else generator.selector()
        trees.append(tree)
        questions.append({**question, "expression": str(tree), "devices": rng.sample(pool, DEVICES)})
    theirs, ours = answers(upstream, questions)
    found: Found[Difference] = Found()
    open_: list[Difference] = []
    for question, tree, their, our in zip(questions, trees, theirs, ours, strict=True):
        _count(found.counts, their)
        open_ += compare(question, their, our, tree)
    for difference in _settled(upstream, open_, found.counts):
        _note(found, difference)
    return found


def answers(upstream: Upstream, questions: list[Json]) -> tuple[list[Json], list[Json]]:
    """Upstream's answers and ours."""
    engine = Ours()
    with ThreadPoolExecutor(1) as beside:
        theirs = beside.submit(upstream.ask, questions)
        ours = [engine.answer(question) for question in questions]
        return theirs.result(), ours


def _question(rng: random.Random) -> Json:
    _, env, capacity, lists = rng.choices(ENVIRONMENTS, [weight for weight, *_ in ENVIRONMENTS])[0]
    features = {"ConsumableCapacity": capacity, "ListTypeAttributes": lists}
    return {"env": env, "features": features, "derived": rng.random() < DERIVED}


def _count(counts: Counter[str], theirs: Json) -> None:
    results = theirs.get("results", ())
    counts["expressions"] += 1
    counts["comparisons"] += len(results) or 1
    counts["refused"] += theirs["outcome"] == "compile-error"
    counts["failed"] += sum(each["outcome"] == "runtime-error" for each in results)


def _settled(upstream: Upstream, found: list[Difference], counts: Counter[str]) -> list[Difference]:
    """Those on which upstream does not disagree with itself; the others are counted, by expression."""
    said = upstream.ask([difference.question for difference in found], repeat=RUNS)
    unstable = {
        each.question["expression"]
        for each, answer in zip(found, said, strict=True)
        if answer.get("unstable")
    }
    counts["unstable"] += len(unstable)
    return [each for each in found if each.question["expression"] not in unstable]


def _note(found: Found[Difference], difference: Difference) -> None:
    fault = explained(difference)
    if fault is not None:
        found.counts[f"fault {fault.name}"] += 1
        return
    found.note(difference)


def smallest(upstream: Upstream, difference: Difference) -> Difference:
    """The same kind of difference in as short an expression as is found quickly."""
    while difference.tree is not None:
        smaller = _smaller(upstream, difference, difference.tree)
        if smaller is None:
            break
        difference = smaller
    return difference


def _smaller(upstream: Upstream, difference: Difference, tree: Tree) -> Difference | None:
    device_ = difference.question.get("device")
    base = {key: value for key, value in difference.question.items() if key != "device"}
    base["devices"] = [] if device_ is None else [device_]
    length = len(str(tree))
    candidates = sorted({str(less): less for less in tree.smaller()}.items(), key=lambda item: len(item[0]))[
        :200
    ]
    questions = [{**base, "expression": text} for text, _ in candidates if len(text) < length]
    theirs, ours = answers(upstream, questions)
    for question, (_, less), their, our in zip(questions, candidates, theirs, ours, strict=False):
        for found in compare(question, their, our, less):
            if found.signature == difference.signature:
                return replace(found, tree=less)
    return None
