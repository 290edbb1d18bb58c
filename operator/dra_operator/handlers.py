"""Kopf's part: one `on.event` handler a kind that pours raw events into the sink, the settings, the login, and the gate's admission handlers.

Nothing else of Kopf is used on purpose (architecture section 5): create, update and delete handlers, indices, timers and daemons
would write annotations and finalizers onto objects that are not ours. Handlers return None; a value would be written to the
object's status. Called by `app` only.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import aiohttp
import kopf

from .model import GATE, SCHEDULER_NAME, NewPod, PodSchedulingGate, from_object, to_object
from .placement import Admission, Way, admit

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from .kube.credentials import Credentials
    from .kube.kinds import Kind


INSIST_AFTER, INSIST_PAUSE = 6.0, 0.2
"""Seconds after which Kopf has cancelled what it has left, and between two cancellations of ours. Kopf gives its tasks 5 s to end by themselves."""

LOGIN_PAUSE = 5.0
"""Seconds before credentials that were refused are tried once more, where there are no others. Arbitrary."""


class RawSink(Protocol):
    """Where raw events go."""

    def take(self, kind: str, event: str | None, raw: Mapping[str, Any]) -> None:
        """One event; its type is None for objects of the initial list."""
        ...


class EndlessBackoffs:
    """Seconds between retries of Kopf's requests: growing to a cap and never ending, or an outage of a minute would end Kopf.

    Iterated anew by Kopf for each request, so it must not be a generator.
    """

    def __iter__(self) -> Iterator[float]:
        """From half a second to half a minute, for ever."""
        return itertools.chain((0.5, 1.0, 2.0, 4.0, 8.0, 16.0), itertools.repeat(30.0))


class NoDiffBase(kopf.DiffBaseStorage):
    """Remembers nothing: the last seen state would be an annotation on every object. Nor is there anything to compare with it."""

    def build(self, *, body: kopf.Body, extra_fields: object = None) -> kopf.BodyEssence:  # noqa: ARG002 - the signature is Kopf's
        """Nothing of the object: Kopf's own would be a deep copy of it at every event, for handlers of changes, which we have none of."""
        return kopf.BodyEssence()

    def fetch(self, *, body: kopf.Body) -> None:
        """Nothing is remembered."""

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: kopf.BodyEssence) -> None:
        """Nothing is written."""


class NoProgress(kopf.ProgressStorage):
    """Keeps no progress: `on.event` handlers have none, and it would be an annotation, too."""

    def fetch(self, *, key: str, body: kopf.Body) -> None:
        """Nothing is kept."""

    def store(self, *, key: str, record: Any, body: kopf.Body, patch: kopf.Patch) -> None:
        """Nothing is written."""

    def purge(self, *, key: str, body: kopf.Body, patch: kopf.Patch) -> None:
        """Nothing to remove."""

    def touch(self, *, body: kopf.Body, patch: kopf.Patch, value: str | None) -> None:
        """Nothing is touched."""

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        """The essence as it is."""
        return essence


def build_registry(
    sink: RawSink, kinds: Iterable[Kind], credentials: Credentials, heard: Callable[[str, int], None]
) -> kopf.OperatorRegistry:
    """All handlers, for the kinds that Kopf feeds.

    Args:
        sink: gets the events.
        kinds: what to watch.
        credentials: of the session.
        heard: hears path and status of each answer to a watch: Kopf tries again for ever what is forbidden, and tells nobody.
    """
    registry = kopf.OperatorRegistry()
    for kind in kinds:
        _watch(registry, sink, kind)
    _login(registry, _LetIn(credentials, heard))
    return registry


def add_gate(registry: kopf.OperatorRegistry, admitted: Callable[[Admission], None]) -> None:
    """Answer the API server's questions about new pods, each way at a path of its own (the handler's id).

    Args:
        registry: gets the handlers.
        admitted: hears each answer.
    """
    for way in Way:
        _admit(registry, way, admitted)


def build_settings(server: kopf.WebhookServerProtocol | None = None) -> kopf.OperatorSettings:
    """Kopf as a feed and nothing else (kopf.md 6.11), and as the gate's webhook if there is a server for it.

    Kopf manages no webhook configuration: that would need rights to write them.
    """
    settings = kopf.OperatorSettings()
    settings.admission.server = server
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.persistence.diffbase_storage = NoDiffBase()
    settings.persistence.progress_storage = NoProgress()
    settings.queueing.idle_timeout = 0.2
    settings.watching.chunk_size = 500
    settings.networking.error_backoffs = EndlessBackoffs()
    settings.networking.trust_env = False
    # One line an event at INFO ("Handler succeeded") would be most of our log.
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)
    return settings


def _watch(registry: kopf.OperatorRegistry, sink: RawSink, kind: Kind) -> None:
    @kopf.on.event(kind.group, kind.version, kind.plural, id=f"see-{kind.plural}", registry=registry)
    async def see(event: kopf.RawEvent, **_: object) -> None:
        sink.take(kind.name, event["type"], event["object"])


def _admit(registry: kopf.OperatorRegistry, way: Way, admitted: Callable[[Admission], None]) -> None:
    @kopf.on.mutate("", "v1", "pods", id=way.value, operations=["CREATE"], registry=registry)
    async def gate(body: kopf.Body, patch: kopf.Patch, **more: Any) -> None:
        pod = from_object(NewPod, body)
        answer = admit(pod, way) if more["operation"] == "CREATE" else Admission.UNTOUCHED
        if answer is Admission.NAMED:
            patch.spec["schedulerName"] = SCHEDULER_NAME
        elif answer is Admission.GATED:
            gates = (*pod.spec.scheduling_gates, PodSchedulingGate(GATE))
            patch.spec["schedulingGates"] = [to_object(found) for found in gates]
        admitted(answer)


def _login(registry: kopf.OperatorRegistry, let_in: _LetIn) -> None:
    logins = itertools.count()

    @kopf.on.login(id="login", registry=registry)
    async def login(**_: object) -> kopf.AiohttpSession:
        """A session of ours, which renews its credentials itself; asked for anew only when it was closed.

        Kopf takes only what differs from what it had before, which a priority does that means nothing for a single login.
        """
        connection = await let_in.credentials.current()

        async def still_open(
            request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
        ) -> aiohttp.ClientResponse:
            """Kopf closes its session at its end, whatever tasks of its go on, and asks the closed one for why they fail.

            aiohttp looks before its middlewares only. The assertion that fails after them would be told instead of what ends Kopf.
            """
            if session.closed:
                raise RuntimeError("Session is closed")
            return await handler(request)

        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=connection.ssl_context()),
            middlewares=(let_in, still_open),
            proxy=connection.proxy,
            trust_env=False,
        )
        return kopf.AiohttpSession(
            server=connection.server,
            priority=next(logins),
            default_namespace=connection.namespace,
            aiohttp_session=session,
        )


class _LetIn:
    """Adds the credentials to each request, and others after a 401, however long it takes.

    Kopf must never see a 401: it would close the connections of all its watches, and of those some then end the whole of Kopf, or wait for a
    login that has been cancelled. Nobody but this sees how its watches are answered.
    """

    def __init__(self, credentials: Credentials, heard: Callable[[str, int], None]) -> None:
        self.credentials = credentials
        self._heard = heard

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        connection = await self.credentials.current()
        while True:
            if connection.authorization:
                request.headers["Authorization"] = connection.authorization
            response = await handler(request)
            if response.status != HTTPStatus.UNAUTHORIZED:
                if "watch" in request.url.query:
                    self._heard(request.url.path, response.status)
                return response
            response.release()
            renewed = await self.credentials.renew(connection)
            if renewed == connection:
                await asyncio.sleep(LOGIN_PAUSE)
            connection = renewed


KOPF = str(Path(kopf.__file__).parent)


class _Ours(set[Any]):
    """All tasks but Kopf's. At its end Kopf waits for, then cancels, the tasks of the loop that it was not told to leave alone.

    Its own must not be among them: one whose cancellation got lost in a broken connection would keep the process alive.
    """

    def __contains__(self, task: object) -> bool:
        """Whether the task runs other code than Kopf's."""
        code = getattr(task.get_coro(), "cr_code", None) if isinstance(task, asyncio.Task) else None
        return code is None or not code.co_filename.startswith(KOPF)


async def run_kopf(
    registry: kopf.OperatorRegistry,
    settings: kopf.OperatorSettings,
    flags: Collection[Any],
    started: Callable[[], None],
) -> None:
    """Run Kopf until the stop flag (the first of `flags`) is set; the second is set when it watches.

    Args:
        registry: what to watch.
        settings: how.
        flags: asyncio events.
        started: called when Kopf has put its signal handlers in place, to replace them: they do not stand a second signal.
    """
    stop, ready = flags
    tasks = await kopf.spawn_tasks(
        registry=registry, settings=settings, clusterwide=True, stop_flag=stop, ready_flag=ready
    )
    started()
    insisting = asyncio.create_task(_insist(tasks))
    try:
        await kopf.run_tasks(tasks, ignored=_Ours())
    finally:
        insisting.cancel()


async def _insist(roots: Collection[asyncio.Task[Any]]) -> None:
    """Once Kopf's roots are gone, and its other tasks are not although it has cancelled them: cancel these until they are gone, too.

    Kopf does that once, together with what tells them of pauses: a watch takes that for a pause, goes on, and waits for a login that nobody
    is left to make; and Kopf for the watch, without end.
    """
    await asyncio.wait(roots)
    await asyncio.sleep(INSIST_AFTER)
    ours = _Ours()
    while True:
        for task in asyncio.all_tasks():
            if task not in ours:
                task.cancel()
        await asyncio.sleep(INSIST_PAUSE)
