"""The HTTP face: requests in, JSON, tables and streams out.

Used by `server`. It decides nothing about objects: it reads the request, asks `machinery`, `reading` or `watching`, and writes
down the answer. Who may do what is for the door (`guard`).
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from aiohttp import web

from dra_operator.testing.fakeapi import failures, patches
from dra_operator.testing.fakeapi.access import Action, Asker, denied
from dra_operator.testing.fakeapi.binding import bind
from dra_operator.testing.fakeapi.conversion import presented
from dra_operator.testing.fakeapi.documents import document
from dra_operator.testing.fakeapi.failures import StatusError
from dra_operator.testing.fakeapi.faults import Call, Fault, Faults
from dra_operator.testing.fakeapi.guard import OPEN, action_of
from dra_operator.testing.fakeapi.objects import Obj, encoded
from dra_operator.testing.fakeapi.options import delete_options, write_options
from dra_operator.testing.fakeapi.reading import Reader
from dra_operator.testing.fakeapi.requests import Target, duplicate_fields, parsed_body, target
from dra_operator.testing.fakeapi.reviews import REVIEWING, account_token, review
from dra_operator.testing.fakeapi.spoiling import spoiled
from dra_operator.testing.fakeapi.tables import table, wants_table, watch_line
from dra_operator.testing.fakeapi.watching import BOOKMARK_SECONDS, Watcher, WatchRequest, error_event
from dra_operator.validation.causes import Cause

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from dra_operator.testing.fakeapi.access import Identity
    from dra_operator.testing.fakeapi.guard import Door
    from dra_operator.testing.fakeapi.kinds import Kind
    from dra_operator.testing.fakeapi.machinery import Machinery
    from dra_operator.testing.fakeapi.options import WriteOptions
    from dra_operator.testing.fakeapi.store import Record

_LOG_LIMIT = 100_000


@dataclass(slots=True)
class Face:
    """The request handlers over one machinery."""

    machinery: Machinery
    faults: Faults = field(default_factory=Faults)
    bookmark_seconds: float = BOOKMARK_SECONDS
    door: Door = OPEN
    calls: list[tuple[Call, int]] = field(default_factory=list)
    watchers: set[Watcher] = field(default_factory=set)
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    reader: Reader = field(init=False)

    def __post_init__(self) -> None:
        self.reader = Reader(self.machinery.store)

    def app(self) -> web.Application:
        """The application that serves everything."""
        app = web.Application(client_max_size=16 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self.serve)
        return app

    def end_watches(self) -> None:
        """End all streams now, as an API server that closes slow watchers (or stops) does."""
        for watcher in tuple(self.watchers):
            watcher.end()

    def close(self) -> None:
        """End all streams, and hang up on those whom nothing else would ever tell."""
        self.end_watches()
        self.closing.set()

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        found = target(request.path)
        try:
            if found is None:
                self._enter(request, Action(request.method.lower(), path=request.path))
                return document(self.machinery.kinds, request.path, request.headers.get("Accept", ""))
            return await self._faulty(request, found)
        except StatusError as error:
            return _refusal(error)

    def _enter(self, request: web.Request, action: Action) -> Identity:
        """Who asks; raises 401 or 403."""
        who = self.door.identify(request.headers, action)
        self._require(who, action)
        return who

    def _require(self, who: Identity, action: Action) -> None:
        if not self.door.allows(who, action):
            raise denied(who, action)

    async def _faulty(self, request: web.Request, found: Target) -> web.StreamResponse:
        """Serve a resource request, unless a scripted fault gets in the way."""
        call = found.call(request.method, request.query, request.headers.get("User-Agent", ""))
        fault = self.faults.hit(call) or Fault()
        await (
            request.read()
        )  # a request that is kept back has come: whether its client stays is nothing to it
        if not await self._arrives(fault):
            return _hang_up(request)
        try:
            if fault.error is not None:
                raise fault.error
            who = self._enter(request, action_of(call, request.query))
            response = await self._resource(request, replace(found, who=who, spoil=fault.spoil), call)
        except StatusError as error:
            self._log(call, error.code, fault)
            raise
        self._log(call, response.status, fault)
        return await self._answered(request, fault, response)

    async def _arrives(self, fault: Fault) -> bool:
        """Whether the request gets as far as the server; False to hang up."""
        if fault.delay:
            await asyncio.sleep(fault.delay)
        if fault.hold is not None:
            fault.hold.reached.set()
            await fault.hold.released.happened()
        if fault.hang:
            await self.closing.wait()
        return not (fault.cut or fault.hang)

    async def _answered(
        self, request: web.Request, fault: Fault, response: web.StreamResponse
    ) -> web.StreamResponse:
        """The answer of a request that was served, as far as it comes."""
        if fault.stall is not None and isinstance(response, web.Response):
            await _begin(request, response, fault.stall)
        if fault.mute or fault.stall is not None:
            await self.closing.wait()
        return _hang_up(request) if fault.lose_answer or fault.mute or fault.stall is not None else response

    def _log(self, call: Call, code: int, fault: Fault) -> None:
        if fault.error is None:
            fault.codes.append(code)
        if len(self.calls) < _LOG_LIMIT:
            self.calls.append((call, code))

    # --- resources

    async def _resource(self, request: web.Request, found: Target, call: Call) -> web.StreamResponse:
        if call.verb == "create" and found.group in REVIEWING:
            return await self._review(request, found)
        kind = self.machinery.kinds.at(found.group, found.version, found.plural)
        _check_subresource(kind, found, call.verb)
        handlers: dict[str, Callable[[web.Request, Target, Kind], Awaitable[web.StreamResponse]]] = {
            "get": self._get,
            "list": self._list,
            "watch": self._watch,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_collection,
        }
        if call.verb not in handlers:
            raise failures.method_not_allowed()
        return await handlers[call.verb](request, found, kind)

    async def _review(self, request: web.Request, found: Target) -> web.Response:
        answer = review(self.door, found.who, found, await _body(request))
        if answer is None:
            raise failures.unknown_path()
        return _json(answer, 201)

    async def _get(self, request: web.Request, found: Target, kind: Kind) -> web.Response:
        record = self.machinery.get(kind, found.key)
        if wants_table(request.headers.get("Accept", "")):
            metadata = {"resourceVersion": str(record.version)}
            return _json(table(kind, [record], metadata, request.query, self.machinery.clock()))
        return _raw(record.raw)

    async def _list(self, request: web.Request, found: Target, kind: Kind) -> web.Response:
        page = self.reader.page(kind, found.namespace, request.query)
        if wants_table(request.headers.get("Accept", "")):
            return _json(table(kind, page.records, page.metadata(), request.query, self.machinery.clock()))
        return _raw(page.body(kind))

    async def _create(self, request: web.Request, found: Target, kind: Kind) -> web.Response:
        body = await _body(request)
        if found.subresource == "binding":
            bind(self.machinery, found.key, body)
            return _json(_success(201), 201)
        if found.subresource == "token":
            return _json(account_token(self.door, self.machinery, found, body), 201)
        options = await self._options(request, found, "create")
        record = self.machinery.create(kind, found.namespace, body, options)
        return _warned(_raw(presented(kind, record).raw, 201), options)

    async def _update(self, request: web.Request, found: Target, kind: Kind) -> web.Response:
        options = await self._options(request, found, "update")
        record = self.machinery.update(kind, found.key, await _body(request), options)
        return _warned(_raw(presented(kind, record).raw), options)

    async def _patch(self, request: web.Request, found: Target, kind: Kind) -> web.Response:
        accepted = [patches.JSON, patches.MERGE, *([] if kind.custom else [patches.STRATEGIC]), patches.APPLY]
        if request.content_type not in accepted:
            known = request.content_type == patches.STRATEGIC
            raise failures.unsupported_media_type(accepted) if known else failures.no_media_type()
        if request.content_type == patches.APPLY and not request.query.get("fieldManager"):
            cause = Cause("fieldManager", "FieldValueRequired", "Required value: is required for apply patch")
            raise failures.invalid(failures.About("meta.k8s.io", "PatchOptions"), [cause])
        options = await self._options(request, found, "patch")
        patch = parsed_body(await request.read(), request.content_type)
        record, created = self.machinery.patch(kind, found.key, request.content_type, patch, options)
        return _warned(_raw(presented(kind, record).raw, 201 if created else 200), options)

    async def _options(self, request: web.Request, found: Target, verb: str) -> WriteOptions:
        options = write_options(request.query, _agent(request), found.subresource, verb)
        who = found.who
        create = Action("create", found.group, found.plural, found.namespace, found.name)
        asker = Asker(who, self.door.allows)
        twice = duplicate_fields(await request.read()) if options.validation != "Ignore" else []
        creating = partial(self._require, who, create)
        return replace(options, asker=asker, creating=creating, duplicates=twice)

    async def _delete(self, request: web.Request, found: Target, kind: Kind) -> web.Response:
        options = delete_options(request.query, await _body(request))
        record, gone = self.machinery.delete(kind, found.key, options)
        if gone and not kind.returns_deleted:
            return _json(_deleted(kind, record))
        return _raw(presented(kind, record).raw)

    async def _delete_collection(self, request: web.Request, found: Target, kind: Kind) -> web.Response:
        options = delete_options(request.query, await _body(request))
        page = self.reader.page(kind, found.namespace, request.query)
        for record in page.records:
            metadata = record.obj["metadata"]
            self.machinery.delete(kind, (metadata.get("namespace") or "", metadata["name"]), options)
        return _raw(page.body(kind))

    # --- watches

    async def _watch(self, request: web.Request, found: Target, kind: Kind) -> web.StreamResponse:
        query = dict(request.query)
        if found.name:
            query["fieldSelector"] = f"metadata.name={found.name}"
        watcher = Watcher(
            self.machinery.store, WatchRequest.parsed(kind, found.namespace, query), self.bookmark_seconds
        )
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        self.watchers.add(watcher)
        try:
            async with contextlib.aclosing(self._lines(request, kind, watcher)) as lines:
                async for line in spoiled(lines, found.spoil, self.closing):
                    await response.write(line)
        except ConnectionError:
            watcher.end()  # the client is gone, which is how most watches end, or is to be cut off
            _hang_up(request)
        finally:
            self.watchers.discard(watcher)
        return response

    async def _lines(self, request: web.Request, kind: Kind, watcher: Watcher) -> AsyncGenerator[bytes, None]:
        """The stream, in pieces that end with a line."""
        tabular = wants_table(request.headers.get("Accept", ""))
        first = True
        try:
            async for batch in watcher.events():
                if tabular:
                    lines = [
                        watch_line(kind, event, request.query, self.machinery.clock(), first=first)
                        for event in batch
                    ]
                    first = first and not batch
                else:
                    lines = [event.line() for event in batch]
                if lines:
                    yield b"".join(lines)
        except StatusError as error:
            yield error_event(error).line()


def _check_subresource(kind: Kind, found: Target, verb: str) -> None:
    known = {name for name, _ in kind.subresources}
    if found.subresource in known and verb != "create":
        raise failures.method_not_allowed()
    if (
        found.subresource
        and found.subresource not in known
        and not (found.subresource == "status" and kind.status)
    ):
        raise failures.unknown_path()
    if kind.namespaced and not found.namespace and (found.name or verb == "create"):
        raise failures.unknown_path()
    posts_to_object = verb == "create" and found.name and found.subresource not in known
    if posts_to_object or (verb in ("update", "patch") and not found.name):
        raise failures.method_not_allowed()


async def _body(request: web.Request) -> Obj:
    body = parsed_body(await request.read(), request.content_type)
    if not isinstance(body, dict):
        raise failures.bad_request("the body must be an object")
    return body


def _agent(request: web.Request) -> str:
    return request.headers.get("User-Agent", "")


def _warned(response: web.Response, options: WriteOptions) -> web.Response:
    for text in dict.fromkeys(options.warnings):
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        response.headers.add("Warning", f'299 - "{escaped}"')
    return response


def _json(body: Any, status: int = 200) -> web.Response:
    return _raw(encoded(body), status)


def _raw(body: bytes, status: int = 200) -> web.Response:
    return web.Response(body=body, status=status, content_type="application/json")


def _refusal(error: StatusError) -> web.Response:
    response = _json(error.status(), error.code)
    if error.retry_after is not None:
        response.headers["Retry-After"] = str(error.retry_after)
    return response


async def _begin(request: web.Request, whole: web.Response, size: int) -> None:
    """The head of an answer, and the first bytes of its body."""
    body = whole.body if isinstance(whole.body, bytes) else b""
    head = web.StreamResponse(status=whole.status, headers={"Content-Type": "application/json"})
    head.content_length = len(body)
    await head.prepare(request)
    await head.write(body[:size])


def _hang_up(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)


def _success(code: int) -> Obj:
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code}


def _deleted(kind: Kind, record: Record) -> Obj:
    details = {"name": record.obj["metadata"]["name"], "kind": kind.plural, "uid": record.uid}
    if kind.group:
        details["group"] = kind.group
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
