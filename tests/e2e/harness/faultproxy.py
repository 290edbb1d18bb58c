"""A loopback proxy between clients and a real API server, for bad weather: refusals, resets, silence, lost answers, held requests.

Plain HTTP on the clients' side, TLS on the server's; credentials pass through and are never looked at. What goes wrong is told in the
vocabulary that the embedded server has, too (`dra_operator.testing.fakeapi.faults`). It runs on a thread with an event loop of its own,
so that synchronous tests can use it, and it decides nothing: without rules it is a wire.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import struct
import threading
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import aiohttp
import yaml
from aiohttp import web
from yarl import URL

from dra_operator.testing.fakeapi.faults import Call, Fault, Faults, Hold
from dra_operator.testing.fakeapi.requests import target
from dra_operator.testing.fakeapi.spoiling import spoiled
from dra_operator.testing.serving import Serving

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path
    from types import TracebackType

    from dra_operator.testing.fakeapi.failures import StatusError

HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "te", "upgrade", "host", "content-length"})
"""Headers that are between two neighbours only, and those that each side writes itself."""

BROKEN = (aiohttp.ClientError, OSError, TimeoutError)
LARGEST_BODY = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Held:
    """A request that is, or is going to be, kept back.

    Attributes:
        hold: `hold.reached.wait(seconds)` until it has come; `hold.released.set()` lets it go.
        fault: `fault.codes` is what the server answered in the end, though its client may have gone.
    """

    hold: Hold
    fault: Fault


class FaultProxy:
    """Use as a context manager.

    Args:
        server: URL of the API server.
        ca_file: its authority; None for plain HTTP.
        seed: of what probabilities decide.

    Attributes:
        url: where clients go.
        faults: the rules; may be changed at any time from any thread.
        passed: how many requests have been sent on to the server.
    """

    def __init__(self, server: str, ca_file: Path | None = None, seed: int = 0) -> None:
        self.faults = Faults(seed=seed)
        self.url = ""
        self.passed = 0
        self._server = server.rstrip("/")
        self._tls = ssl.create_default_context(cafile=str(ca_file)) if ca_file else True
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._loop = asyncio.new_event_loop()
        self._closing = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="fault-proxy", daemon=True)
        self._session: aiohttp.ClientSession | None = None
        self._watching: dict[int, web.Request] = {}
        self._working: set[asyncio.Task[web.StreamResponse]] = set()

    # --- life

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.faults.clear()
        with suppress(RuntimeError):  # the loop has ended by itself: `_failure` says why
            self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join(timeout=20)
        if self._failure is not None:
            raise self._failure

    def kubeconfig(self, original: Path) -> Path:
        """A kubeconfig beside the original one: the same user, by way of this proxy."""
        document = yaml.safe_load(original.read_text())
        for cluster in document["clusters"]:
            cluster["cluster"] = {"server": self.url}
        port = self.url.rpartition(":")[2]
        copy = original.with_name(f"{original.stem}.by-{port}{original.suffix}")
        copy.touch(mode=0o600)
        copy.write_text(json.dumps(document))
        return copy

    def break_watches(self) -> None:
        """Reset the connections of all watches that are open now."""
        self._loop.call_soon_threadsafe(self._break_watches)

    def _break_watches(self) -> None:
        for request in tuple(self._watching.values()):
            _reset(request, web.Response())

    def hold(self, verb: str, resource: str, name: str = "") -> Held:
        """Keep the next such request back on its way to the server, until it is let go; no other rule takes it."""
        hold = Hold()
        fault = Fault(verbs=frozenset({verb}), resource=resource, name=name, hold=hold)
        self.faults.add(fault, first=True)
        return Held(hold, fault)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve_until_closed())
        except BaseException as error:  # noqa: BLE001  # it is raised again in the thread that uses the proxy
            self._failure = error
        finally:
            self._started.set()
            self._loop.close()

    async def _serve_until_closed(self) -> None:
        app = web.Application(client_max_size=LARGEST_BODY)
        app.router.add_route("*", "/{path:.*}", self._serve)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0, handler_cancellation=True)
        serving = Serving(runner)
        await serving.start()
        self.url = f"http://127.0.0.1:{serving.port}"
        connector = aiohttp.TCPConnector(limit=0, ssl=self._tls)
        async with aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            read_bufsize=2**20,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10.0),
        ) as self._session:
            self._started.set()
            await self._closing.wait()
            for work in self._working:
                work.cancel()
            await serving.end()
        for _ in range(2):
            await asyncio.sleep(0)  # transports that were closed just now need a turn of the loop to be gone

    # --- one request

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        """A watch ends with its client; any other request goes its way once it is here."""
        body = await request.read()
        found = target(request.path)
        agent = request.headers.get("User-Agent", "")
        call = found.call(request.method, request.query, agent) if found else Call("", request.path)
        work = asyncio.create_task(self._handle(request, body, call))
        self._working.add(work)
        work.add_done_callback(self._working.discard)
        return await (work if call.verb == "watch" else asyncio.shield(work))

    async def _handle(self, request: web.Request, body: bytes, call: Call) -> web.StreamResponse:
        fault = (self.faults.hit(call) if call.verb else None) or Fault()
        await self._on_the_way(fault)
        if fault.hang or fault.cut:
            return _reset(request, web.Response())
        if fault.error is not None:
            return _refusal(fault.error)
        try:
            return await self._pass_on(request, body, fault, is_watch=call.verb == "watch")
        except BROKEN:
            return _reset(request, web.Response())

    async def _on_the_way(self, fault: Fault) -> None:
        if fault.delay:
            await asyncio.sleep(fault.delay)
        if fault.hold is not None:
            fault.hold.reached.set()
            await fault.hold.released.happened()
        if fault.hang:
            await self._closing.wait()

    async def _pass_on(
        self, request: web.Request, body: bytes, fault: Fault, *, is_watch: bool
    ) -> web.StreamResponse:
        assert self._session is not None
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP}
        self.passed += 1
        async with self._session.request(
            request.method,
            URL(self._server + request.raw_path, encoded=True),
            data=body or None,
            headers=headers,
            allow_redirects=False,
            skip_auto_headers=("User-Agent", "Accept", "Content-Type"),
        ) as answer:
            fault.codes.append(answer.status)
            if is_watch and answer.status == web.HTTPOk.status_code:
                return await self._stream(request, answer, fault)
            content = await answer.read()
        return await self._answer(request, answer, content, fault)

    async def _answer(
        self, request: web.Request, answer: aiohttp.ClientResponse, content: bytes, fault: Fault
    ) -> web.StreamResponse:
        if fault.lose_answer:
            return _reset(request, web.Response())
        if fault.mute:
            await self._closing.wait()
            return _reset(request, web.Response())
        response = web.StreamResponse(status=answer.status, headers=_passing(answer))
        response.content_length = len(content)
        await response.prepare(request)
        if fault.stall is not None:
            await response.write(content[: fault.stall])
            await self._closing.wait()
            return _reset(request, response)
        await response.write(content)
        return response

    async def _stream(
        self, request: web.Request, answer: aiohttp.ClientResponse, fault: Fault
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, headers=_passing(answer))
        await response.prepare(request)
        self._watching[id(request)] = request
        try:
            async with aclosing(_lines(answer)) as lines:
                async for line in spoiled(lines, fault.spoil, self._closing):
                    await response.write(line)
        except BROKEN:  # either side has gone, or is to be told so
            return _reset(request, response)
        finally:
            del self._watching[id(request)]
        return response


async def _lines(answer: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
    """What comes, in pieces that end with a line."""
    rest = b""
    async for chunk in answer.content.iter_any():
        whole, newline, rest_of_it = chunk.rpartition(b"\n")
        if newline:
            yield rest + whole + newline
            rest = rest_of_it
        else:
            rest += chunk
    if rest:
        yield rest


def _passing(answer: aiohttp.ClientResponse) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name.lower() not in HOP}


def _refusal(error: StatusError) -> web.Response:
    headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
    return web.json_response(error.status(), status=error.code, headers=headers)


def _reset(request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
    """Break the connection so that the client hears of it at once (RST)."""
    if request.transport is not None:
        found = request.transport.get_extra_info("socket")
        if found is not None:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        request.transport.abort()
    return response
