"""A quiet wait that lasts too long is told."""

from __future__ import annotations

from dra_operator.controllers.patience import MARGIN, Patience
from dra_operator.placement import CLAIM_MISSING, Release, Wait

from .clocks import HandClock

LAG = 5.0
LOST = Wait(CLAIM_MISSING, "the claim is not there", quiet=True, told_after=LAG)
OTHER = Wait("ClaimNotReady", "not created yet", quiet=True)


def test_a_claim_that_lags_is_nothing_to_tell_of_and_is_asked_for_again() -> None:
    clock = HandClock()
    patience = Patience(clock)

    assert patience.judge("u", LOST) == (LOST, LAG + MARGIN)

    clock.advance(LAG - 1)

    assert patience.judge("u", LOST) == (LOST, 0.0)


def test_a_claim_that_stays_away_is_told_of() -> None:
    clock = HandClock()
    patience = Patience(clock)
    patience.judge("u", LOST)
    clock.advance(LAG)

    assert patience.judge("u", LOST) == (Wait(CLAIM_MISSING, "the claim is not there"), 0.0)


def test_every_other_answer_starts_the_time_anew() -> None:
    clock = HandClock()
    patience = Patience(clock)
    for answer in (LOST, Release()):
        patience.judge("u", answer)
    clock.advance(LAG)

    assert patience.judge("u", LOST) == (LOST, LAG + MARGIN)


def test_another_state_has_a_time_of_its_own() -> None:
    clock = HandClock()
    patience = Patience(clock)
    patience.judge("u", Wait("TemplateMissing", "no template", quiet=True, told_after=LAG))
    clock.advance(LAG - 1)

    assert patience.judge("u", LOST) == (LOST, LAG + MARGIN)


def test_other_quiet_waits_stay_quiet() -> None:
    clock = HandClock()
    patience = Patience(clock)
    patience.judge("u", OTHER)
    clock.advance(10 * LAG)

    assert patience.judge("u", OTHER) == (OTHER, 0.0)
