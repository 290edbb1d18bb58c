"""The work queue: one pass for many changes, never two passes at once, back-off per key."""

from __future__ import annotations

import asyncio

import pytest

from dra_operator.controllers.workqueue import QueueClosed, WorkQueue
from dra_operator.kube.timing import Backoff

from .clocks import HandClock

NO_JITTER = Backoff(base=1.0, cap=8.0, uniform=lambda _, high: high)


def make() -> tuple[WorkQueue, HandClock]:
    clock = HandClock()
    return WorkQueue(clock, NO_JITTER), clock


def is_idle(queue: WorkQueue) -> bool:
    """Whether nothing waits, nothing is processed, and no timer runs."""
    return not (len(queue) or queue.delayed or queue._processing)


async def test_many_changes_of_a_waiting_key_are_one_pass() -> None:
    queue, _ = make()
    for _ in range(5):
        queue.add("a")
    assert await queue.get() == "a"
    queue.done("a")
    assert len(queue) == 0
    assert is_idle(queue)


async def test_keys_leave_in_the_order_in_which_they_came() -> None:
    queue, _ = make()
    for key in ("b", "a", "c", "a"):
        queue.add(key)
    assert [await queue.get() for _ in range(3)] == ["b", "a", "c"]


async def test_a_change_during_a_pass_gives_one_more_pass_afterwards() -> None:
    queue, _ = make()
    queue.add("a")
    await queue.get()
    queue.add("a")
    queue.add("a")
    queue.add("b")
    assert await queue.get() == "b"  # "a" is being processed: nobody else may have it
    queue.done("a")
    assert await queue.get() == "a"
    queue.done("a")
    queue.done("b")
    assert is_idle(queue)


async def test_a_waiting_worker_is_woken_by_a_key() -> None:
    queue, _ = make()
    worker = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    assert await worker == "a"


async def test_a_delayed_key_comes_when_its_time_has_come() -> None:
    queue, clock = make()
    queue.add_after("a", 5.0)
    clock.advance(4.9)
    assert len(queue) == 0
    clock.advance(0.1)
    assert await queue.get() == "a"


async def test_the_earliest_of_several_delays_counts() -> None:
    queue, clock = make()
    queue.add_after("a", 5.0)
    queue.add_after("a", 2.0)
    queue.add_after("a", 9.0)
    clock.advance(2.0)
    assert await queue.get() == "a"
    queue.done("a")
    clock.advance(10.0)
    assert is_idle(queue)


async def test_no_delay_is_now() -> None:
    queue, _ = make()
    queue.add_after("a", 0.0)
    assert await queue.get() == "a"


async def test_failures_in_a_row_wait_longer_up_to_the_cap_and_success_starts_anew() -> None:
    queue, _ = make()
    assert [queue.retry("a") for _ in range(5)] == [1.0, 2.0, 4.0, 8.0, 8.0]
    assert queue.retry("b") == 1.0
    queue.forget("a")
    assert queue.retry("a") == 1.0


async def test_a_pass_that_comes_to_no_decision_forgets_no_failures() -> None:
    queue, _ = make()
    queue.retry("a")
    queue.undecided("a")
    queue.forget("a")
    assert queue.retry("a") == 2.0
    queue.forget("a")
    assert queue.retry("a") == 1.0


async def test_the_server_may_ask_for_more_patience() -> None:
    queue, _ = make()
    assert queue.retry("a", at_least=7.0) == 7.0


async def test_what_a_failing_pass_itself_changes_does_not_cut_its_back_off_short() -> None:
    queue, clock = make()
    queue.add("a")
    await queue.get()
    queue.add("a")  # the feed told of the pass's own write
    queue.retry("a")
    queue.done("a")
    assert (len(queue), queue.is_resting("a")) == (0, True)
    clock.advance(1.0)
    assert (len(queue), queue.is_resting("a")) == (1, False)


async def test_a_change_from_elsewhere_brings_the_next_look_forward_but_not_to_at_once() -> None:
    queue, clock = make()
    queue.add("a")
    await queue.get()
    queue.retry("a", at_least=8.0)
    queue.retry("b")
    queue.done("a")
    queue.add("b")
    assert len(queue) == 0
    clock.advance(0.125)
    assert await queue.get() == "b"
    queue.done("b")
    clock.advance(7.8)
    queue.add("a")  # the server has asked for patience
    assert len(queue) == 0
    clock.advance(0.1)
    assert await queue.get() == "a"
    queue.done("a")
    clock.advance(60.0)
    assert is_idle(queue)  # the look that came early was the one that was due


async def test_keys_that_fail_and_disturb_each_other_without_end_are_looked_at_within_bounds() -> None:
    queue, clock = make()
    passes = 0
    queue.add("a")
    for _ in range(10_000):
        while len(queue):
            key = await queue.get()
            passes += 1
            queue.retry(key)
            queue.done(key)
            queue.add("b" if key == "a" else "a")
        clock.advance(0.01)
    assert passes <= 2 * 100 + 10  # in 100 s, the cap is 8 s


def test_jitter_spreads_half_of_the_wait() -> None:
    assert Backoff(base=1.0, uniform=lambda low, _: low).delay(3) == 2.0
    assert Backoff(base=1.0, uniform=lambda low, high: (low + high) / 2).delay(3) == 3.0


def test_a_key_that_fails_for_days_does_not_overflow() -> None:
    assert Backoff(cap=30.0, uniform=lambda _, high: high).delay(100_000) == 30.0


async def test_closing_ends_waiting_workers_and_drops_what_waits() -> None:
    queue, clock = make()
    worker = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add_after("later", 1.0)
    queue.close()
    with pytest.raises(QueueClosed):
        await worker
    queue.add("a")
    clock.advance(5.0)
    with pytest.raises(QueueClosed):
        await queue.get()


async def test_how_long_keys_wait_is_known() -> None:
    queue, clock = make()
    assert (queue.oldest, queue.delayed) == (0, 0)
    queue.add("a")
    clock.advance(2)
    queue.add("b")
    queue.add("a")  # again: it has been waiting since the first time
    clock.advance(1)
    assert queue.oldest == 3
    await queue.get()
    assert (queue.waited("a"), queue.oldest) == (3, 1)


async def test_a_key_that_was_added_during_its_pass_waits_from_the_end_of_the_pass() -> None:
    queue, clock = make()
    queue.add("a")
    await queue.get()
    queue.add("a")
    clock.advance(5)
    queue.done("a")
    clock.advance(1)
    await queue.get()
    assert queue.waited("a") == 1


async def test_keys_that_wait_for_a_moment_are_counted_apart() -> None:
    queue, clock = make()
    queue.add_after("a", 10)
    assert (len(queue), queue.delayed, queue.oldest) == (0, 1, 0)
    clock.advance(10)
    assert (len(queue), queue.delayed) == (1, 0)
