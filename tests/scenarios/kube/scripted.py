"""A server on loopback that answers what a test tells it to, a clock that nobody waits for, a sink that remembers.

Faults are scripted answer by answer here; how a whole API server behaves is `dra_operator.testing.fakeapi`'s matter.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict, deque
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from aiohttp import web

from dra_operator.kube import Api, RawMeta, StaticCredentials, Timing
from dra_operator.kube.credentials import Connection
from dra_operator.model import metadata_of
from dra_operator.testing.serving import Serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dra_operator.errors import InvalidObject
    from dra_operator.model import Value

Obj = dict[str, Any]


def pod(name: str, version: int, uid: str = "", **spec: Any) -> Obj:
    """A pod as the server would send it."""
    meta = {"name": name, "namespace": "ns", "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": meta, "spec": spec}


def status(code: int, reason: str = "", message: str = "", **details: Any) -> Obj:
    """A `Status` body."""
    return {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details}


def page(version: int, *items: Obj, token: str = "") -> Obj:
    """A page of a list."""
    return {"metadata": {"resourceVersion": str(version), "continue": token}, "items": list(items)}


def line(kind: str, obj: Obj) -> bytes:
    """One line of a watch."""
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def bookmark(version: int) -> bytes:
    """A bookmark line."""
    return line("BOOKMARK", {"metadata": {"resourceVersion": str(version)}})


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer; a body that is no bytes is sent as JSON."""

    body: Any = None
    code: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    def raw(self) -> bytes:
        """The body as it goes out."""
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass(frozen=True, slots=True)
class Stream:
    """Lines of a watch, and what then: `end` it properly, `cut` the connection, or `hang` in silence."""

    chunks: tuple[bytes, ...] = ()
    then: str = "hang"


@dataclass(frozen=True, slots=True)
class Seen:
    """A request that came in."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


HANG = Stream()

TOKEN = "very-secret"


class Scripted:
    """The server. `on` queues answers for a method and path; watches have the method `WATCH` and hang when nothing is queued."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.url = ""
        self._answers: dict[tuple[str, str], deque[Reply | Stream]] = defaultdict(deque)
        self._serving: Serving | None = None
        self._news = asyncio.Event()
        self._closing = asyncio.Event()

    def on(self, method: str, path: str, *answers: Reply | Stream) -> None:
        """Answer so, in this order."""
        self._answers[method, path].extend(answers)

    def requests(self, method: str) -> list[Seen]:
        """What came in by a method."""
        return [seen for seen in self.seen if seen.method == method]

    async def until(self, method: str, count: int) -> list[Seen]:
        """Wait for that many requests of a method."""
        async with asyncio.timeout(10):
            while len(self.requests(method)) < count:
                self._news.clear()
                await self._news.wait()
        return self.requests(method)

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/{rest:.*}", self._handle)
        self._serving = Serving(web.AppRunner(app, shutdown_timeout=1))
        await self._serving.start()
        self.url = f"http://127.0.0.1:{self._serving.port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing.set()
        assert self._serving is not None
        await self._serving.end()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        method = "WATCH" if request.query.get("watch") else request.method
        raw = await request.read()
        body = json.loads(raw) if raw else None
        self.seen.append(Seen(method, request.path, dict(request.query), dict(request.headers), body))
        self._news.set()
        queue = self._answers[method, request.path]
        answer = queue.popleft() if queue else self._default(method, request)
        if isinstance(answer, Reply):
            return web.Response(
                body=answer.raw(), status=answer.code, headers=answer.headers, content_type="application/json"
            )
        return await self._stream(request, answer)

    def _default(self, method: str, request: web.Request) -> Reply | Stream:
        if method == "WATCH":
            return HANG
        return Reply(status(404, "NotFound", f"nothing scripted for {method} {request.path}"), 404)

    async def _stream(self, request: web.Request, answer: Stream) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in answer.chunks:
            await response.write(chunk)
        if answer.then == "cut" and request.transport is not None:
            request.transport.abort()
        if answer.then == "hang":
            await self._closing.wait()
        return response


@dataclass(slots=True)
class Hands:
    """A clock that jumps instead of waiting; the dice always show the upper bound."""

    at: float = 1000.0
    slept: list[float] = field(default_factory=list)
    start: datetime = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
    on_sleep: Callable[[], None] = lambda: None

    def timing(self) -> Timing:
        """For the code under test."""
        return Timing(
            lambda: self.at, lambda: self.start + timedelta(seconds=self.at), self.sleep, lambda _, high: high
        )

    async def sleep(self, seconds: float) -> None:
        """Jump, and let others run."""
        self.on_sleep()
        self.slept.append(seconds)
        self.at += seconds
        await asyncio.sleep(0)


class Remembering:
    """A sink: the objects by name, and all that happened."""

    def __init__(self) -> None:
        self.log: list[tuple[str, str]] = []
        self.objects: dict[str, Value] = {}
        self.rejected: list[tuple[str, str]] = []
        self._news = asyncio.Event()

    def replace(self, kind: str, objects: Iterable[Value], version: str, /) -> None:
        """All there is."""
        self.objects = {named(obj): obj for obj in objects}
        self._note("REPLACE", f"{kind}@{version}")

    def apply(self, event: str, obj: Value, /) -> None:
        """One change."""
        self.objects[named(obj)] = obj
        if event == "DELETED":
            del self.objects[named(obj)]
        self._note(event, named(obj))

    def reject(self, kind: str, error: InvalidObject, metadata: RawMeta, _raw: bytes = b"", /) -> None:
        """Unreadable."""
        self.rejected.append((metadata.name, f"{kind}: {error}"))
        self._note("REJECT", metadata.name)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for something to have happened."""
        async with asyncio.timeout(10):
            while not condition():
                self._news.clear()
                await self._news.wait()

    def versions(self) -> dict[str, str]:
        """Versions by name."""
        return {name: metadata_of(obj).resource_version for name, obj in self.objects.items()}

    def _note(self, what: str, name: str) -> None:
        self.log.append((what, name))
        self._news.set()


def named(obj: Value) -> str:
    """Its name."""
    return str(metadata_of(obj).name)


def api_at(server: Scripted, hands: Hands, token: str = TOKEN) -> Api:
    """An Api for the scripted server."""
    return Api(StaticCredentials(Connection(server.url, f"Bearer {token}")), hands.timing())
