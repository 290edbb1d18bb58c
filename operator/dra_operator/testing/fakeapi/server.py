"""The embedded API server as a whole: start, stop, ways in.

Used by tests in the same process (`async with FakeApi() as api`), by the demo and by `__main__`. Listens on loopback only, speaks
plain HTTP and, unless told to guard its door, lets everybody do everything.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Self

import yaml
from aiohttp import web

from dra_operator.testing.fakeapi.access import ADMIN, RBAC
from dra_operator.testing.fakeapi.bootstrap import aggregate, default_roles
from dra_operator.testing.fakeapi.crds import CRDS, CustomKinds
from dra_operator.testing.fakeapi.garbage import GarbageCollector
from dra_operator.testing.fakeapi.guard import OPEN, Guard
from dra_operator.testing.fakeapi.http import Face
from dra_operator.testing.fakeapi.kinds import Kinds
from dra_operator.testing.fakeapi.machinery import Machinery
from dra_operator.testing.fakeapi.objects import Clock, Obj, Resource, utc_now
from dra_operator.testing.fakeapi.standins import STANDINS, StandIn
from dra_operator.testing.fakeapi.store import HISTORY, Change, Store
from dra_operator.testing.fakeapi.watching import BOOKMARK_SECONDS
from dra_operator.testing.serving import HOST, Serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from types import TracebackType

    from dra_operator.testing.fakeapi.faults import Call, Faults

log = logging.getLogger(__name__)

_FIRST_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


class FakeApi:
    """One embedded API server.

    Args:
        standins: names out of `standins.STANDINS`: `claims`, `binding`, `kubelet`, `gate`.
        port: 0 takes a free one.
        clock: what time it is; tests of leases and time-outs may bring their own.
        history: changes kept per resource before watches get 410.
        bookmark_seconds: how often idle watches get a bookmark.
        rbac: tokens, impersonation and role-based access control; `kubeconfig` then is the administrator's.
    """

    def __init__(
        self,
        standins: Iterable[str] = (),
        *,
        port: int = 0,
        clock: Clock = utc_now,
        history: int = HISTORY,
        bookmark_seconds: float = BOOKMARK_SECONDS,
        rbac: bool = False,
    ) -> None:
        self.machinery = Machinery(Store(history), Kinds(), clock)
        self.guard = Guard(self.machinery.store) if rbac else None
        door = self.guard or OPEN
        self._face = Face(self.machinery, bookmark_seconds=bookmark_seconds, door=door)
        self._admin_token = self.guard.token(ADMIN) if self.guard else "anything"
        self._port = port
        self._compactor: asyncio.Task[None] | None = None
        self._serving: Serving | None = None
        self._soon: list[asyncio.Handle] = []
        self._collector = GarbageCollector(self.machinery)
        self._custom = CustomKinds(self.machinery)
        self._standins: list[StandIn] = [STANDINS[name](self.machinery) for name in standins]
        self.crashed: BaseException | None = None

    # --- ways in

    @property
    def url(self) -> str:
        """The base URL, once started."""
        return f"http://{HOST}:{self._port}"

    @property
    def store(self) -> Store:
        """The objects, for tests that look at or count them."""
        return self.machinery.store

    @property
    def faults(self) -> Faults:
        """The scripted faults."""
        return self._face.faults

    @property
    def calls(self) -> list[tuple[Call, int]]:
        """Every resource request so far, with the code that it got."""
        return list(self._face.calls)

    def objects(self, plural: str, group: str = "", namespace: str = "") -> list[Obj]:
        """All objects of a kind, as stored."""
        return [record.obj for record in self.store.items((group, plural), namespace)]

    def create(self, obj: Obj, namespace: str = "") -> Obj:
        """Create an object past HTTP, held to the same rules; returns it as stored.

        Raises:
            StatusError: as for a request.
        """
        kind = self.machinery.kinds.of(obj)
        where = namespace or obj["metadata"].get("namespace") or ("default" if kind.namespaced else "")
        return self.machinery.create(kind, where, obj).obj

    def end_watches(self) -> None:
        """End all watch streams now."""
        self._face.end_watches()

    def compact(self) -> None:
        """Forget history and unfinished lists: resumed watches and old continue tokens get 410."""
        self.store.compact()
        self._face.reader.forget()

    def compact_every(self, seconds: float) -> None:
        """From now on forget paged lists that are older than that, as etcd's compaction does; once, on a running server."""
        self._compactor = asyncio.create_task(self._compact_for_ever(seconds))

    def kubeconfig(self, token: str = "") -> str:
        """A kubeconfig for this server, as YAML; the administrator's, or that of whoever a token of `guard` is for."""
        name = "fakeapi"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": {"server": self.url}}],
            "users": [{"name": name, "user": {"token": token or self._admin_token}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        }
        return yaml.safe_dump(config, sort_keys=False)

    def write_kubeconfig(self, path: Path) -> Path:
        """Write `kubeconfig` to a file that only its owner reads."""
        path.touch(mode=0o600)
        path.write_text(self.kubeconfig())
        return path

    # --- life

    async def start(self) -> None:
        """Listen; returns when requests are served.

        Raises:
            OSError: the port is taken.
        """
        self._serving = Serving(web.AppRunner(self._face.app(), access_log=None, shutdown_timeout=1.0))
        await self._serving.start(self._port)
        self._port = self._serving.port
        self._listen()
        for name in _FIRST_NAMESPACES:
            self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        if self.guard is not None:
            self._give_roles()
        for standin in self._standins:
            standin.start(self._later)

    async def stop(self) -> None:
        """End streams, answer what is in flight, close the port."""
        self._face.close()
        if self._compactor is not None:
            self._compactor.cancel()
            await asyncio.wait([self._compactor])
        for handle in self._soon:
            handle.cancel()
        for standin in self._standins:
            standin.stop()
        if self._serving is not None:
            await self._serving.end()
            self._serving = None

    async def _compact_for_ever(self, seconds: float) -> None:
        """Forget, each time, what was old the last time."""
        version = self.store.version
        while True:
            await asyncio.sleep(seconds)
            self._face.reader.forget(version)
            version = self.store.version

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self.stop()
        if self.crashed is not None:
            raise self.crashed

    # --- what happens after a write

    def _listen(self) -> None:
        self.store.listen(self._custom.changed, CRDS)
        self.store.listen(lambda change: self._later(lambda: self._custom.establish(change)), CRDS)
        self.store.listen_all(self._changed)

    def _give_roles(self) -> None:
        """The default roles; those that gather others are kept up to date from then on."""
        for obj in default_roles():
            self.create(obj)
        aggregate(self.machinery)
        self.store.listen(lambda _: self._later(self._aggregate), (RBAC, "clusterroles"))

    def _aggregate(self) -> None:
        aggregate(self.machinery)

    def _changed(self, change: Change, resource: Resource) -> None:
        if resource == ("", "namespaces") and change.type == "ADDED":
            self._later(lambda: self._furnish(change.record.obj["metadata"]["name"]))
        if self._collector.changed(change, resource):
            self._later(self._collector.collect)

    def _furnish(self, namespace: str) -> None:
        """Every namespace has a default service account, as kube-controller-manager sees to."""
        key = (namespace, "default")
        alive = self.store.get(("", "namespaces"), ("", namespace))
        if alive is None or self.store.get(("", "serviceaccounts"), key) is not None:
            return
        if "deletionTimestamp" not in alive.obj["metadata"]:
            account: Obj = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
            self.create(account, namespace)

    def _later(self, action: Callable[[], None]) -> None:
        """Run `action` when the write that called for it has been answered; once, if asked several times meanwhile."""
        loop = asyncio.get_running_loop()
        self._soon = [handle for handle in self._soon if not handle.cancelled()][-64:]
        self._soon.append(loop.call_soon(self._guarded, action))

    def _guarded(self, action: Callable[[], None]) -> None:
        """A stand-in that fails must not fail silently: the server remembers, and leaving the context raises."""
        try:
            action()
        except Exception as error:  # a fault in a controller must reach the test, whatever it is
            log.exception("a controller of the embedded API server failed")
            self.crashed = self.crashed or error
