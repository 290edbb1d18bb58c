from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import TYPE_CHECKING, Any

import pytest

from .scripted import Hands, Remembering, Scripted, api_at

if TYPE_CHECKING:
    from dra_operator.kube import Api

Start = Callable[[Coroutine[Any, Any, Any]], asyncio.Task[Any]]


@pytest.fixture
async def server() -> AsyncIterator[Scripted]:
    async with Scripted() as scripted:
        yield scripted


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
async def api(server: Scripted, hands: Hands) -> AsyncIterator[Api]:
    async with api_at(server, hands) as connected:
        yield connected


@pytest.fixture
def sink() -> Remembering:
    return Remembering()


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Runs something endless in the background; if it failed, so does the test."""
    tasks: list[asyncio.Task[Any]] = []

    def create(work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        tasks.append(asyncio.create_task(work))
        return tasks[-1]

    yield create
    for task in tasks:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
