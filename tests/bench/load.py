"""The load generator: creates the objects of a run over HTTP, and times from a watch when each pod is placed.

Runs in the bench's own process, beside server and operator. Knows no more of them than the API.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import aiohttp

from tests.contract.client import Client

from .figures import percentile, rate
from .workload import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from tests.contract.client import Server, Watch

Obj = dict[str, Any]

PATHS = {
    "AllocationPolicy": "/apis/dra-operator.io/v1alpha1/allocationpolicies",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "Namespace": "/api/v1/namespaces",
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/namespaces/{ns}/pods",
    "ResourceClaimTemplate": "/apis/resource.k8s.io/v1/namespaces/{ns}/resourceclaimtemplates",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
}
PODS = PATHS["Pod"]
CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"
LINE = 2**20
"""Bytes of the longest line of a watch."""


class LoadError(Exception):
    """The server refused an object, or not all pods were placed in time."""


def is_released(pod: Obj) -> bool:
    """Whether a pod is past all gates: kube-scheduler may bind it."""
    return not pod["spec"].get("schedulingGates")


def is_bound(pod: Obj) -> bool:
    """Whether a pod has its node."""
    return bool(pod["spec"].get("nodeName"))


@dataclass(slots=True)
class Timeline:
    """When pods were sent and placed, in seconds of `time.monotonic`.

    Attributes:
        is_placed: what counts as placed.
        sent: pod name → when its creation was sent.
        placed: pod name → when the watch told that it is placed.
    """

    is_placed: Callable[[Obj], bool]
    sent: dict[str, float] = field(default_factory=dict)
    placed: dict[str, float] = field(default_factory=dict)

    def see(self, event: Obj, now: float) -> None:
        """One event of the watch."""
        if event["type"] in {"ADDED", "MODIFIED"} and self.is_placed(event["object"]):
            self.placed.setdefault(event["object"]["metadata"]["name"], now)

    def figures(self) -> dict[str, float]:
        """Rate and latencies; every pod that was sent must have been placed."""
        waits = [self.placed[name] - sent for name, sent in self.sent.items()]
        return {
            "podsPerSecond": rate(list(self.placed.values()), min(self.sent.values())),
            "latencyP50": percentile(waits, 50),
            "latencyP99": percentile(waits, 99),
        }


@asynccontextmanager
async def client(server: Server) -> AsyncIterator[Client]:
    """A client in the bench's namespace."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, trust_env=False, read_bufsize=LINE) as session:
        yield Client(server, session, NAMESPACE)


async def create(api: Client, objects: Iterable[Obj], clients: int, timeline: Timeline | None = None) -> None:
    """Create objects, so many at the same time.

    Raises:
        LoadError: the server refused one.
    """
    left = iter(list(objects))

    async def work() -> None:
        for obj in left:
            name = obj["metadata"]["name"]
            if timeline is not None:
                timeline.sent[name] = time.monotonic()
            answer = await api.create(PATHS[obj["kind"]], obj)
            if answer.code >= 300:
                raise LoadError(f"{obj['kind']} {name} was refused: {answer.body}")

    await asyncio.gather(*(work() for _ in range(clients)))


async def burst(api: Client, pods: list[Obj], timeline: Timeline, clients: int, patience: float) -> None:
    """Create the pods and wait until all are placed, so many seconds after the last was created.

    Raises:
        LoadError: not in time, or a pod was refused.
    """
    begin = (await api.get(PODS, limit="1")).ok().version
    following = asyncio.create_task(_follow(api, begin, timeline, len(pods)))
    try:
        await create(api, pods, clients, timeline)
        async with asyncio.timeout(patience):
            await following
    except TimeoutError:
        missing = sorted(timeline.sent.keys() - timeline.placed.keys())
        raise LoadError(
            f"{len(missing)} of {len(pods)} pods were not placed within {patience:g} s, the first is {missing[0]}"
        ) from None
    finally:
        following.cancel()
        await asyncio.wait([following])
    await version(api)  # in its time the watch's connection closes, which takes a while with TLS


async def _follow(api: Client, version: str, timeline: Timeline, count: int) -> None:
    """Watch until so many are placed. The server ends watches whose client is slow, as any may be on a busy machine: go on from there."""
    while len(timeline.placed) < count:
        watch = await api.watch(PODS, resourceVersion=version, timeoutSeconds="3600")
        try:
            version = await _see(watch, version, timeline, count)
        finally:
            watch.close()


async def _see(watch: Watch, version: str, timeline: Timeline, count: int) -> str:
    """Follow one watch until all are placed or the server ends it. Returns: the last version seen."""
    while len(timeline.placed) < count:
        try:
            event = await watch.next()
        except StopAsyncIteration:
            break
        if event["type"] == "ERROR":
            raise LoadError(f"the watch of the pods failed: {event['object']}")
        version = event["object"]["metadata"]["resourceVersion"]
        timeline.see(event, time.monotonic())
    return version


async def everything(api: Client) -> tuple[list[Obj], list[Obj]]:
    """All pods of the namespace and all claims of the cluster."""
    pods, claims = await api.get(PODS), await api.get(CLAIMS)
    return pods.ok().body["items"], claims.ok().body["items"]


async def version(api: Client) -> str:
    """Kubernetes' version, as the server tells it."""
    return str((await api.get("/version")).ok().body["gitVersion"])


async def policy_is_ready(api: Client, pools: int, patience: float = 60.0) -> None:
    """Wait until the operator allocates from that many pools.

    Raises:
        LoadError: not in time.
    """
    seen: Obj = {}
    try:
        async with asyncio.timeout(patience):
            while not _allocates(seen, pools):
                await asyncio.sleep(0.05)
                seen = (await api.get(f"{PATHS['AllocationPolicy']}/bench")).body
    except TimeoutError:
        raise LoadError(f"the policy does not get ready: {seen.get('status')}") from None


def _allocates(policy: Obj, pools: int) -> bool:
    status = policy.get("status", {})
    ready = any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for condition in status.get("conditions", [])
    )
    return ready and status.get("pools") == pools
