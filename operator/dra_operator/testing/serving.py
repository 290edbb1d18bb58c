"""How the servers of tests begin and end: with every connection that they took, also one that came in the last moment.

Loopback only. Must not know what is served.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    import ssl

HOST = "127.0.0.1"
_TURNS = 4
"""Turns of the event loop from a connection taken to one that its server knows: two tasks and two callbacks of asyncio, one after the other."""


class Serving:
    """One port that an application is served on.

    asyncio forgets a connection that it has taken when the server is closed before the connection has its transport, and aiohttp one that it
    gets to know while it closes the others: both stay open when the loop has ended. So taking ends first, then all are known, then all are closed.

    Args:
        runner: of the application; ends with this.
    """

    def __init__(self, runner: web.AppRunner) -> None:
        self._runner = runner
        self._socket: socket.socket | None = None

    @property
    def port(self) -> int:
        """The port, once started."""
        return int(self._runner.addresses[0][1])

    async def start(self, port: int = 0, context: ssl.SSLContext | None = None) -> None:
        """Listen; port 0 takes a free one.

        Raises:
            OSError: the port is taken.
        """
        await self._runner.setup()
        self._socket = socket.create_server((HOST, port), backlog=128)
        await web.SockSite(self._runner, self._socket, ssl_context=context).start()

    async def end(self) -> None:
        """Take no more, answer what is in flight, close all connections."""
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            for _ in range(_TURNS):
                await asyncio.sleep(0)
        await self._runner.cleanup()
        self._socket = None
