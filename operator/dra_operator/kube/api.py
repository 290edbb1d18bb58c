"""HTTP to the API server: one session for watches, one for all the rest. Everything else in `kube` goes through here.

aiohttp with raw bytes, since typed clients cost ten times more an answer. Every failure leaves as one of `errors.Api*`: no
aiohttp exception passes this module. It retries one thing only, a 401 with renewed credentials (the server has done nothing
then); what else may be tried again is for the caller to know. Tokens are never logged.
"""

from __future__ import annotations

import contextlib
import os
import ssl
import sys
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Self

import aiohttp
import msgspec

from dra_operator import __version__
from dra_operator.errors import ApiError, ApiUnavailable, InvalidSettings
from dra_operator.model.decode import encode_hook

from .acceptance import Acceptance
from .credentials import Connection, Credentials, StaticCredentials, load_credentials
from .failures import refusal
from .kinds import KINDS, describe
from .timing import REAL, Timing

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping

    from .kinds import Kind

JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
"""Server-side apply; JSON is YAML, so the body is JSON here too."""

USER_AGENT = f"dra-operator/{__version__}"
REQUEST_SECONDS = 30.0
CONNECT_SECONDS = 10.0
POOL_SIZE = 64
"""Connections for everything but watches: twice the writers, so that reads find one, too."""

NESTING: Final = 10_500
"""Levels of recursion that Python allows: an API server takes JSON that is nested 10,000 levels deep, and lets any user store some thousand of them
in the opaque parameters of a claim. Python's own 1000 would keep whole lists from being read. All levels need less than 4 MiB of stack."""

BROKEN = (aiohttp.ClientError, TimeoutError, OSError)
"""What aiohttp raises when the way to the server, or the answer, breaks."""


def unobserved(verb: str, resource: str, seconds: float) -> None:
    """Nobody measures requests."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A successful answer."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class _Call:
    """One request, as often as it has to be sent."""

    method: str
    path: str
    query: Mapping[str, str]
    data: bytes | None
    content_type: str
    timeout: aiohttp.ClientTimeout


class Api:
    """The API server.

    Args:
        credentials: where it is and how to be let in.
        timing: the clock.

    Attributes:
        acceptance: whether the server lets us in.
        observer: hears verb, resource and seconds of every request that was answered, well or not; watches aside.
        kinds: the kinds in the versions that the server speaks, as far as that was asked (`discover`).
    """

    def __init__(self, credentials: Credentials, timing: Timing = REAL) -> None:
        sys.setrecursionlimit(max(sys.getrecursionlimit(), NESTING))
        self.credentials = credentials
        self.timing = timing
        self.acceptance = Acceptance(timing)
        self.observer: Callable[[str, str, float], None] = unobserved
        self.kinds: Mapping[str, Kind] = KINDS
        self._watches = _session(limit=0)
        self._calls = _session(limit=POOL_SIZE)
        self._tls: tuple[Connection, tuple[object, ...], ssl.SSLContext | bool] | None = None

    @classmethod
    async def connect(
        cls, kubeconfig: str | None = None, context: str | None = None, timing: Timing = REAL
    ) -> Self:
        """Open the sessions for a kubeconfig (and context), or for the pod that we run in; nothing is sent yet.

        Raises:
            InvalidSettings: there is no usable configuration, or its plug-in failed.
        """
        credentials = await load_credentials(kubeconfig, context, timing)
        (await credentials.current()).ssl_context()  # so that wrong files are found at start, as a setting
        return cls(credentials, timing)

    @classmethod
    def at(cls, server: str, token: str = "", timing: Timing = REAL) -> Self:
        """Sessions for a server that needs no configuration; for tests, the demo and tools."""
        authorization = f"Bearer {token}" if token else ""
        return cls(StaticCredentials(Connection(server.rstrip("/"), authorization)), timing)

    async def close(self) -> None:
        """Close all connections; open streams end."""
        await self._watches.close()
        await self._calls.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
        timeout: float = REQUEST_SECONDS,  # noqa: ASYNC109  # aiohttp's own time-out, told apart from cancellation
    ) -> Answer:
        """Send one request and read the whole answer.

        Args:
            method: HTTP's.
            path: absolute, without the server.
            query: unescaped.
            body: JSON-like, or values of the model; None for none.
            content_type: of the body.
            timeout: seconds for all of it.

        Raises:
            ApiError: one of its subclasses for every refusal; `ApiUnavailable` when there was no (whole) answer.
        """
        data = None if body is None else msgspec.json.encode(body, enc_hook=encode_hook)
        limits = aiohttp.ClientTimeout(total=timeout, sock_connect=CONNECT_SECONDS)
        call = _Call(method, path, query or {}, data, content_type, limits)
        began = self.timing.monotonic()
        try:
            async with self._open(self._calls, call) as response:
                answer = Answer(response.status, await response.read())
        except BROKEN as error:
            raise _unavailable(call, error) from error
        except ApiError:
            self._observe(call, began)
            raise
        self._observe(call, began)
        return answer

    def _observe(self, call: _Call, began: float) -> None:
        verb, resource = describe(call.method, call.path)
        self.observer(
            "apply" if call.content_type == APPLY else verb, resource, self.timing.monotonic() - began
        )

    async def stream(
        self,
        path: str,
        query: Mapping[str, str],
        *,
        inactivity: float,
    ) -> AsyncGenerator[bytes, None]:
        """Read the lines of an endless answer; an empty line first, as soon as the server has accepted.

        Close the iterator (`contextlib.aclosing`) to end the request. A line that is cut off is not delivered.

        Args:
            path: absolute, without the server.
            query: unescaped.
            inactivity: seconds without a single byte after which the stream counts as dead.

        Raises:
            ApiError: as `request`; `ApiUnavailable` also when the stream breaks or falls silent.
        """
        limits = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=inactivity)
        call = _Call("GET", path, query, None, JSON, limits)
        try:
            async with self._open(self._watches, call) as response:
                yield b""
                async for line in _lines(response.content):
                    yield line
        except BROKEN as error:
            raise _unavailable(call, error) from error

    @contextlib.asynccontextmanager
    async def _open(
        self, session: aiohttp.ClientSession, call: _Call
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """An accepted answer; with other credentials after a 401, if there are any."""
        connection = await self.credentials.current()
        used = self._ssl(connection)
        response = await self._send(session, call, connection)
        if response.status == HTTPStatus.UNAUTHORIZED:
            renewed = await self.credentials.renew(connection)
            if renewed.authorization != connection.authorization or self._has_other_tls(renewed, unlike=used):
                response.release()
                response = await self._send(session, call, renewed)
        try:
            if not HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
                error = refusal(response.status, await response.read(), response.headers)
                self.acceptance.heard(error)
                raise error
            self.acceptance.heard(None)
            yield response
        finally:
            response.close() if session is self._watches else response.release()

    async def _send(
        self, session: aiohttp.ClientSession, call: _Call, connection: Connection
    ) -> aiohttp.ClientResponse:
        headers = {"Content-Type": call.content_type} if call.data is not None else {}
        if connection.authorization:
            headers["Authorization"] = connection.authorization
        return await session.request(
            call.method,
            connection.server + call.path,
            params=call.query,
            data=call.data,
            headers=headers,
            timeout=call.timeout,
            allow_redirects=False,
            proxy=connection.proxy,
            ssl=self._ssl(connection),
            server_hostname=connection.tls_server_name,
        )

    def _ssl(self, connection: Connection) -> ssl.SSLContext | bool:
        """The TLS context, built anew only when the facts have changed: building reads files.

        They are looked at whenever the credentials were read again, at once after a 401: a renewed client certificate is used from then on,
        on new connections, as connections are kept by their context.
        """
        if self._tls is not None and self._tls[0] is connection:
            return self._tls[2]
        facts = connection.tls_facts
        if self._tls is not None and self._tls[1] == facts:
            self._tls = (connection, facts, self._tls[2])
            return self._tls[2]
        try:
            self._tls = (connection, facts, connection.ssl_context())
        except InvalidSettings as error:  # was fine at start: the files are being replaced
            raise ApiUnavailable(str(error)) from error
        return self._tls[2]

    def _has_other_tls(self, connection: Connection, *, unlike: ssl.SSLContext | bool) -> bool:
        try:
            return self._ssl(connection) is not unlike
        except ApiUnavailable:
            return False  # told by the next request; this one has been refused


def _session(limit: int) -> aiohttp.ClientSession:
    # Compression is declined: the way is short, and it would cost the API server more than us.
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=limit),
        headers={"User-Agent": USER_AGENT, "Accept": JSON, "Accept-Encoding": "identity"},
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        read_bufsize=2**18,
    )


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Whole lines without their ends; aiohttp's own line reader refuses long ones, and watch events are long."""
    rest = b""
    async for chunk in content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n") if rest else chunk.split(b"\n")
        for line in lines:
            if line:
                yield line


def _unavailable(call: _Call, error: BaseException) -> ApiError:
    what = _no_way(error) if isinstance(error, aiohttp.ClientConnectorError) else str(error)
    if not what and isinstance(error, TimeoutError):
        what = (
            f"no answer within {call.timeout.total or call.timeout.sock_read:g} s; does the API server hang?"
        )
    return ApiUnavailable(f"{call.method} {call.path}: {what or type(error).__name__}")


def _no_way(error: aiohttp.ClientConnectorError) -> str:
    """Why no connection came about; aiohttp's own text shows objects of Python's."""
    cause = error.os_error
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"cannot trust {error.host}:{error.port}: {error.certificate_error}"
    number = 0 if isinstance(cause, ssl.SSLError) else cause.errno or 0
    why = os.strerror(number) if number > 0 else cause.strerror or str(cause)
    return f"cannot connect to {error.host}:{error.port}: {why}; is the API server up?"
