"""Own cases as data: each as upstream 0.37 answers it; those of the allocator as the product does, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dra_operator.allocator import Options
from dra_operator.cel import default_compiler
from dra_operator.model import AllocationResult, from_object
from tests.oracle.allocations.proofs import broken

from .lines import Judge
from .problems import Case, Expected, UnknownCase, decode_case, own_lines
from .running import Answer, Verdict, ask, difference, run, verdict

if TYPE_CHECKING:
    from dra_operator.cel.interface import CelCompiler

    from .problems import Json

LINES = [raw for _, raw in own_lines()]
CASES = [decode_case(raw, raw["id"]) for raw in LINES if "claims" in raw]
OTHERS = [raw for raw in LINES if "claims" not in raw]

RAW = {
    "id": "one",
    "expect": {"outcome": "none"},
    "node": {"metadata": {"name": "n"}},
    "claims": [{"metadata": {"name": "c"}, "spec": {"devices": {"requests": []}}}],
}


@pytest.fixture(scope="module")
def compiler() -> CelCompiler:
    return default_compiler()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_upstreams_answer(case: Case, compiler: CelCompiler) -> None:
    assert verdict(case, compiler) == Verdict()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_products_answer(case: Case, compiler: CelCompiler) -> None:
    """The same, but for the scopes of errors."""
    before = case.problem.fingerprint()
    answer = ask(case.problem, compiler, Options())
    assert difference(case.expected_product or case.expected, answer) == ""
    assert case.problem.fingerprint() == before


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_what_the_product_gives_obeys_all_rules(case: Case, compiler: CelCompiler) -> None:
    """By the verifier, which knows nothing of the allocator."""
    answer = ask(case.problem, compiler, Options())
    told = broken(case.problem, answer.results, compiler) if answer.outcome == "results" else []
    assert list(map(str, told)) == []


@pytest.mark.parametrize("raw", OTHERS, ids=lambda raw: raw["id"])
def test_upstreams_answer_about_something_else(raw: Json) -> None:
    told: list[str] = []
    judge = Judge(told.append)
    judge.take(raw["id"], raw)
    assert (told, judge.tally.passed) == ([], 1)


def test_every_case_says_which_rule_it_tells() -> None:
    assert [raw["id"] for raw in LINES if not ("alloc " in raw["note"] or "oracle " in raw["note"])] == []


# --- the runner itself


def test_a_case_that_needs_what_is_not_built_is_skipped_and_named(compiler: CelCompiler) -> None:
    device = {"name": "d", "nodeAllocatableResourceMappings": {"cpu": {"newer": "1"}}}
    slice_ = {
        "metadata": {"name": "s"},
        "spec": {
            "driver": "k.test",
            "allNodes": True,
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [device],
        },
    }
    request = {
        "name": "r",
        "exactly": {"deviceClassName": "k", "allocationMode": "ExactCount", "count": 1},
    }
    raw = {
        **RAW,
        "classes": [{"metadata": {"name": "k"}}],
        "slices": [slice_],
        "claims": [{"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}}],
    }
    lines: list[str] = []
    tally = run([decode_case(raw, "x")], compiler, lines.append)
    assert tally.lines() == [
        "skipped cases need: DRANodeAllocatableResources",
        "0 passed, 0 failed, 1 skipped",
    ]
    assert lines == []


def test_a_wrong_answer_fails_with_a_line(compiler: CelCompiler) -> None:
    lines: list[str] = []
    tally = run([decode_case(RAW, "x")], compiler, lines.append)
    assert (tally.failed, lines) == (1, ['FAIL one: expected none, got results [{"devices": {}}]'])


def test_more_steps_than_upstream_takes_are_a_failure(compiler: CelCompiler) -> None:
    """A right answer all the same (alloc I-7); fewer are welcome."""

    def lines(steps: int) -> list[str]:
        told: list[str] = []
        answer = {"outcome": "results", "results": [{"devices": {}}], "allocateOneInvocations": steps}
        ours = decode_case({"problem": RAW, "result": answer}, "x")
        return [*told, *run([ours], compiler, told.append).lines(), *told]

    counted = "search steps in 1 cases: 2, upstream's {}; looks at devices: 0"
    assert lines(2) == [counted.format(2), "1 passed, 0 failed, 0 skipped"]
    assert lines(3) == [counted.format(3), "1 passed, 0 failed, 0 skipped"]
    wrong = "FAIL x: right, but after 2 search steps, upstream takes 1"
    assert lines(1) == [counted.format(1), "0 passed, 1 failed, 0 skipped", wrong]


@pytest.mark.parametrize(
    ("told", "steps"),
    [
        ({"expect": {"allocateOneInvocations": 16}}, 16),
        ({"expect": {"allocateOneInvocations": 16, "allocateOneInvocationsByChannel": {"stable": 65}}}, 16),
        ({"expect": {"allocateOneInvocationsByChannel": {"incubating": 12, "stable": 14}}}, 12),
        ({"expect": {"allocateOneInvocationsByChannel": {"stable": 14}}}, None),
        (
            {
                "actual": {
                    "incubating": {"allocateOneInvocations": 7},
                    "stable": {"allocateOneInvocations": 9},
                }
            },
            7,
        ),
        (
            {
                "supportedChannels": ["experimental"],
                "actual": {
                    "incubating": {"outcome": "unsupported"},
                    "experimental": {"allocateOneInvocations": 8},
                },
            },
            8,
        ),
        ({"supportedChannels": ["stable"], "actual": {"stable": {"allocateOneInvocations": 9}}}, None),
        ({}, None),
    ],
)
def test_steps_are_those_of_the_copy_that_ours_follows(told: Json, steps: int | None) -> None:
    """Oracle 7 no. 12: counts of stable differ."""
    raw = {**RAW, **told, "expect": {"outcome": "none", **told.get("expect", {})}}
    assert decode_case(raw, "x").steps == steps


def test_steps_of_a_panic_or_of_the_stable_copy_do_not_count() -> None:
    answer = {"outcome": "none", "allocateOneInvocations": 0}
    for lost in ({"outcome": "panic"}, {"channel": "stable"}):
        assert decode_case({"problem": RAW, "result": {**answer, **lost}}, "x").steps is None
    hard = {"problem": RAW, "known": {"outcome": "none"}, "upstream": {"allocateOneInvocations": 5}}
    assert decode_case(hard, "x").steps == 5


def test_error_texts_and_scope_are_compared() -> None:
    expected = Expected(frozenset({"error"}), error_contains=("word",), per_node=True)
    assert difference(expected, Answer("error", error="a word", per_node=True)) == ""
    assert difference(expected, Answer("error", error="a word", per_node=False)) != ""
    assert difference(expected, Answer("error", error="else", per_node=True)) != ""


def test_a_panic_of_upstream_is_any_error() -> None:
    """Pass rule, oracle 1.2."""
    case = decode_case({"problem": RAW, "result": {"outcome": "panic", "error": "nil pointer"}}, "x")
    assert difference(case.expected, Answer("error", error="anything", per_node=True)) == ""


def test_unordered_results_are_a_bag_and_admit_no_config() -> None:
    """Pass rule, oracle 1.3."""

    def result(*names: str, **config: object) -> dict[str, object]:
        return {"devices": {"results": [{"request": "r", "device": name} for name in names], **config}}

    expect = {"outcome": "results", "results": [result("a", "b")], "resultMatch": ["unordered"]}
    expected = decode_case({**RAW, "expect": expect}, "x").expected
    swapped, configured = result("b", "a"), result("a", "b", config=[{"source": "FromClaim"}])
    answers = [Answer("results", (from_object(AllocationResult, raw),)) for raw in (swapped, configured)]
    assert [difference(expected, answer) == "" for answer in answers] == [True, False]


def test_other_lines_are_no_cases() -> None:
    with pytest.raises(UnknownCase, match=r"case of no kind .*expression"):
        decode_case({"expression": "true"}, "x")
