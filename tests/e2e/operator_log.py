"""What the operator's log may not hold after a test, and showing its end when tests failed."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    from tests.e2e.harness.operator_process import OperatorProcess

BAD_WORDS = ("Traceback", "Forbidden", "forbidden", "Task exception was never retrieved", "never awaited")
TAIL_LINES = 60


def complaints(log: str) -> list[str]:
    """Lines that tell of a fault of the operator: an exception that nobody expected, or a right that it lacks."""
    return [line for line in log.splitlines() if any(word in line for word in BAD_WORDS)]


def tail(log: str) -> str:
    """The last lines."""
    return "\n".join(log.splitlines()[-TAIL_LINES:])


@contextmanager
def told_on_failure(session: pytest.Session) -> Iterator[list[OperatorProcess]]:
    """Prints the end of the log of each operator in the list, if a test fails inside the block."""
    before = session.testsfailed
    running: list[OperatorProcess] = []
    try:
        yield running
    finally:
        if session.testsfailed > before:
            for operator in running:
                print(f"end of {operator.log}:\n{tail(operator.log_text())}", flush=True)
