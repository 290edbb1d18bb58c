"""The lag of a feed is known from what it brings after an answer has told it already; a feed that brings nothing is found out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dra_operator.cluster import Cluster
from dra_operator.controllers.echoes import MEMORY, OVERDUE_SECONDS, Echoes
from dra_operator.metrics import FEED_LAG, Metrics
from tests.unit.cluster.build import claim, pod

from .clocks import HandClock

if TYPE_CHECKING:
    from collections.abc import Callable

CLAIM = "ResourceClaim"


class Heard:
    """Echoes over a model, and a clock."""

    def __init__(self) -> None:
        self.cluster, self.metrics, self.clock = Cluster(), Metrics(), HandClock()
        self.echoes = Echoes(self.cluster, self.metrics, self.clock)

    def lag(self, kind: str = CLAIM) -> tuple[float, float]:
        """How many lags, and their sum."""
        return (
            self.metrics.value(FEED_LAG, kind, suffix="_count"),
            self.metrics.value(FEED_LAG, kind, suffix="_sum"),
        )

    def overdue(self, kind: str = CLAIM, *, heard: bool = True) -> float:
        """With a server that answered just now, or never."""
        at = self.clock.monotonic() if heard else -1.0
        return self.echoes.overdue(kind, lambda _: at)


def test_the_time_until_the_watch_brings_an_answer_is_the_lag() -> None:
    here = Heard()
    here.echoes.assume(claim("c", 5))
    here.clock.advance(2)
    here.echoes.heard(claim("c", 4))  # an older event is not it
    here.clock.advance(1)
    here.echoes.heard(claim("c", 5))
    assert here.lag() == (1, 3)


def test_a_later_version_is_as_good() -> None:
    here = Heard()
    here.echoes.assume(claim("c", 5))
    here.echoes.heard(claim("c", 9))
    assert here.lag() == (1, 0)


def test_several_answers_in_a_row_are_measured_from_the_first() -> None:
    here = Heard()
    here.echoes.assume(claim("c", 5))
    here.clock.advance(2)
    here.echoes.assume(claim("c", 6))
    here.clock.advance(1)
    here.echoes.heard(claim("c", 6))
    assert here.lag() == (1, 3)
    assert here.overdue() == 0


def test_an_answer_that_the_watch_has_overtaken_owes_nothing() -> None:
    here = Heard()
    here.cluster.apply("ADDED", claim("c", 5))
    here.echoes.assume(claim("c", 5))
    here.clock.advance(OVERDUE_SECONDS + 1)
    assert (here.lag(), here.overdue()) == ((0, 0), 0)


def test_a_version_that_never_comes_makes_the_feed_overdue() -> None:
    here = Heard()
    here.echoes.assume(claim("c", 5))
    here.clock.advance(OVERDUE_SECONDS - 1)
    assert here.overdue() == 0
    here.clock.advance(2)
    assert here.overdue() == OVERDUE_SECONDS + 1
    assert here.overdue("Pod") == 0
    here.echoes.heard(claim("c", 5))
    assert here.overdue() == 0


def test_nothing_is_overdue_while_the_server_does_not_answer() -> None:
    here = Heard()
    here.echoes.assume(claim("c", 5))
    here.clock.advance(10 * OVERDUE_SECONDS)
    assert here.overdue(heard=False) == 0


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda here: here.echoes.apply("DELETED", claim("c", 5)), id="by an answer"),
        pytest.param(lambda here: here.cluster.replace(CLAIM, [], "9"), id="by a list of the sync guard"),
        pytest.param(
            lambda here: here.cluster.apply("ADDED", claim("c", 9, uid="another")),
            id="replaced by a namesake",
        ),
    ],
)
def test_an_object_that_went_is_not_waited_for(end: Callable[[Heard], None]) -> None:
    here = Heard()
    here.echoes.assume(claim("c", 5))
    end(here)
    here.clock.advance(OVERDUE_SECONDS + 1)
    assert here.overdue() == 0


def test_a_list_of_our_own_feed_pays_what_it_owed_and_one_of_the_guard_does_not() -> None:
    here = Heard()
    here.echoes.assume(pod("p", 5))
    here.echoes.assume(pod("later", 12))
    here.echoes.assume(claim("c", 5))
    here.echoes.listed("Pod", "10")
    here.echoes.listed(CLAIM, "10")
    here.clock.advance(OVERDUE_SECONDS + 1)
    assert here.overdue(CLAIM) > 0
    here.echoes.heard(pod("later", 12))
    assert here.overdue("Pod") == 0


def test_memory_is_bounded() -> None:
    here = Heard()
    for number in range(MEMORY + 10):
        here.echoes.assume(pod(f"p{number}", number + 1))
    assert len(here.echoes._awaited) == MEMORY
