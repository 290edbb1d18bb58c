"""Fairness between namespaces: whoever takes much of the time goes behind the others, and no longer than that is right."""

from __future__ import annotations

import asyncio
import contextlib

from dra_operator.controllers.debts import FREE, PAID, TURN, WORST, Debts
from dra_operator.controllers.turns import ENOUGH, HELD, Turns

from .clocks import HandClock


def test_usual_work_is_owed_by_nobody() -> None:
    debts = Debts(HandClock())
    for _ in range(1000):
        debts.charge("team", FREE, 0.05)
    assert debts.places("team") == 0
    assert debts.rest("team") == 0.0


def test_much_work_puts_a_namespace_behind_all_others_until_it_is_paid() -> None:
    clock = HandClock()
    debts = Debts(clock)
    debts.charge("greedy", TURN, 0.3)
    debts.charge("greedy", TURN, 0.3)
    assert debts.places("other") == 0 < debts.places("greedy")
    before = debts.places("greedy")
    clock.advance(TURN / PAID)
    assert 0 < debts.places("greedy") < before
    clock.advance(TURN / PAID)
    assert debts.places("greedy") == 0


def test_debts_end_in_bounded_time() -> None:
    clock = HandClock()
    debts = Debts(clock)
    for _ in range(10 * WORST):
        debts.charge("greedy", TURN, 0.3)
    clock.advance(WORST * TURN / PAID + 1)
    assert debts.places("greedy") == 0


def test_debtors_rest_for_as_long_as_the_last_of_them_took_and_others_do_not() -> None:
    clock = HandClock()
    debts = Debts(clock)
    debts.charge("greedy", 2 * TURN, 0.5)
    assert debts.rest("greedy") == 0.5
    assert debts.rest("other") == 0.0
    clock.advance(0.6)
    assert debts.rest("greedy") == 0.0


async def test_a_turn_of_the_loop_has_one_long_decision() -> None:
    turns, log = Turns(HandClock()), []

    async def decide(name: str) -> None:
        await turns.mine()
        turns.took(ENOUGH + 1)
        log.append(name)

    async def tick() -> None:
        while sum(name != "-" for name in log) < 3:
            log.append("-")
            await asyncio.sleep(0)

    await asyncio.gather(tick(), *(decide(name) for name in "abc"))
    order = "".join(log)
    assert [name for name in order if name != "-"] == ["a", "b", "c"]
    assert "ab" not in order
    assert "bc" not in order


async def test_short_decisions_share_a_turn() -> None:
    turns, log = Turns(HandClock()), []

    async def decide() -> None:
        await turns.mine()
        turns.took(1)
        log.append("decided")

    asyncio.get_running_loop().call_soon(
        lambda: asyncio.get_running_loop().call_soon(log.append, "next turn")
    )
    await asyncio.gather(*(decide() for _ in range(5)))
    assert log[:5] == ["decided"] * 5


async def test_who_ranks_behind_a_decision_that_a_thread_works_for_waits_for_it() -> None:
    turns, log = Turns(HandClock()), []
    thread = asyncio.Event()

    async def first() -> None:
        number = turns.number()
        await turns.mine((0, 5), number)
        with turns.held((0, 5), number):
            await thread.wait()
        await turns.mine((0, 5), number)
        log.append("first")

    async def other(name: str, rank: tuple[int, int]) -> None:
        await turns.mine(rank)
        log.append(name)
        if name == "before":
            thread.set()

    await asyncio.gather(first(), other("equal", (0, 5)), other("behind", (0, 6)), other("before", (0, 4)))
    assert log == ["before", "first", "equal", "behind"]


async def test_who_waits_for_a_turn_goes_by_rank_and_among_equals_as_they_came_whoever_wakes_first() -> None:
    turns, log = Turns(HandClock()), []
    numbers = {name: turns.number() for name in ("first", "second", "third")}

    async def decide(name: str, rank: tuple[int, ...] = (1,), *, passes: int = 0) -> None:
        for _ in range(passes):
            await asyncio.sleep(0)
        await turns.mine(rank, numbers.get(name))
        turns.took(ENOUGH + 1)
        log.append(name)

    async def several() -> None:
        """A decision of two turns: it keeps its place."""
        await turns.mine((1,), numbers["first"])
        turns.took(ENOUGH + 1)
        with turns.held((1,), numbers["first"]):
            await asyncio.sleep(0)
        await decide("first")

    await asyncio.gather(
        several(), decide("third"), decide("second", passes=1), decide("urgent", (0,), passes=1)
    )
    assert log == ["urgent", "first", "second", "third"]


async def test_who_gives_up_waiting_for_a_turn_keeps_nobody() -> None:
    turns = Turns(HandClock())
    turns.took(ENOUGH + 1)
    first = asyncio.create_task(turns.mine((0,)))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])

    await asyncio.wait_for(turns.mine((1,)), 1)


async def test_nobody_waits_long_for_a_thread() -> None:
    clock = HandClock()
    turns, log = Turns(clock), []
    with turns.held((0,)):
        waiting = asyncio.create_task(turns.mine((1,)))
        waiting.add_done_callback(lambda _: log.append("decides"))
        await asyncio.sleep(0)
        assert not log
        clock.advance(HELD)
        await waiting
    assert not waiting.cancelled()


async def test_a_thread_that_fails_holds_nobody() -> None:
    turns = Turns(HandClock())
    with contextlib.suppress(ValueError), turns.held((0,)):
        raise ValueError
    await turns.mine((1,))
