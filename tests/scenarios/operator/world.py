"""A small cluster in one process: the embedded API server with its stand-ins, and the whole operator on it."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import yaml

from dra_operator.app.operator import Operator
from dra_operator.kube.api import MERGE, Api
from dra_operator.kube.discovery import Served, discover
from dra_operator.model import metadata_of
from dra_operator.settings import build
from dra_operator.testing.fakeapi.faults import Fault
from dra_operator.testing.fakeapi.server import FakeApi

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from types import TracebackType

    from dra_operator.controllers.workqueue import WorkQueue
    from dra_operator.testing.fakeapi.faults import Call

    from .objects import Obj

CRD = Path(__file__).parents[3] / "crds" / "allocationpolicies.yaml"
DRA = "resource.k8s.io"
PATHS = {
    "pod": "/api/v1/namespaces/default/pods",
    "claim": "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
    "template": "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates",
    "policy": "/apis/dra-operator.io/v1alpha1/allocationpolicies",
    "rule": "/apis/resource.k8s.io/v1/devicetaintrules",
    "slice": "/apis/resource.k8s.io/v1/resourceslices",
    "class": "/apis/resource.k8s.io/v1/deviceclasses",
    "group": "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups",
    "node": "/api/v1/nodes",
}
PATIENCE = 60.0
"""Seconds within which anything awaited has to happen; far more than it takes, also where others use the processors."""

PATIENT = frozenset({"duties"})
"""Controllers that wait for others (`reportSeconds`)."""

DEAF_SECONDS = 0.5
"""What the operator has not heard by then it is taken not to hear at all: an object that it cannot read, a watch that is cut off."""


class Trap(Fault):
    """A fault that tells when it strikes, before the request is served."""

    def __init__(self, resource: str, verb: str = "patch", **how: Any) -> None:
        super().__init__(verbs=frozenset({verb}), resource=resource, **how)
        self.sprung = asyncio.Event()

    def matches(self, call: Call) -> bool:
        """Whether this request is hit."""
        struck = super().matches(call)
        if struck:
            self.sprung.set()
        return struck


class Interloper(Fault):
    """Does something to the cluster just before the operator's next write of a kind is served."""

    def __init__(self, resource: str, deed: Any, verb: str = "patch") -> None:
        super().__init__(verbs=frozenset({verb}), resource=resource)
        self.deed = deed

    def matches(self, call: Call) -> bool:
        """Whether this request is hit; the deed is done then."""
        if not call.user_agent.startswith("dra-operator") or not super().matches(call):
            return False
        self.hits.append(call)  # before the deed, which is a request, too
        self.deed()
        self.hits.pop()
        return True


class World:
    """Use as a context manager; `standins` are the embedded server's, `flags` the operator's settings."""

    def __init__(self, *standins: str, **flags: Any) -> None:
        self.server = FakeApi(standins)
        quick = {"settle_seconds": 0.0, "http_host": "127.0.0.1", "http_port": 0}
        # Most tests are about one operator, which then works at once; `test_election` and `test_failover` are about the others.
        # By name: which node a pod goes to is not what most of these are about.
        self.flags = {**quick, "leader_elect": False, "node_score": "name", **flags}
        self.operator: Operator | None = None
        self._api: Api | None = None
        self._task: asyncio.Task[int] | None = None
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        await self.server.start()
        self.server.store.listen_all(lambda *_: self._changed.set())
        self.add(yaml.safe_load(CRD.read_text()))
        self.user = Api.at(self.server.url)
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self.kill()
        await self.user.close()
        await self.server.stop()

    # --- the operator's life

    async def start(self, *, without: str = "") -> Operator:
        """Start the operator and wait until it decides; one kind may be hidden from it."""
        operator = await self.begin(without=without)
        assert self._task is not None
        ready = asyncio.create_task(operator.ready.wait())
        await asyncio.wait([ready, self._task], return_when=asyncio.FIRST_COMPLETED)
        assert ready.done(), self._task
        return operator

    def connection(self) -> Api:
        """The operator's, with its credentials."""
        return Api.at(self.server.url)

    async def begin(self, *, without: str = "") -> Operator:
        """Start the operator, and wait for nothing."""
        self._api = self.connection()
        found = await discover(self._api)
        kinds = {name: kind for name, kind in found.kinds.items() if name != without}
        missing = tuple(kind for name, kind in found.kinds.items() if name == without)
        self.operator = Operator(build(**self.flags), self._api, Served(found.server_version, kinds, missing))
        self.operator.cluster.on_change(lambda _: self._changed.set())
        self._task = asyncio.create_task(self.operator.run())
        return self.operator

    async def stop(self) -> int:
        """An orderly shutdown; the exit status."""
        assert self.operator is not None
        assert self._task is not None
        self.operator.supervisor.stop()
        status = await self._task
        await self._forget()
        return status

    async def ended(self) -> int:
        """Wait until the operator ends by itself; the exit status."""
        assert self._task is not None
        status = await self._task
        await self._forget()
        return status

    async def kill(self) -> None:
        """A crash: connections break, nothing is finished."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self._forget()

    async def _forget(self) -> None:
        if self._api is not None:
            await self._api.close()
        self.operator = self._api = self._task = None

    async def trapped(self, trap: Trap) -> None:
        """Wait until a trap has been sprung."""
        async with asyncio.timeout(PATIENCE):
            await trap.sprung.wait()

    def trap(self, resource: str, verb: str = "patch", **how: Any) -> Trap:
        """Set a trap for the next patch of a resource, or another verb."""
        made = Trap(resource, verb, **how)
        self.server.faults.add(made)
        return made

    # --- what users and drivers do

    def add(self, *objects: Obj) -> None:
        """Create objects."""
        for obj in objects:
            self.server.create(obj)

    async def delete(self, what: str, name: str) -> None:
        await self.user.request("DELETE", f"{PATHS[what]}/{name}")

    async def patch(self, what: str, name: str, body: Obj, subresource: str = "") -> None:
        path = f"{PATHS[what]}/{name}" + (f"/{subresource}" if subresource else "")
        await self.user.request("PATCH", path, body=body, content_type=MERGE)

    async def finish(self, name: str) -> None:
        """The pod's containers end well."""
        await self.patch("pod", name, {"status": {"phase": "Succeeded"}}, "status")

    # --- looking

    def stir(self) -> None:
        """Something happened that no object shows: whoever waits looks again."""
        self._changed.set()

    async def until(self, condition: Callable[[], Any], what: str = "") -> None:
        """Wait until a condition on the stored objects holds; it is asked again after every change."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"never happened: {what or condition}; {self.summary()}") from None

    async def settle(self) -> None:
        """Wait until the operator has heard all that happened, has nothing left to do at once, and has said what there is to say.

        What it will look at in minutes because others should have done it by then does not count.
        """
        await self._settle(
            lambda name, queue: (
                not (len(queue) or queue._processing or (queue.delayed and name not in PATIENT))
            )
        )

    async def settle_but_timers(self) -> None:
        """Wait until the operator has heard all that happened, and has nothing to do or to say before some timer fires."""
        await self._settle(lambda _, queue: not len(queue))

    async def _settle(self, is_calm: Callable[[str, WorkQueue], bool]) -> None:
        assert self.operator is not None
        now = asyncio.get_running_loop().time
        unheard, since, calm = self._unheard(), now(), 0
        while calm < 5:
            await asyncio.sleep(0.01)
            before, unheard = unheard, self._unheard()
            since = since if unheard == before else now()
            is_deaf = bool(unheard) and now() - since >= DEAF_SECONDS
            rests = self._has_spoken() and all(
                is_calm(loop.name, loop.queue) for loop in self.operator.brain.loops
            )
            calm = calm + 1 if rests and (is_deaf or not unheard) else 0

    def _has_spoken(self) -> bool:
        """Whether the events that are due are written; one that does not decide writes none."""
        assert self.operator is not None
        return not self.operator.ready.is_set() or self.operator._events._idle.is_set()

    def _unheard(self) -> set[tuple[str, str]]:
        """Uid and version of what the server has and the operator's model has not, or the other way about."""
        assert self.operator is not None
        cluster = self.operator.cluster
        found: set[tuple[str, str]] = set()
        for name, kind in self.operator.served.kinds.items():
            if kind.feed == "none":
                continue
            stored = (obj["metadata"] for obj in self.server.objects(kind.plural, kind.group))
            has = {(meta["uid"], meta["resourceVersion"]) for meta in stored}
            found |= has ^ {
                (meta.uid, meta.resource_version)
                for meta in map(metadata_of, cluster._stores[name].objects.values())
            }
        return found

    @property
    def claims(self) -> dict[str, Obj]:
        return {obj["metadata"]["name"]: obj for obj in self.server.objects("resourceclaims", DRA)}

    @property
    def pods(self) -> dict[str, Obj]:
        return {obj["metadata"]["name"]: obj for obj in self.server.objects("pods")}

    @property
    def rules(self) -> dict[str, Obj]:
        return {obj["metadata"]["name"]: obj for obj in self.server.objects("devicetaintrules", DRA)}

    @property
    def events(self) -> list[Obj]:
        return self.server.objects("events")

    def policy(self, name: str = "gpus") -> Obj:
        found = self.server.objects("allocationpolicies", "dra-operator.io")
        return next((obj for obj in found if obj["metadata"]["name"] == name), {})

    def condition(self, kind: str, name: str = "gpus") -> tuple[str, str]:
        """Status and reason of a policy's condition."""
        for condition in self.policy(name).get("status", {}).get("conditions", []):
            if condition["type"] == kind:
                return condition["status"], condition["reason"]
        return "", ""

    def is_gated(self, name: str) -> bool:
        return bool(self.pods[name]["spec"].get("schedulingGates"))

    def node_of(self, name: str) -> str:
        return str(self.pods.get(name, {}).get("spec", {}).get("nodeName") or "")

    def devices(self) -> dict[str, list[str]]:
        """Claim → devices, of all allocated claims."""
        found = {}
        for name, claim in self.claims.items():
            allocation = claim.get("status", {}).get("allocation")
            if allocation:
                results = allocation["devices"]["results"]
                found[name] = [f"{item['driver']}/{item['pool']}/{item['device']}" for item in results]
        return found

    def devices_of(self, pod_name: str) -> list[str]:
        """Devices of the claims that are reserved for a pod."""
        uid = self.pods[pod_name]["metadata"]["uid"]
        reserved = [
            name
            for name, claim in self.claims.items()
            if any(entry["uid"] == uid for entry in claim.get("status", {}).get("reservedFor") or [])
        ]
        return sorted(device for name in reserved for device in self.devices().get(name, []))

    def held_twice(self) -> list[str]:
        """Devices that several claims hold, and at least one as a whole; must be none, always."""
        held: list[str] = []
        whole: set[str] = set()
        for claim in self.claims.values():
            allocation = claim.get("status", {}).get("allocation") or {"devices": {"results": []}}
            for item in allocation["devices"]["results"]:
                held.append(f"{item['driver']}/{item['pool']}/{item['device']}")
                if not item.get("shareID"):
                    whole.add(held[-1])
        return sorted({device for device in held if held.count(device) > 1 and device in whole})

    def messages(self, reason: str, name: str) -> list[str]:
        """Texts of the events of that reason about an object."""
        about = (event for event in self.events if event["involvedObject"]["name"] == name)
        return [str(event["message"]) for event in about if event["reason"] == reason]

    def summary(self) -> str:
        pods = {name: (self.node_of(name), self.is_gated(name)) for name in self.pods}
        return f"pods {pods}, devices {self.devices()}, events {[event['message'] for event in self.events]}"


@contextlib.asynccontextmanager
async def world(*standins: str, objects: tuple[Obj, ...] = (), **flags: Any) -> AsyncIterator[World]:
    """A world with these objects and a running operator."""
    async with World(*standins, **flags) as made:
        made.add(*objects)
        await made.start()
        yield made
