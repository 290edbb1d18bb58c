"""Streams that go wrong: the lines of a watch in, what a client gets of them out.

Used by the embedded server's `http` and by the loopback proxy of the end-to-end tier. No HTTP here: whoever calls owns the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from dra_operator.testing.fakeapi.faults import Spoil, Then, gone
from dra_operator.testing.fakeapi.watching import error_event

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator


async def spoiled(
    lines: AsyncGenerator[bytes, Any], spoil: Spoil | None, closing: asyncio.Event
) -> AsyncIterator[bytes]:
    """What a client gets of a stream.

    Args:
        lines: pieces that end with a line.
        spoil: what is to go wrong; None for nothing.
        closing: set when the server ends; a silent stream ends then, too.

    Raises:
        ConnectionResetError: now the connection has to be cut.
    """
    if spoil is None:
        async for line in lines:
            yield line
        return
    async for line in _late(_until(lines, spoil), spoil):
        yield line
    if spoil.then is Then.SILENCE:
        await closing.wait()
    if spoil.then is Then.CUT:
        raise ConnectionResetError("cut, as was asked for")
    if spoil.then is Then.EXPIRE:
        yield error_event(gone()).line()


async def _until(lines: AsyncGenerator[bytes, Any], spoil: Spoil) -> AsyncIterator[bytes]:
    """The lines until the stream stops being good."""
    limit = asyncio.get_running_loop().time() + spoil.after if spoil.then is not None else None
    async with contextlib.aclosing(lines):
        with contextlib.suppress(TimeoutError, StopAsyncIteration):
            while True:
                async with asyncio.timeout_at(limit):
                    line = await anext(lines)
                yield line


async def _late(lines: AsyncIterator[bytes], spoil: Spoil) -> AsyncIterator[bytes]:
    """Each line after a while, and the one before once more, if that is asked for."""
    before = b""
    async for piece in lines:
        if spoil.lag:
            await asyncio.sleep(spoil.lag)
        if not spoil.repeat:
            yield piece
            continue
        for line in piece.splitlines(keepends=True):
            yield line + before
            before = line
