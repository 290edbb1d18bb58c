"""Waiting for conditions: what is returned, and what a person reads when the time is over."""

from __future__ import annotations

import pytest

from tests.e2e.harness.waiting import NotInTimeError, wait_until


def test_first_accepted_answer_is_returned() -> None:
    answers = iter([0, 1, 2])

    assert wait_until(lambda: next(answers), "a number") == 1


def test_accept_decides_instead_of_truth() -> None:
    assert wait_until(lambda: None, "nothing", accept=lambda seen: seen is None) is None


def test_message_tells_condition_and_last_state() -> None:
    with pytest.raises(NotInTimeError, match=r"not within 0 s: pod Running; last seen: 'Pending'"):
        wait_until(lambda: "Pending", "pod Running", timeout=0, accept=lambda seen: seen == "Running")
