"""Putting a conformance case to the allocator and comparing the answer (pass rule: oracle 1.2, 1.3)."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from dra_operator.allocator import Allocator, Inputs, Options, SliceList, Why
from dra_operator.errors import DraError, FeatureUnsupported, NodeFailure, NoSolution, SearchLimitReached
from dra_operator.model import to_object
from dra_operator.quantity import Quantity

from .quantities import prints_wrongly_upstream

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dra_operator.allocator import Rejection, RequestRef
    from dra_operator.cel.interface import CelCompiler
    from dra_operator.model import AllocationResult, DeviceId, PoolId

    from .problems import Case, Expected, Json, Problem


class NeedsListener:
    """A reporter that notes which features that are not built an allocation ran into."""

    def __init__(self) -> None:
        self.gates: set[str] = set()

    def pool(self, pool: PoolId, rejection: Rejection) -> None:
        """See Reporter."""

    def rejected(self, request: RequestRef, device: DeviceId, rejection: Rejection) -> None:
        """See Reporter."""
        del request, device
        if rejection.why is Why.NOT_BUILT:
            self.gates.add(rejection.detail)

    def failed(self, request: RequestRef, rejection: Rejection) -> None:
        """See Reporter."""

    def backtracked(self, request: RequestRef, device: DeviceId) -> None:
        """See Reporter."""

    def ended(self, steps: int, *, solved: bool) -> None:
        """See Reporter."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the allocator said; outcomes as in oracle 1.2, and `gave up` for a reached step limit."""

    outcome: str
    results: tuple[AllocationResult, ...] = ()
    error: str = ""
    per_node: bool = False
    steps: int = 0
    looks: int = 0
    needs: frozenset[str] = frozenset()

    def __str__(self) -> str:
        if self.outcome == "results":
            return "results " + json.dumps([to_object(result) for result in self.results])
        return self.outcome + (f" ({self.error}; perNode={self.per_node})" if self.error else "")


class Work(NamedTuple):
    """What an answer took: our search steps and looks at devices, and upstream's steps."""

    steps: int = 0
    looks: int = 0
    upstream: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """Passed, if both are empty; skipped, if it needs something. `work` is known where upstream's steps are, and does not make two verdicts differ."""

    difference: str = ""
    needs: frozenset[str] = frozenset()
    work: Work | None = field(default=None, compare=False)


@dataclass(slots=True)
class Tally:
    """Counts of a run; `work` sums up the cases whose steps are compared."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    needs: set[str] = field(default_factory=set)
    compared: int = 0
    work: Work = field(default_factory=Work)

    def add(self, name: str, found: Verdict, say: Callable[[str], object]) -> None:
        """Count a case; a line for one that fails."""
        if found.work is not None and not found.needs:
            self.compared += 1
            self.work = Work(*map(sum, zip(self.work, found.work, strict=True)))
        if found.needs:
            self.skipped += 1
            self.needs |= found.needs
        elif found.difference:
            self.failed += 1
            say(f"FAIL {name}: {found.difference}")
        else:
            self.passed += 1

    def lines(self) -> list[str]:
        """The end of the report."""
        needed = [f"skipped cases need: {', '.join(sorted(self.needs))}"] if self.needs else []
        taken = (
            [
                f"search steps in {self.compared} cases: {self.work.steps}, upstream's {self.work.upstream}; looks at devices: {self.work.looks}"
            ]
            if self.compared
            else []
        )
        return [*needed, *taken, f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"]


def ask(problem: Problem, compiler: CelCompiler, options: Options) -> Answer:
    """Run the allocator, node after node until the first result or error."""
    listener = NeedsListener()
    inputs = Inputs(
        features=problem.features,
        classes={each.metadata.name: each for each in problem.classes},
        slices=SliceList(problem.slices),
        allocated=problem.allocated,
        selectors=compiler,
    )
    allocator = Allocator(inputs, options, listener)
    outcome: dict[str, Any] = {"outcome": "none"}
    for node in problem.nodes:
        try:
            outcome = {"outcome": "results", "results": allocator.allocate(node, problem.claims)}
        except NoSolution:
            continue
        except SearchLimitReached as error:
            outcome = {"outcome": "gave up", "error": str(error)}
        except FeatureUnsupported as error:
            listener.gates.add(error.feature)
            outcome = {"outcome": "error", "error": str(error)}
        except DraError as error:
            outcome = {"outcome": "error", "error": str(error), "per_node": isinstance(error, NodeFailure)}
        break
    return Answer(steps=allocator.steps, looks=allocator.looks, needs=frozenset(listener.gates), **outcome)


def options_for(problem: Problem, max_steps: int | None = None) -> Options:
    """Upstream's behaviour, of the copy that the problem names."""
    if max_steps is None:
        return Options(upstream_0_37=True, upstream_experimental=problem.channel == "experimental")
    return Options(True, problem.channel == "experimental", max_steps=max_steps)


def run(
    cases: Sequence[Case],
    compiler: CelCompiler,
    say: Callable[[str], object],
    max_steps: int | None = None,
) -> Tally:
    """Run cases as upstream 0.37 would answer them; one line for each that fails."""
    tally = Tally()
    for case in cases:
        tally.add(case.id, verdict(case, compiler, max_steps), say)
    return tally


def verdict(case: Case, compiler: CelCompiler, max_steps: int | None = None) -> Verdict:
    """Run one case."""
    if case.expected.outcomes <= {"timeout", "unsupported"}:
        return Verdict(
            needs=frozenset({f"an answer of upstream's (it has {'/'.join(case.expected.outcomes)})"})
        )
    before = case.problem.fingerprint()
    answer = ask(case.problem, compiler, options_for(case.problem, max_steps or _limit(case)))
    if case.problem.fingerprint() != before:
        return Verdict("the allocator changed its inputs")
    work = Work(answer.steps, answer.looks, case.steps) if case.steps is not None else None
    if answer.needs:
        return Verdict(needs=answer.needs)
    return Verdict(difference(case.expected, answer) or _step_difference(work), work=work)


def _limit(case: Case) -> int:
    """The product's limit, or what upstream, which has none, needed for its answer."""
    return max(Options().max_steps or 0, case.steps or 0)


def _step_difference(work: Work | None) -> str:
    """No search may take more steps than upstream's."""
    if work is None or work.steps <= work.upstream:
        return ""
    return f"right, but after {work.steps} search steps, upstream takes {work.upstream}"


def difference(expected: Expected, answer: Answer) -> str:
    """What is wrong with an answer; empty when nothing is."""
    if answer.outcome not in expected.outcomes:
        return f"expected {_expectation(expected)}, got {answer}"
    if answer.outcome == "error":
        return _error_difference(expected, answer)
    if answer.outcome == "results" and not _results_match(
        expected, [to_object(each) for each in answer.results]
    ):
        return f"expected {_expectation(expected)}, got {answer}"
    return ""


def _expectation(expected: Expected) -> str:
    outcome = " or ".join(sorted(expected.outcomes))
    if expected.devices is not None:
        return f"{outcome} {list(expected.devices)}"
    if expected.results:
        return f"{outcome} {json.dumps(expected.results)}"
    texts = "".join(f" with {text!r}" for text in expected.error_contains)
    return outcome + texts + (f" (perNode={expected.per_node})" if expected.per_node is not None else "")


def _error_difference(expected: Expected, answer: Answer) -> str:
    missing = [text for text in expected.error_contains if text not in answer.error]
    if missing:
        return f"expected an error with {missing}, got {answer}"
    if expected.per_node not in {None, answer.per_node}:
        return f"expected {_expectation(expected)}, got {answer}"
    return ""


def comparable(results: Sequence[Json]) -> list[Json]:
    """Results as they are compared: of share ids only that there is one (oracle 1.2), quantities by amount, as upstream prints some wrongly."""
    found: list[Json] = copy.deepcopy(list(results))
    for result in found:
        for device in result.get("devices", {}).get("results") or ():
            if device.get("shareID"):
                device["shareID"] = "some"
            amounts = device.get("consumedCapacity") or {}
            amounts.update({name: _amount(amount) for name, amount in amounts.items()})
    return found


def _amount(text: str) -> str:
    quantity = Quantity.parse(text)
    while prints_wrongly_upstream(quantity):
        quantity = Quantity(quantity.nano // 10**21)
    return str(quantity.nano)


def _results_match(expected: Expected, actual: list[Json]) -> bool:
    if expected.devices is not None:
        return list(expected.devices) == [
            (entry["request"], entry["device"])
            for result in actual
            for entry in result.get("devices", {}).get("results", ())
        ]
    theirs, ours = comparable(expected.results), comparable(actual)
    if not expected.matches:
        return [_plain(each) for each in theirs] == [_plain(each) for each in ours]
    return _pair_up(list(zip(theirs, expected.matches, strict=True)), ours)


def _pair_up(wanted: list[tuple[Json, str]], actual: list[Json]) -> bool:
    """Claims may come in any order (oracle 1.3)."""
    if not wanted:
        return not actual
    (result, match), rest = wanted[0], wanted[1:]
    return any(
        _same(result, each, match) and _pair_up(rest, actual[:index] + actual[index + 1 :])
        for index, each in enumerate(actual)
    )


def _same(expected: Json, actual: Json, match: str) -> bool:
    if match == "equal":
        return bool(_plain(expected) == _plain(actual))
    if actual.get("devices", {}).get("config"):
        return False
    return bool(_bag(_plain(expected)) == _bag(_plain(actual)))


def _plain(value: Any) -> Any:
    """Nil, absent and empty are equal in upstream's comparisons; opaque parameters are compared with the rest."""
    if isinstance(value, dict):
        plain = {key: _plain(each) for key, each in value.items()}
        return {key: each for key, each in plain.items() if each not in (None, [], {}, "")}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def _bag(value: Any) -> Any:
    """Lists without their order."""
    if isinstance(value, dict):
        return {key: _bag(each) for key, each in value.items()}
    if isinstance(value, list):
        return sorted((_bag(each) for each in value), key=lambda each: json.dumps(each, sort_keys=True))
    return value
