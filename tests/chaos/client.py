"""The administrator of the storm: requests straight to kube-apiserver, past the proxy, with patience for its restarts.

Used by churn, checker and the look at the end. Nothing of the operator is imported.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, Any, Self

import aiohttp

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from tests.e2e.harness.cluster import ControlPlane

Object = dict[str, Any]

DRA = "/apis/resource.k8s.io/v1"
OUTAGE_SECONDS = 180.0
"""How long kube-apiserver may be away: it is stopped and started by the storm."""

BROKEN = (aiohttp.ClientError, OSError, TimeoutError)
MERGE = "application/merge-patch+json"


LOOK = 0.2
"""Seconds between two looks at what nobody tells."""


async def until(probe: Callable[[], Awaitable[bool]], seconds: float) -> None:
    """Look until it is so.

    Raises:
        TimeoutError: it is not, in time.
    """
    async with asyncio.timeout(seconds):
        while True:
            if await probe():
                return
            await asyncio.sleep(LOOK)


class RefusedError(Exception):
    """The server said no."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class Admin:
    """Use as an asynchronous context manager."""

    def __init__(self, control_plane: ControlPlane) -> None:
        self._plane = control_plane
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        context = ssl.create_default_context(cafile=str(self._plane.ca_file))
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=context),
            headers={"Authorization": f"Bearer {self._plane.token}"},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=5.0, sock_read=30.0),
            read_bufsize=2**20,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()

    async def request(
        self, method: str, path: str, body: Object | None = None, query: Mapping[str, str] | None = None
    ) -> Object:
        """One request, again while the server is away.

        Raises:
            RefusedError: the server said no; a 5xx or 429 is none.
        """
        end = asyncio.get_running_loop().time() + OUTAGE_SECONDS
        while True:
            try:
                return await self._once(method, path, body, query)
            except (RefusedError, *BROKEN) as error:
                is_final = isinstance(error, RefusedError) and error.code < 500 and error.code != 429
                # a kube-apiserver that has just started knows no rights yet
                if is_final and not (isinstance(error, RefusedError) and error.code == 403):
                    raise
                if asyncio.get_running_loop().time() > end:
                    raise
                await asyncio.sleep(0.1)

    async def _once(
        self, method: str, path: str, body: Object | None, query: Mapping[str, str] | None
    ) -> Object:
        assert self._session is not None
        headers = {"Content-Type": MERGE} if method == "PATCH" else {}
        async with self._session.request(
            method, self._plane.server + path, json=body, params=query or {}, headers=headers
        ) as answer:
            found: Object = await answer.json(content_type=None)
            if answer.status >= 400:
                raise RefusedError(answer.status, str(found.get("message", found))[:300])
            return found

    async def make(self, path: str, obj: Object) -> None:
        """Create what may be there already: also when only the answer to the first try was lost."""
        try:
            await self.request("POST", path, obj)
        except RefusedError as error:
            if error.code != 409:
                raise

    async def items(self, path: str) -> list[Object]:
        """All objects of a collection."""
        listed: list[Object] = (await self.request("GET", path))["items"]
        return listed

    async def lines(self, path: str, query: Mapping[str, str]) -> AsyncIterator[bytes]:
        """The lines of a watch, until it ends.

        Raises:
            RefusedError: the server said no.
        """
        assert self._session is not None
        limits = aiohttp.ClientTimeout(total=None, sock_connect=5.0, sock_read=90.0)
        async with self._session.get(self._plane.server + path, params=query, timeout=limits) as answer:
            if answer.status >= 400:
                raise RefusedError(answer.status, (await answer.text())[:300])
            rest = b""
            async for chunk in answer.content.iter_any():
                *whole, rest = (rest + chunk).split(b"\n")
                for line in whole:
                    yield line
