"""The objects of the API server as the demo sees them: lists and watches, raw.

`story` waits for conditions on it, `narrator` listens to it. On purpose simple: the server is on the same machine and does not
go away, so a watch that breaks ends the demo.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import defaultdict
from typing import TYPE_CHECKING

from .errors import DemoFailed
from .facts import Obj, key_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

    from dra_operator.kube import Api

PATIENCE = 30.0
"""Seconds within which anything awaited has to happen; far more than it takes."""

INACTIVITY = 300.0

PATHS: Final = {
    "pods": "/api/v1/pods",
    "events": "/api/v1/events",
    "claims": "/apis/resource.k8s.io/v1/resourceclaims",
    "slices": "/apis/resource.k8s.io/v1/resourceslices",
    "policies": "/apis/dra-operator.io/v1alpha1/allocationpolicies",
}


class Mirror:
    """Everything of the kinds in `PATHS`, by `namespace/name`."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._objects: defaultdict[str, dict[str, Obj]] = defaultdict(dict)
        self._listeners: list[Callable[[], None]] = []
        self._changed = asyncio.Event()

    @property
    def kinds(self) -> tuple[str, ...]:
        """What can be followed."""
        return tuple(PATHS)

    @property
    def pods(self) -> dict[str, Obj]:
        """Pods."""
        return self._objects["pods"]

    @property
    def claims(self) -> dict[str, Obj]:
        """ResourceClaims."""
        return self._objects["claims"]

    @property
    def slices(self) -> dict[str, Obj]:
        """ResourceSlices."""
        return self._objects["slices"]

    @property
    def events(self) -> dict[str, Obj]:
        """Events."""
        return self._objects["events"]

    @property
    def policies(self) -> dict[str, Obj]:
        """AllocationPolicies."""
        return self._objects["policies"]

    def listen(self, listener: Callable[[], None]) -> None:
        """Call it after every change."""
        self._listeners.append(listener)

    async def follow(self, kind: str) -> None:
        """Keep one kind up to date until cancelled.

        Raises:
            DemoFailed: the watch ended.
            ApiError: it could not even begin.
        """
        path = PATHS[kind]
        listed = json.loads((await self._api.request("GET", path)).body)
        for obj in listed["items"]:
            self._objects[kind][key_of(obj)] = obj
        query = {"watch": "true", "resourceVersion": listed["metadata"]["resourceVersion"]}
        stream = self._api.stream(path, query, inactivity=INACTIVITY)
        async with contextlib.aclosing(stream) as lines:
            async for line in lines:
                if line:
                    self._apply(kind, json.loads(line))
        raise DemoFailed(f"the watch of {kind} ended")

    def _apply(self, kind: str, event: Obj) -> None:
        obj = event["object"]
        match event["type"]:
            case "ADDED" | "MODIFIED":
                self._objects[kind][key_of(obj)] = obj
            case "DELETED":
                self._objects[kind].pop(key_of(obj), None)
            case "BOOKMARK":
                return
            case _:
                raise DemoFailed(f"the watch of {kind} reports: {obj.get('message', obj)}")
        self._changed.set()
        for listener in self._listeners:
            listener()

    async def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait until a condition holds; it is asked again after every change.

        Raises:
            DemoFailed: it did not come to hold in time.
        """
        try:
            async with asyncio.timeout(PATIENCE):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise DemoFailed(f"waited {PATIENCE:g} s in vain until {what}") from None
