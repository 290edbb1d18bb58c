"""Waiting for what the stand-ins do after a write."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


async def settled(condition: Callable[[], bool]) -> None:
    """Give the loop turns until `condition` holds; the stand-ins run between turns, so no time has to pass."""
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("the stand-ins never got there")


async def quiet() -> None:
    """Let the stand-ins finish what they have begun."""
    for _ in range(50):
        await asyncio.sleep(0)
