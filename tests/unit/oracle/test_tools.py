"""The comparison with upstream's code, without that code: what is generated, what counts as a difference, how one is made small."""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.oracle.batches import smallest
from tests.oracle.devices import device
from tests.oracle.differences import Difference, compare
from tests.oracle.expressions import Generator
from tests.oracle.faults import explained
from tests.oracle.ours import Ours
from tests.oracle.upstream import NoAnswerError, Upstream

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

Json = dict[str, Any]

ASKED = {"expression": "true", "devices": [{"driver": "d"}, {"driver": "e"}]}
RIGHT = {
    "outcome": "ok",
    "outputType": "bool",
    "maxCost": 3,
    "results": [{"outcome": "ok", "match": True, "actualCost": 2}] * 2,
}
REFUSED = {"outcome": "compile-error", "error": "x"}


def kinds(theirs: Json, ours: Json) -> list[str]:
    return [difference.kind for difference in compare(ASKED, theirs, ours)]


def with_result(**result: Any) -> Json:
    return {**RIGHT, "results": [RIGHT["results"][0], result]}  # type: ignore[index]


def test_one_seed_gives_one_sequence() -> None:
    def made(seed: int) -> list[str]:
        generator = Generator(random.Random(seed))
        return [str(generator.selector()) for _ in range(50)] + [str(generator.derived()) for _ in range(50)]

    assert made(1) == made(1)
    assert made(1) != made(2)
    assert device(random.Random(1)) == device(random.Random(1))


def test_most_of_what_is_generated_compiles_and_not_all() -> None:
    """Most must get as far as a value; refusals have to be compared as well."""
    generator, engine = Generator(random.Random(5)), Ours()
    outcomes = [engine.answer({"expression": str(generator.selector())})["outcome"] for _ in range(300)]

    assert outcomes.count("ok") > 150
    assert outcomes.count("compile-error") > 10


@pytest.mark.parametrize(
    ("theirs", "ours", "found"),
    [
        (RIGHT, RIGHT, []),
        (RIGHT, {**RIGHT, "maxCost": 4}, ["estimate"]),
        (RIGHT, {**RIGHT, "outputType": "dyn"}, ["type"]),
        (RIGHT, REFUSED, ["refuses"]),
        (REFUSED, RIGHT, ["accepts"]),
        (REFUSED, {**REFUSED, "error": "other words"}, []),
        (REFUSED, {"outcome": "unsupported", "error": "x"}, ["unsupported"]),
        (RIGHT, {"outcome": "crash", "error": "x"}, ["crash"]),
        (RIGHT, with_result(outcome="ok", match=False, actualCost=2), ["value"]),
        (RIGHT, with_result(outcome="ok", match=True, actualCost=3), ["cost"]),
        (RIGHT, with_result(outcome="ok", match=True), []),
        (RIGHT, with_result(outcome="runtime-error", error="x"), ["fails"]),
        (with_result(outcome="runtime-error", error="x"), RIGHT, ["passes"]),
        ({"outcome": "panic", "error": "x"}, REFUSED, []),
        ({"outcome": "panic", "error": "x"}, RIGHT, ["passes"]),
    ],
)
def test_what_differs_has_a_kind(theirs: Json, ours: Json, found: list[str]) -> None:
    assert kinds(theirs, ours) == found


class Refusing(Upstream):
    """Refuses expressions with `3` in them, and answers the others as our engine does."""

    def ask(self, questions: Iterable[Json], *, repeat: int = 1) -> list[Json]:
        del repeat
        return [
            REFUSED if "3" in question["expression"] else Ours().answer(question) for question in questions
        ]


def test_a_difference_is_made_small(tmp_path: Path) -> None:
    generator = Generator(random.Random(1))
    tree = next(each for each in iter(generator.selector, None) if "3" in str(each) and len(str(each)) > 150)
    found = Difference("accepts", {"expression": str(tree)}, REFUSED, {"outcome": "ok"}, tree)

    small = smallest(Refusing(tmp_path), found).question["expression"]

    assert "3" in small
    assert len(small) < len(str(tree)) / 2


CHANGED = 'x.isLessThan(quantity("1.5Gi")) || x.asInteger() == 1'
NO_INTEGER = {"outcome": "runtime-error", "error": "cannot convert value to integer"}
PLAIN = {"driver": "d", "capacity": {"mem": {"value": "1Gi"}}, "attributes": {"s": {"string": "10Gi"}}}


@pytest.mark.parametrize(
    ("kind", "expression", "device_", "theirs"),
    [
        ("passes", CHANGED, PLAIN, NO_INTEGER),
        ("value", CHANGED, PLAIN, {"outcome": "ok", "match": False}),
        ("passes", CHANGED.replace("1.5Gi", "1Gi"), {**PLAIN, "capacity": {"mem": {"value": "100Ti"}}}, NO_INTEGER),
        ("passes", CHANGED.replace("1.5Gi", "1Gi"), {**PLAIN, "attributes": {"s": {"strings": ["0.5Gi"]}}}, NO_INTEGER),
        ("passes", "y.asInteger() == 1 || x.compareTo(quantity('1.5Gi')) == 0", PLAIN, NO_INTEGER),
    ],
)  # fmt: skip
def test_a_quantity_that_upstream_changes_is_known(
    kind: str, expression: str, device_: Json, theirs: Json
) -> None:
    fault = explained(
        Difference(kind, {"expression": expression, "device": device_}, theirs, {"outcome": "ok"})
    )
    assert fault is not None
    assert fault.name == "quantities that comparing changes"


@pytest.mark.parametrize(
    ("kind", "expression", "theirs"),
    [
        ("fails", CHANGED, NO_INTEGER),
        ("passes", CHANGED, {"outcome": "runtime-error", "error": "division by zero"}),
        ("passes", CHANGED.replace("1.5Gi", "1Gi"), NO_INTEGER),
        ("value", CHANGED.replace("asInteger", "asApproximateFloat"), {"outcome": "ok", "match": False}),
        ("value", 'quantity("1.5Gi").asInteger() == 1', {"outcome": "ok", "match": False}),
    ],
)
def test_what_only_looks_like_it_is_a_difference(kind: str, expression: str, theirs: Json) -> None:
    question = {"expression": expression, "device": PLAIN}
    assert explained(Difference(kind, question, theirs, {"outcome": "ok"})) is None


HANGS = """
import json, sys, time
for line in sys.stdin:
    asked = json.loads(line)
    if asked["id"] == "hangs":
        time.sleep(600)
    if asked["id"] == "breaks":
        sys.exit(3)
    print(json.dumps({"id": asked["id"], "outcome": "none"}), flush=True)
"""
"""In place of upstream's program: it answers, but for two problems."""


def program(folder: Path) -> Path:
    path = folder / "program"
    path.write_text(f"#!{sys.executable}\n{HANGS}")
    path.chmod(0o755)
    return path


def test_each_question_has_its_answer(tmp_path: Path) -> None:
    problems = [{"id": str(number)} for number in range(20)]

    assert [each["id"] for each in Upstream(program(tmp_path)).solve(problems)] == [
        each["id"] for each in problems
    ]
    assert Upstream(program(tmp_path)).solve([]) == []


def test_a_problem_on_which_upstreams_program_hangs_is_named(tmp_path: Path) -> None:
    upstream = Upstream(program(tmp_path), patience=0.2)
    problems: list[dict[str, Any]] = [
        {"id": "one", "timeoutMs": 60_000},
        {"id": "hangs", "note": "this"},
        {"id": "three"},
    ]

    with pytest.raises(NoAnswerError, match=r"within 0\.3 s: hangs\n.*\"this\""):
        upstream.solve(problems, timeout=0.1)


def test_a_problem_that_says_how_long_it_takes_has_so_long(tmp_path: Path) -> None:
    upstream = Upstream(program(tmp_path), patience=0.1)

    with pytest.raises(NoAnswerError, match=r"within 0\.4 s"):
        upstream.solve([{"id": "hangs", "timeoutMs": 100, "repeat": 2}], timeout=100)


def test_a_problem_on_which_upstreams_program_breaks_down_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoAnswerError, match="ended with status 3, and did not answer: breaks"):
        Upstream(program(tmp_path)).solve([{"id": "breaks"}, {"id": "two"}])
