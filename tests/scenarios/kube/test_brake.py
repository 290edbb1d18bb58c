"""A server that is away is asked by one at a time; when it is back, all go on; nothing that is merely refused, or lost once, slows anybody."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from dra_operator.errors import ApiConflict, ApiThrottled, ApiUnavailable
from dra_operator.kube.brake import CAP, PROBE_SECONDS, SUSPICIOUS, Brake

if TYPE_CHECKING:
    from collections.abc import Callable

    from dra_operator.errors import ApiError

    from .scripted import Hands


class Asked:
    """A server as the brake sees it: requests come, each is answered or fails as is told now."""

    def __init__(self, brake: Brake, hands: Hands) -> None:
        self.brake = brake
        self.hands = hands
        self.times: list[float] = []
        self.failure: Callable[[], ApiError] | None = lambda: ApiUnavailable("away")

    async def request(self) -> None:
        async with self.brake.turn():
            self.times.append(self.hands.at)
            if self.failure is not None:
                raise self.failure()

    async def insist(self) -> None:
        """As a controller does with its key: until it succeeds."""
        while True:
            with suppress(ApiUnavailable):
                await self.request()
                return


@pytest.fixture
def asked(hands: Hands) -> Asked:
    return Asked(Brake(hands.timing()), hands)


async def fail(asked: Asked, times: int, error: type[Exception] = ApiUnavailable) -> None:
    for _ in range(times):
        with pytest.raises(error):
            await asked.request()


async def test_a_thousand_keys_ask_a_server_that_is_away_like_one(asked: Asked, hands: Hands) -> None:
    began = hands.at
    tasks = [asyncio.create_task(asked.insist()) for _ in range(1000)]
    long = asyncio.Event()
    hands.on_sleep = lambda: long.set() if hands.at > began + 60 else None
    await long.wait()
    waited = hands.at - began
    after_the_first = [moment for moment in asked.times if moment > began]
    assert len(after_the_first) <= waited / CAP + 10
    asked.failure = None
    await asyncio.gather(*tasks)
    assert not asked.brake.is_on


async def test_one_lost_request_slows_nobody(asked: Asked, hands: Hands) -> None:
    await fail(asked, SUSPICIOUS - 1)
    asked.failure = None
    await asyncio.gather(*(asked.request() for _ in range(10)))
    assert hands.slept == []


async def test_answers_that_are_about_some_objects_only_slow_nobody(asked: Asked, hands: Hands) -> None:
    """A webhook of one namespace that fails, an object that has become too large: the API server answers 500 then, and is not away."""
    asked.failure = lambda: ApiUnavailable("failed calling webhook", status=500)
    await fail(asked, 10 * SUSPICIOUS)
    asked.failure = None
    await asyncio.gather(*(asked.request() for _ in range(10)))
    assert hands.slept == []


async def test_a_server_that_was_away_and_answers_so_is_not_back_yet(asked: Asked, hands: Hands) -> None:
    await fail(asked, SUSPICIOUS)
    asked.failure = lambda: ApiUnavailable("etcdserver: no leader", status=500)
    before = len(hands.slept)
    await fail(asked, 3)
    assert len(hands.slept) == before + 3
    assert asked.brake.is_on


async def test_one_outage_is_one_failure_for_all_that_were_under_way(asked: Asked, hands: Hands) -> None:
    gate = asyncio.Event()

    async def under_way() -> None:
        async with asked.brake.turn():
            await gate.wait()
            hands.at += 0.001
            raise ApiUnavailable("reset")

    tasks = [asyncio.create_task(under_way()) for _ in range(32)]
    await asyncio.sleep(0)
    gate.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(result, ApiUnavailable) for result in results)
    assert not asked.brake.is_on


async def test_a_refusal_is_an_answer(asked: Asked, hands: Hands) -> None:
    asked.failure = lambda: ApiConflict("stale")
    await fail(asked, 10, ApiConflict)
    assert hands.slept == []


async def test_when_the_one_that_asks_is_answered_all_go_on(asked: Asked, hands: Hands) -> None:
    await fail(asked, SUSPICIOUS)
    assert asked.brake.is_on
    asked.failure = None
    count = len(asked.times)
    await asyncio.gather(*(asked.request() for _ in range(20)))
    assert len(asked.times) == count + 20
    assert len(hands.slept) <= 20


async def test_one_that_hangs_is_not_waited_for(asked: Asked, hands: Hands) -> None:
    await fail(asked, SUSPICIOUS)

    async def hang() -> None:
        async with asked.brake.turn():
            await asyncio.Event().wait()

    hanging = asyncio.create_task(hang())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    asked.failure = None
    hands.at += PROBE_SECONDS
    async with asyncio.timeout(10):
        await asked.request()
    hanging.cancel()


async def test_one_that_is_called_off_leaves_its_place(asked: Asked, hands: Hands) -> None:
    await fail(asked, SUSPICIOUS)
    asked.failure = None
    asks = asyncio.Event()

    async def ask() -> None:
        async with asked.brake.turn():
            asks.set()
            await asyncio.Event().wait()

    asking = asyncio.create_task(ask())
    await asks.wait()
    asking.cancel()
    with suppress(asyncio.CancelledError):
        await asking
    async with asyncio.timeout(1):
        await asked.request()


async def test_the_server_says_how_long_it_wants_to_be_left_alone(asked: Asked, hands: Hands) -> None:
    asked.failure = lambda: ApiThrottled("slow down", retry_after=7.0)
    await fail(asked, 1, ApiThrottled)
    asked.failure = None
    await asked.request()
    assert hands.slept == [7.0]
