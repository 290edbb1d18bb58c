"""The model by which is proved that a problem has no solution: it agrees with trying everything, proves what is too much to try, and needs each of its rules."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.cel import default_compiler
from dra_operator.features import DEFAULT_1_37
from dra_operator.model import DeviceClass, Node, ResourceClaim, ResourceSlice, from_object
from dra_operator.testing import builders as make
from dra_operator.verification import Snapshot
from tests.bench import hard
from tests.conformance.problems import decode_problem
from tests.oracle.allocations.proofs import has_solution, snapshot_of
from tests.properties.assignments import Call
from tests.properties.exhaustive import Exhaustive, TooManyError
from tests.properties.modelled import RULES
from tests.properties.problems import TOPICS, problem
from tests.properties.satisfiable import Satisfiable, UndecidedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Json = dict[str, Any]

SEED = 11
COMPILER = default_compiler()


def calls(raw: Json) -> Iterator[Call]:
    """On each node."""
    asked = decode_problem(raw)
    return (Call(asked.claims, node, snapshot_of(asked, COMPILER)) for node in asked.nodes)


def tried(call: Call) -> bool | None:
    try:
        return Exhaustive(call, 1_000).solution() is not None
    except TooManyError:
        return None


@pytest.mark.parametrize("topic", sorted(name for name in TOPICS if name not in {"large", "limit"}))
def test_the_model_agrees_with_trying_everything(topic: str) -> None:
    """And its first solution obeys all rules: none is missing in it."""
    seen = set()
    for number in range(12):
        for call in calls(problem(SEED, number, frozenset({topic, "tight"} if number % 2 else {topic}))):
            exists = tried(call)
            model = Satisfiable(call)
            solved = model.solution() is not None
            seen.add(exists)
            assert exists in {solved, None}, f"{topic} {number}"
            assert model.refused == 0, f"{topic} {number}"

    assert {True, False} <= seen


@pytest.mark.parametrize("topic", ["capacity", "counters", "groups"])
def test_the_model_counts_what_is_taken_as_the_verifier_does(topic: str) -> None:
    for number in range(50):
        for call in calls(problem(SEED, number, frozenset({topic, "taken", "admin"}))):
            model = Satisfiable(call)
            solved = model.solution() is not None
            assert tried(call) in {solved, None}, number
            assert model.refused == 0, number


# --- what is too much to try


def call_of(devices: Sequence[Json], claims: Sequence[Json], spec: Json) -> Call:
    slices = hard.published(hard.DRIVER, devices, **spec)
    raw_class = make.device_class("gpu", driver=hard.DRIVER)
    snapshot = Snapshot(
        DEFAULT_1_37,
        [from_object(ResourceSlice, each) for each in slices],
        {"gpu": from_object(DeviceClass, raw_class)},
        COMPILER,
    )
    node = from_object(Node, make.node("n1"))
    return Call([from_object(ResourceClaim, each) for each in claims], node, snapshot)


def halves(devices: int, claims: int) -> hard.Hard:
    """Partitions of two sizes, as many as fill the cards, and some more."""
    found, spec = hard.parts(devices)
    requests = (
        hard.want("r", hard.has("size", 2), count=4 * devices - 1),
        hard.want("q", hard.has("size", 1), count=claims),
    )
    return found, [make.claim("c", *requests)], spec


def one_each(devices: int, claims: int) -> hard.Hard:
    """Claims of one device each."""
    return hard.plain(devices), [make.claim(f"c{at:02}", hard.want("r")) for at in range(claims)], {}


def looked_at(devices: int) -> hard.Hard:
    """As many devices as are wanted, and one that an earlier claim looks at."""
    looks = make.claim("a", hard.want("r", adminAccess=True))
    return hard.plain(devices), [looks, *one_each(devices, devices)[1]], {}


HARD: dict[str, tuple[hard.Hard, bool]] = {
    "32 claims on 31 devices": (one_each(31, 32), False),
    "12 claims on 12 devices": (one_each(12, 12), True),
    "12 claims on 12 devices after one that looks at one": (looked_at(12), False),
    "16 pairs with 15 NICs": (hard.pairs(16, 15, grouped=True), False),
    "31 shares of more than half on 30 devices": (hard.shares(30), False),
    "eight different boards of seven": (hard.distinct(32), False),
    "33 partitions of four cards": (hard.any_parts(4, 33), False),
    "32 partitions of four cards": (hard.any_parts(4, 32), True),
    "15 quarters and three eighths of four cards": (halves(4, 3), False),
    "15 quarters and two eighths of four cards": (halves(4, 2), True),
    "eight prioritized lists": (hard.lists(8), False),
}


@pytest.mark.parametrize("name", HARD)
def test_what_is_too_much_to_try_is_proved(name: str) -> None:
    asked, is_possible = HARD[name]
    model = Satisfiable(call_of(*asked))

    assert (model.solution() is not None) == is_possible
    assert model.refused == 0


def test_the_model_is_asked_where_there_is_too_much_to_try() -> None:
    raw = problem(SEED, 0, frozenset({"tight"}))

    assert has_solution(raw, COMPILER, most=0) == has_solution(raw, COMPILER)._replace(by_model=True)


# --- its rules


def drawn(*topics: str) -> Iterator[Call]:
    """Random problems of those topics."""
    return (call for number in range(40) for call in calls(problem(SEED, number, frozenset(topics))))


def too_many_for_a_claim() -> Iterator[Call]:
    requests = (hard.want(f"r{at}", count=17) for at in range(2))
    yield call_of(hard.plain(34), [make.claim("c", *requests)], {})


NEEDED: dict[str, Callable[[], Iterator[Call]]] = {
    "alternative": lambda: drawn("prioritized"),
    "count": lambda: drawn("match"),
    "all": lambda: drawn("all"),
    "limit": too_many_for_a_claim,
    "double": lambda: drawn("tight"),
    "admin-twice": lambda: drawn("admin"),
    "capacity": lambda: drawn("capacity", "tight"),
    "counters": lambda: iter([call_of(*hard.any_parts(1, 9))]),
    "groups": lambda: drawn("groups", "tight"),
    "constraint": lambda: drawn("match"),
}
"""By rule, calls for which a model without it has solutions that break it."""


def test_each_rule_of_the_model_is_tried() -> None:
    assert NEEDED.keys() == RULES.keys()


@pytest.mark.parametrize("rule", NEEDED)
def test_without_a_rule_the_verifier_refuses_a_solution(rule: str) -> None:
    """So that a rule which is not said any more is noticed by the tests in which it refuses none."""
    for call in NEEDED[rule]():
        whole, less = Satisfiable(call), Satisfiable(call, frozenset({rule}), attempts=1)
        whole.solution()
        assert whole.refused == 0
        with contextlib.suppress(UndecidedError):
            less.solution()
        if less.refused:
            return
    pytest.fail(f"nothing hangs on {rule}")
