"""Workers: failures are counted, retried and never end the loop."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import pytest

from dra_operator.controllers.worker import Loop, level_of
from dra_operator.controllers.workqueue import WorkQueue
from dra_operator.errors import (
    ApiConflict,
    ApiError,
    ApiForbidden,
    ApiNotFound,
    ApiThrottled,
    ApiUnauthorized,
    ApiUnavailable,
    InvalidClaim,
    WorkLimitReached,
)
from dra_operator.kube.timing import Backoff
from dra_operator.logfields import fields_of, note
from dra_operator.metrics import QUEUE_WAIT, RECONCILE_DURATION, RECONCILE_ERRORS, RECONCILES, Metrics

from .clocks import HandClock

if TYPE_CHECKING:
    from collections.abc import Callable


class Script:
    """Fails as told, then closes the queue."""

    def __init__(self, queue: WorkQueue, *failures: Exception) -> None:
        self.queue = queue
        self.failures = list(failures)
        self.passes: list[str] = []

    async def reconcile(self, key: str) -> None:
        self.passes.append(key)
        if self.failures:
            raise self.failures.pop(0)
        self.queue.close()


async def run(
    *failures: Exception, after: Callable[[HandClock], None] = lambda clock: clock.advance(60)
) -> tuple[Script, Metrics]:
    clock = HandClock()
    queue = WorkQueue(clock, Backoff(uniform=lambda _, high: high))
    script, metrics = Script(queue, *failures), Metrics()
    loop = Loop("demo", queue, script.reconcile, metrics, workers=1)
    original = queue.retry

    def retry_at_once(key: str, at_least: float = 0.0) -> float:
        delay = original(key, at_least)
        after(clock)
        return delay

    queue.retry = retry_at_once  # type: ignore[method-assign]  # the test's clock moves on whenever a key has to wait
    queue.add("a")
    await loop.run()
    return script, metrics


async def test_a_pass_that_works_is_one_pass() -> None:
    script, metrics = await run()
    assert script.passes == ["a"]
    assert metrics.value(RECONCILES, "demo") == 1
    assert metrics.value(RECONCILE_DURATION, "demo", suffix="_count") == 1
    assert metrics.value(QUEUE_WAIT, "demo", suffix="_count") == 1
    assert metrics.value(RECONCILE_ERRORS, "demo", "ApiConflict") == 0


@pytest.mark.parametrize(
    "failure",
    [
        ApiConflict("stale", status=409),
        ApiUnavailable("refused"),
        InvalidClaim("spec", "bad"),
        ValueError("a bug"),
    ],
)
async def test_a_failed_pass_is_counted_by_its_error_and_repeated(failure: Exception) -> None:
    script, metrics = await run(failure)
    assert script.passes == ["a", "a"]
    assert metrics.value(RECONCILE_ERRORS, "demo", type(failure).__name__) == 1


async def test_retry_after_is_respected() -> None:
    waited: list[float] = []

    def note(clock: HandClock) -> None:
        waited.append(clock.timers[0].due - clock.elapsed)
        clock.advance(60)

    await run(ApiThrottled("slow down", retry_after=20.0), after=note)
    assert waited == [20.0]


def test_conflicts_and_objects_that_went_are_no_news_other_api_failures_are() -> None:
    failures = [
        ApiConflict("x"),
        ApiNotFound("x"),
        ApiError("x"),
        InvalidClaim("x", "y"),
        ApiUnauthorized("x"),
    ]
    assert [level_of(error) for error in failures] == [
        logging.DEBUG,
        logging.INFO,
        logging.WARNING,
        logging.INFO,
        logging.DEBUG,  # told once for all, by whoever sends the requests
    ]


def test_selectors_that_take_more_than_a_pass_are_no_news_here() -> None:
    assert level_of(WorkLimitReached(1)) == logging.DEBUG


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, bool]]:
    """Level and whether with a traceback, of what a worker has logged above DEBUG."""
    found = [record for record in caplog.records if record.levelno > logging.DEBUG]
    assert all("retry" in fields_of(record) for record in found)
    return [(record.levelname, bool(record.exc_info)) for record in found]


async def test_a_key_that_keeps_failing_in_one_way_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    refused = [ApiForbidden(f"no right to patch version {number}", status=403) for number in range(3)]
    await run(*refused, ApiConflict("stale"), refused[0], InvalidClaim("spec", "bad"), refused[0])
    assert lines(caplog) == [("WARNING", False), ("INFO", False), ("WARNING", False)]


async def test_a_pass_without_a_decision_makes_neither_news_nor_back_off_start_anew(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Every second pass has to leave the matter for later: what failed before has not been tried."""
    clock = HandClock()
    queue = WorkQueue(clock, Backoff(uniform=lambda _, high: high))
    delays: list[float] = []
    passes = 0

    async def reconcile(key: str) -> None:
        nonlocal passes
        passes += 1
        if passes == 12:
            queue.close()
        elif passes % 2:
            raise ApiForbidden("no such right")
        else:
            queue.undecided(key)
            queue.add_after(key, 1.0)

    done = queue.done

    def next_pass(key: str) -> None:
        done(key)
        if clock.timers:
            delays.append(min(timer.due for timer in clock.timers) - clock.elapsed)
            clock.advance(60)

    queue.done = next_pass  # type: ignore[method-assign]  # the test's clock moves on whenever a key has to wait
    queue.add("a")
    await Loop("demo", queue, reconcile, Metrics()).run()
    failed = delays[::2]
    assert failed == sorted(failed)
    assert failed[-1] > 10 * failed[0]
    assert lines(caplog) == [("WARNING", False)]


async def test_a_bug_is_told_each_time_and_its_traceback_once(caplog: pytest.LogCaptureFixture) -> None:
    await run(ValueError("a bug"), ValueError("a bug"), ValueError("another"))
    assert lines(caplog) == [("ERROR", True), ("ERROR", False), ("ERROR", True)]


async def test_what_a_pass_logs_has_its_controller_and_what_it_notes() -> None:
    queue = WorkQueue(HandClock())
    found: list[object] = []

    async def reconcile(key: str) -> None:
        await asyncio.sleep(0)
        note(pod=key)
        await asyncio.sleep(0)
        found.append(fields_of(logging.makeLogRecord({})))
        if len(found) == 2:
            queue.close()

    queue.add("a/b")
    queue.add("a/c")
    await Loop("demo", queue, reconcile, Metrics(), workers=2).run()
    assert found == [{"controller": "demo", "pod": "a/b"}, {"controller": "demo", "pod": "a/c"}]
