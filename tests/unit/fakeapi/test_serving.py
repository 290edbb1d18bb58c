"""How the servers of tests end."""

from __future__ import annotations

import asyncio
import gc
import socket
import warnings

import pytest
from aiohttp import web

from dra_operator.testing.serving import HOST, Serving

TURNS = range(8)
"""Of the event loop, from a client that has connected to the end: one of them is while its connection is being taken."""


async def _serve(turns: int, *, client_stays: bool) -> list[socket.socket]:
    serving = Serving(web.AppRunner(web.Application(), shutdown_timeout=0.1))
    await serving.start()
    clients = [socket.create_connection((HOST, serving.port)) for _ in range(3)]
    if not client_stays:
        for client in clients:
            client.close()
    for _ in range(turns):
        await asyncio.sleep(0)
    await serving.end()
    return clients


@pytest.mark.parametrize("turns", TURNS)
@pytest.mark.parametrize("client_stays", [True, False])
def test_no_connection_outlives_its_server(turns: int, *, client_stays: bool) -> None:
    """Whenever it came: what is left open is told as a ResourceWarning when it is collected."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        clients = asyncio.run(_serve(turns, client_stays=client_stays))
        gc.collect()
        words = [str(warning.message) for warning in told]
    for client in clients:
        client.close()
    assert words == []


async def test_a_port_that_is_taken_is_told() -> None:
    first, second = (Serving(web.AppRunner(web.Application())) for _ in range(2))
    await first.start()
    try:
        with pytest.raises(OSError, match="Address already in use"):
            await second.start(first.port)
    finally:
        await second.end()
        await first.end()
