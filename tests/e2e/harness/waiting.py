"""Waiting for a condition with a deadline. Tests and the harness use it wherever they would otherwise sleep.

It must not be used to measure time: the pauses between two looks are part of what it returns after.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST_PAUSE = 0.02  # seconds; most conditions of a local control plane hold within 0.1 s
LONGEST_PAUSE = 0.5  # a kubectl call costs about 0.1 s of CPU, so a long wait looks seldom

T = TypeVar("T")


class NotInTimeError(AssertionError):
    """A condition did not hold before the deadline; the text tells the last state seen."""


def wait_until(
    probe: Callable[[], T], what: str, *, timeout: float = 30.0, accept: Callable[[T], bool] = bool
) -> T:
    """Calls `probe` until `accept` holds for its answer, and returns that answer.

    Args:
        probe: Looks at the state once. What it raises ends the wait.
        what: What is awaited, for the message.
        timeout: Seconds.
        accept: The condition; by default, that the answer is truthy.

    Raises:
        NotInTimeError: With the last answer, when the time is over.
    """
    deadline = time.monotonic() + timeout
    pause = FIRST_PAUSE
    while not accept(seen := probe()):
        if time.monotonic() >= deadline:
            raise NotInTimeError(f"not within {timeout:g} s: {what}; last seen: {seen!r}")
        time.sleep(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE)
    return seen
