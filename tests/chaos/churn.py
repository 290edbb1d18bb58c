"""Carries the schedule out: pods, claims, slices, templates and nodes come, change and go.

As the administrator, straight to kube-apiserver. Names follow from the schedule's numbers alone. Later pods have names that sort first:
in a list, who waits comes before who holds, which is the order in which a hasty operator would go wrong.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from tests.chaos.client import DRA, RefusedError, until
from tests.chaos.schedule import DEVICES, NAMED, NODES, SHARED, TEMPLATES
from tests.e2e.harness.objects import (
    claim,
    claim_template,
    device,
    device_class,
    exactly,
    node,
    pod,
    policy,
    resource_slice,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from tests.chaos.client import Admin, Object
    from tests.chaos.schedule import Step

NAMESPACE = "storm"
DRIVER = "gpu.storm.example.com"
OPERATOR = "dra-operator"
POLICIES = "/apis/dra-operator.io/v1alpha1/allocationpolicies"
SLICES, CLASSES = f"{DRA}/resourceslices", f"{DRA}/deviceclasses"
HERE = f"{DRA}/namespaces/{NAMESPACE}"
CLAIMS, TEMPLATES_PATH = f"{HERE}/resourceclaims", f"{HERE}/resourceclaimtemplates"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
EVENTS = f"/api/v1/namespaces/{NAMESPACE}/events"
NODE_PATH = "/api/v1/nodes"
AT_ONCE = 24
"""Changes under way at the same time."""


def pod_name(number: int) -> str:
    """Descending, see the module."""
    return f"pod-{99_999 - number:05}"


def node_name(number: int) -> str:
    """Of a node, its pool and its slice."""
    return f"storm-{number}"


def claim_name(number: int) -> str:
    """Of a claim that is asked for by its name: those of one pod first, then those of several."""
    return f"named-{number}" if number < NAMED else f"shared-{number - NAMED}"


class Churn:
    """The storm of changes.

    Attributes:
        done: accepted changes by what they were.
        refused: changes that the server did not accept, by code; a name that is taken or gone is part of the game.
        seconds: how long it took so far.
    """

    def __init__(self, admin: Admin) -> None:
        self.done: Counter[str] = Counter()
        self.refused: Counter[int] = Counter()
        self.seconds = 0.0
        self._admin = admin
        self._generations = dict.fromkeys(range(NODES), 1)
        self._slots = asyncio.Semaphore(AT_ONCE)

    # --- the cluster before and after

    async def prepare(self) -> None:
        """Namespace, class, nodes, slices, policy, templates, claims."""
        labels = {"dra-operator.io/enabled": "true"}
        await self._admin.make("/api/v1/namespaces", {"metadata": {"name": NAMESPACE, "labels": labels}})
        await self._admin.make(CLASSES, device_class(DRIVER, driver=DRIVER))
        await self._admin.make(POLICIES, policy("storm", {"driver": DRIVER}))
        await self.calm()

    async def calm(self) -> None:
        """Everything that the storm takes away is there again: nodes, devices, templates, claims."""
        for number in range(NODES):
            await self._admin.make(NODE_PATH, node(node_name(number)))
            await self._admin.request(
                "PATCH", f"{NODE_PATH}/{node_name(number)}", {"spec": {"unschedulable": None}}
            )
            await self._publish(number, list(range(DEVICES)))
        for number in range(TEMPLATES):
            await self._admin.make(TEMPLATES_PATH, template(number))
        for number in range(NAMED + SHARED):
            await self._admin.make(CLAIMS, claim(claim_name(number), exactly("gpu", DRIVER)))

    async def until_accounts(self) -> None:
        """Pods are refused before their namespace has its ServiceAccount."""
        path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"

        async def there() -> bool:
            try:
                await self._admin.request("GET", path)
            except RefusedError:
                return False
            return True

        await until(there, 60)

    # --- the storm

    async def run(self, steps: Iterable[Step]) -> None:
        """Carry out the steps, each in its time, or as soon as can be."""
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for step in steps:
                await asyncio.sleep(max(0.0, began + step.at - time.monotonic()))
                await self._slots.acquire()
                self.seconds = time.monotonic() - began
                group.create_task(self._step(step))
        self.seconds = time.monotonic() - began

    async def _step(self, step: Step) -> None:
        deeds: dict[str, Callable[[int, str], Coroutine[Any, Any, int]]] = {
            "create_pod": self._create_pod,
            "end_pod": self._end_pod,
            "touch_pod": self._touch_pod,
            "touch_claim": self._touch_claim,
            "publish": self._publish_some,
            "node": self._node,
            "remake_template": self._remake_template,
            "remake_claim": self._remake_claim,
        }
        try:
            changes = await deeds[step.what](step.number, step.detail)
            self.done[step.what] += changes
        except RefusedError as error:
            self.refused[error.code] += 1
        finally:
            self._slots.release()

    async def _create_pod(self, number: int, way: str) -> int:
        await self._admin.request("POST", PODS, storm_pod(number, way))
        return 1

    async def _end_pod(self, number: int, how: str) -> int:
        path = f"{PODS}/{pod_name(number)}"
        if how == "done":
            await self._admin.request("PATCH", f"{path}/status", {"status": {"phase": "Succeeded"}})
            await self._admin.request("DELETE", path)
            return 2
        await self._admin.request("DELETE", path, {"gracePeriodSeconds": 0} if how == "force" else None)
        return 1

    async def _touch_pod(self, number: int, _: str) -> int:
        await self._admin.request("PATCH", f"{PODS}/{pod_name(number)}", touch())
        return 1

    async def _touch_claim(self, number: int, _: str) -> int:
        await self._admin.request("PATCH", f"{CLAIMS}/{claim_name(number)}", touch())
        return 1

    async def _publish_some(self, number: int, missing: str) -> int:
        """A new generation; a number beyond the last device leaves none out."""
        return await self._publish(number, [index for index in range(DEVICES) if index != int(missing)])

    async def _publish(self, number: int, indexes: list[int]) -> int:
        name = node_name(number)
        self._generations[number] += 1
        pool = {"name": name, "generation": self._generations[number], "resourceSliceCount": 1}
        wanted = resource_slice(DRIVER, name, [device(f"dev-{index}") for index in indexes], pool=pool)
        await self._admin.make(SLICES, wanted)
        path = f"{SLICES}/{wanted['metadata']['name']}"
        await self._admin.request(
            "PATCH", path, {"spec": {key: wanted["spec"][key] for key in ("pool", "devices")}}
        )
        return 1

    async def _node(self, number: int, how: str) -> int:
        path = f"{NODE_PATH}/{node_name(number)}"
        if how == "remake":
            return await self._remake(NODE_PATH, node(node_name(number)))
        changes = {
            "label": touch(),
            "cordon": {"spec": {"unschedulable": True}},
            "uncordon": {"spec": {"unschedulable": None}},
        }
        await self._admin.request("PATCH", path, changes[how])
        return 1

    async def _remake_template(self, number: int, _: str) -> int:
        return await self._remake(TEMPLATES_PATH, template(number))

    async def _remake_claim(self, number: int, _: str) -> int:
        return await self._remake(CLAIMS, claim(claim_name(number), exactly("gpu", DRIVER)))

    async def _remake(self, path: str, wanted: Object) -> int:
        """Gone already is as good: a claim in use goes when its pods do, long after it was to be made anew, and the next time makes it."""
        try:
            await self._admin.request("DELETE", f"{path}/{wanted['metadata']['name']}")
        except RefusedError as error:
            if error.code != HTTPStatus.NOT_FOUND:
                raise
        await self._admin.make(path, wanted)
        return 2


def touch() -> Object:
    """A change that means nothing to anybody, but makes a new version."""
    return {"metadata": {"labels": {"storm": str(time.monotonic_ns())}}}


def template(number: int) -> Object:
    """The last asks for two devices, the others for one."""
    count = 2 if number == TEMPLATES - 1 else 1
    return claim_template(f"template-{number}", exactly("gpu", DRIVER, count=count))


def storm_pod(number: int, way: str) -> Object:
    """A pod of the storm; the gate is put on by the shipped policy."""
    name = pod_name(number)
    small: dict[str, Any] = {"terminationGracePeriodSeconds": 1}
    if way == "named":
        return pod(name, claims={"gpu": claim_name(number % NAMED)}, **small)
    if way == "shared":
        return pod(name, claims={"gpu": claim_name(NAMED + number % SHARED)}, **small)
    used = TEMPLATES - 1 if way == "pair" else number % (TEMPLATES - 1)
    extra: dict[str, Any] = {"schedulerName": OPERATOR} if way == "bound" else {}
    return pod(name, templates={"gpu": f"template-{used}"}, **small, **extra)
