"""Writes: the only way by which the operator changes anything. Called by controllers and by `events`.

Patches name the uid and resourceVersion that they were computed from, so that a stale decision fails (409) instead of
overwriting; a patch without them is refused here, before it is sent. Retried is only what the server has said it did not do
(429); after `ApiUnavailable` a write may or may not have happened, and only the caller can look. Before each single request the fence is
asked: an operator that does not lead sends nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from http import HTTPStatus
from math import inf
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from dra_operator import model
from dra_operator.errors import ApiError, ApiThrottled, ApiUnavailable

from .api import APPLY, JSON, MERGE, REQUEST_SECONDS, STRATEGIC
from .brake import Brake
from .kinds import KINDS
from .timing import REAL, Retries, Timing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .api import Answer, Api

MANAGER = "dra-operator"
"""Our field manager and event source (architecture, section 10)."""

MAX_WRITES = 32
"""Writes at the same time; more only adds queueing in the client (kopf.md, section 3)."""

THROTTLE_ATTEMPTS = 6
"""Tries of one write while the server throttles; then its caller's back-off takes over. Arbitrary."""

Observer = Callable[[str, str, str], None]
"""Hears verb (`patch`, `create`, `apply`, `delete`), resource (`resourceclaims/status`) and code of every answer.

The code is HTTP's as text, `unavailable` when there was no answer."""


def unobserved(verb: str, resource: str, code: str) -> None:
    """Nobody counts writes."""


class Fence(Protocol):
    """Who knows whether this operator may write (`lease.Elector`)."""

    def left(self) -> float:
        """Seconds until a request that is begun now has to be over.

        Raises:
            NotLeading: none may be begun.
        """
        ...


class NoFence:
    """For the only one that writes."""

    def left(self) -> float:
        """Without end."""
        return inf


def preconditions(metadata: model.ObjectMeta) -> dict[str, Any]:
    """The start of a patch body that fails with 409 unless the object is still exactly that one.

    To be extended by the caller: `{**preconditions(claim.metadata), "status": …}`, or, for changes of the metadata,
    `guard(claim.metadata, body)`.
    """
    return {"metadata": {"uid": metadata.uid, "resourceVersion": metadata.resource_version}}


def guard(metadata: model.ObjectMeta, body: Mapping[str, Any]) -> dict[str, Any]:
    """A patch body with the preconditions added to whatever it says of the metadata."""
    return {**body, "metadata": {**body.get("metadata", {}), **preconditions(metadata)["metadata"]}}


_log = logging.getLogger(__name__)


class Writer:
    """Bounded, guarded writes.

    Args:
        api: the server.
        limit: writes at the same time; the others queue.
        observer: hears of every answer.
        timing: the sleep and the dice.
        fence: asked before each request; every method raises its `NotLeading`.

    Attributes:
        brake: has writes wait while the server is away; reads of controllers should go through it, too.
    """

    def __init__(
        self,
        api: Api,
        limit: int = MAX_WRITES,
        observer: Observer = unobserved,
        timing: Timing = REAL,
        fence: Fence | None = None,
    ) -> None:
        self._api = api
        self._fence = fence or NoFence()
        self._slots = asyncio.Semaphore(limit)
        self._observer = observer
        self._timing = timing
        self.brake = Brake(timing)
        self._in_flight = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._resume_at = timing.monotonic()
        """When the server will hear us again, after it has throttled any of our writes."""

    @property
    def in_flight(self) -> int:
        """Writes that were started and not answered, the queued ones included."""
        return self._in_flight

    def api_version(self, kind: str) -> str:
        """The apiVersion by which the server knows a kind."""
        return self._api.kinds[kind].api_version

    async def drain(self) -> None:
        """Wait until no write is in flight; the caller bounds the time."""
        await self._idle.wait()

    async def patch(
        self,
        kind: str,
        namespace: str,
        name: str,
        body: Any,
        *,
        subresource: str = "",
        content_type: str = MERGE,
    ) -> model.Value:
        """Patch an object; merge and strategic patches carry uid and resourceVersion (`guard`).

        Returns:
            The object as it is now, for `Cluster.assume`.

        Raises:
            ValueError: a merge or strategic patch without preconditions; a bug of the caller.
            ApiConflict: the object has changed, or is another one of the same name.
            ApiError: as `Api.request`.
        """
        if content_type in {MERGE, STRATEGIC}:
            _check_guarded(body)
        path = self._api.kinds[kind].path(namespace, name, subresource)
        return _decode(kind, await self._write("patch", (kind, subresource), path, body, content_type))

    async def apply(
        self, kind: str, namespace: str, name: str, body: Mapping[str, Any], *, subresource: str = ""
    ) -> model.Value:
        """Server-side apply, with force: what we set is ours. apiVersion, kind and name are filled in.

        A `metadata.uid` in the body keeps it from hitting another object of the same name, and from creating one.

        Raises:
            ApiConflict: the object is another one.
            ApiError: as `Api.request`.
        """
        row = self._api.kinds[kind]
        metadata = {**body.get("metadata", {}), "name": name}
        whole = {"apiVersion": row.api_version, "kind": kind, **body, "metadata": metadata}
        path = row.path(namespace, name, subresource)
        return _decode(kind, await self._write("apply", (kind, subresource), path, whole, APPLY))

    async def create(self, kind: str, namespace: str, body: Mapping[str, Any]) -> model.Value:
        """Create an object; apiVersion and kind are filled in.

        Raises:
            ApiAlreadyExists: there is one of that name.
            ApiError: as `Api.request`; after `ApiUnavailable` it may exist.
        """
        whole = {"apiVersion": self._api.kinds[kind].api_version, "kind": kind, **body}
        return _decode(
            kind, await self._write("create", (kind, ""), self._api.kinds[kind].path(namespace), whole, JSON)
        )

    async def post(self, kind: str, namespace: str, body: Mapping[str, Any]) -> None:
        """Create an object of a kind that the model does not know (events); the answer is not decoded.

        Raises:
            ApiError: as `create`.
        """
        whole = {"apiVersion": self._api.kinds[kind].api_version, "kind": kind, **body}
        await self._write("create", (kind, ""), self._api.kinds[kind].path(namespace), whole, JSON)

    async def bind(self, namespace: str, name: str, body: Mapping[str, Any]) -> None:
        """Bind a pod to a node; the body holds `metadata.uid`, `metadata.resourceVersion` and `target`.

        Raises:
            ValueError: without these preconditions; a bug of the caller.
            ApiConflict: the pod is another one, in another version, gated, bound or being deleted.
            ApiError: as `create`.
        """
        _check_guarded(body)
        whole = {"apiVersion": "v1", "kind": "Binding", **body}
        await self._write(
            "create", ("Pod", "binding"), KINDS["Pod"].path(namespace, name, "binding"), whole, JSON
        )

    async def bump(self, kind: str, namespace: str, name: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Merge-patch an object that only we write (events), without preconditions; the answer as parsed JSON.

        Raises:
            ApiError: as `Api.request`.
        """
        answer = await self._write(
            "patch", (kind, ""), self._api.kinds[kind].path(namespace, name), body, MERGE
        )
        found: dict[str, Any] = msgspec.json.decode(answer.body)
        return found

    async def delete(
        self, kind: str, namespace: str, name: str, *, uid: str, resource_version: str | None = None
    ) -> None:
        """Delete one object: the one with this uid (and version), not a later one of the same name.

        Raises:
            ApiNotFound: it is gone already.
            ApiConflict: it is another one, or has changed.
            ApiError: as `Api.request`.
        """
        guarded = {"uid": uid, "resourceVersion": resource_version} if resource_version else {"uid": uid}
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": guarded}
        await self._write("delete", (kind, ""), self._api.kinds[kind].path(namespace, name), body, JSON)

    async def _write(
        self, verb: str, target: tuple[str, str], path: str, body: Any, content_type: str
    ) -> Answer:
        self._in_flight += 1
        self._idle.clear()
        try:
            async with self._slots:
                return await self._until_not_throttled(_Write(verb, *target, path, body, content_type))
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self._idle.set()

    async def _until_not_throttled(self, write: _Write) -> Answer:
        retries = Retries(self._timing)
        while True:
            await self._wait_for_turn()
            try:
                async with self.brake.turn():
                    return await self._send(write)
            except ApiThrottled as error:
                if retries.failures + 1 >= THROTTLE_ATTEMPTS:
                    raise
                self._resume_at = self._timing.monotonic() + retries.next_delay(error.retry_after)

    async def _wait_for_turn(self) -> None:
        wait = self._resume_at - self._timing.monotonic()
        if wait > 0:
            await self._timing.sleep(wait)

    async def _send(self, write: _Write) -> Answer:
        try:
            answer = await self._request(write, self._fence.left())
        except ApiError as error:
            _log.debug("%s %s: %s", write.method, write.path, error)
            self._observer(write.verb, write.resource, str(error.status) if error.status else "unavailable")
            raise
        _log.debug("%s %s: %s", write.method, write.path, answer.status)
        self._observer(write.verb, write.resource, str(answer.status))
        return answer

    async def _request(self, write: _Write, left: float) -> Answer:
        """One request, which is over in time whatever happens on the way, renewed credentials included."""
        try:
            async with asyncio.timeout(left if left < REQUEST_SECONDS else None):
                return await self._api.request(
                    write.method,
                    write.path,
                    query=write.query,
                    body=write.body,
                    content_type=write.content_type,
                )
        except TimeoutError as error:
            words = f"{write.method} {write.path}: no answer within the {left:.1f} s for which the Lease lasts; does the API server hang?"
            raise ApiUnavailable(words) from error


METHODS = {"create": "POST", "patch": "PATCH", "apply": "PATCH", "delete": "DELETE"}


class _Write(msgspec.Struct, frozen=True):
    """One write, as often as it has to be sent."""

    verb: str
    kind: str
    subresource: str
    path: str
    body: Any
    content_type: str

    @property
    def method(self) -> str:
        return METHODS[self.verb]

    @property
    def resource(self) -> str:
        plural = KINDS[self.kind].plural
        return f"{plural}/{self.subresource}" if self.subresource else plural

    @property
    def query(self) -> dict[str, str]:
        if self.verb == "delete":
            return {}
        manager = {"fieldManager": MANAGER}
        return {**manager, "force": "true"} if self.verb == "apply" else manager


def _check_guarded(body: Any) -> None:
    metadata = body.get("metadata", {}) if isinstance(body, dict) else {}
    if not (metadata.get("uid") and metadata.get("resourceVersion")):
        raise ValueError(
            "a patch must carry metadata.uid and metadata.resourceVersion of what it was computed from"
        )


def _decode(kind: str, answer: Answer) -> model.Value:
    return model.from_json(model.KINDS[kind], answer.body)


def is_ambiguous(error: ApiError) -> bool:
    """Whether the write may have happened although it failed: look before doing it again."""
    return error.status == 0 or error.status >= HTTPStatus.INTERNAL_SERVER_ERROR
