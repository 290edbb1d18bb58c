"""`/healthz`, `/readyz` and `/metrics` over HTTP. Reads only."""

from __future__ import annotations

import errno
import logging
import socket
from typing import TYPE_CHECKING, Any, Protocol

from aiohttp import web

from dra_operator.errors import InvalidSettings
from dra_operator.metrics import CONTENT_TYPE, Metrics

if TYPE_CHECKING:
    from collections.abc import Mapping

logger = logging.getLogger(__name__)


def _is_of_host(error: OSError) -> bool:
    """Whether the address is at fault: a name that nobody knows, or an address of another machine."""
    return isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL


class Health(Protocol):
    """Who knows how the operator is."""

    @property
    def is_ready(self) -> bool:
        """Whether decisions are being taken."""
        ...

    def detail(self) -> Mapping[str, Any]:
        """For people and logs."""
        ...


class Endpoints:
    """The HTTP server of one operator."""

    def __init__(self, health: Health, metrics: Metrics) -> None:
        self._health = health
        self._metrics = metrics
        self._runner: web.AppRunner | None = None
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Listen.

        Raises:
            InvalidSettings: the address cannot be had.
        """
        app = web.Application()
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._render)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, host, port).start()
        except OSError as error:
            await self._runner.cleanup()
            flag = "--http-host" if _is_of_host(error) else "--http-port"
            raise InvalidSettings(flag, f"cannot listen on {host}:{port}: {error.strerror}") from error
        self.port = self._runner.addresses[0][1]
        logger.info("health and metrics on http://%s:%d", host, self.port)

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _healthz(self, _: web.Request) -> web.Response:
        """That the event loop answers is the news; a dead task ends the process instead."""
        return web.json_response({"status": "ok", **self._health.detail()})

    async def _readyz(self, _: web.Request) -> web.Response:
        ready = self._health.is_ready
        body = {"status": "ok" if ready else "not ready", **self._health.detail()}
        return web.json_response(body, status=200 if ready else 503)

    async def _render(self, _: web.Request) -> web.Response:
        return web.Response(body=self._metrics.render(), headers={"Content-Type": CONTENT_TYPE})
