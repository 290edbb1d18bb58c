"""`/healthz`, `/readyz` and `/metrics` over HTTP. Reads only."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import socket
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Protocol

from aiohttp import web

from dra_operator.errors import InvalidSettings
from dra_operator.metrics import CONTENT_TYPE, Metrics

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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

    def readiness(self) -> Mapping[str, Any]:
        """For people: status and reason first."""
        ...

    def ailments(self) -> Sequence[str]:
        """What only a restart would mend; empty in good health."""
        ...

    async def catch_up(self) -> None:
        """Do the long part of getting ready for a scrape, with turns of the event loop in between."""
        ...


class Endpoints:
    """The HTTP server of one operator."""

    def __init__(self, health: Health, metrics: Metrics) -> None:
        self._health = health
        self._metrics = metrics
        self._scrape = asyncio.Lock()
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
        """That the event loop answers is half of the news; a dead task ends the process instead."""
        ailments = self._health.ailments()
        for ailment in ailments:
            logger.error("not healthy: %s; the kubelet restarts the container", ailment)
        body = {"status": "unhealthy" if ailments else "ok", "reason": "; ".join(ailments)}
        return _json(body, HTTPStatus.INTERNAL_SERVER_ERROR if ailments else HTTPStatus.OK)

    async def _readyz(self, _: web.Request) -> web.Response:
        ready = self._health.is_ready
        return _json(self._health.readiness(), HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE)

    async def _render(self, _: web.Request) -> web.Response:
        async with self._scrape:  # one at a time: gauges are set anew for each
            await self._health.catch_up()
            text = await self._metrics.render_aside()
        return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE})


def _json(body: Mapping[str, Any], status: HTTPStatus) -> web.Response:
    """One line a fact, for people with curl."""
    text = json.dumps(body, indent=1) + "\n"
    return web.Response(text=text, status=status, content_type="application/json")
