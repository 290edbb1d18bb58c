"""All that ever happened to claims during a test: who held which device when, in the order in which the API server took it.

A look at the end does not find a device that two claims held for a second. The watch of this module sees every version of
every claim, and its order is that of the writes. No part of the operator is used.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections import defaultdict
from contextlib import closing
from threading import Thread
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from tests.e2e.harness.audit import holders
from tests.e2e.harness.objects import claim, exactly

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from tests.e2e.harness.audit import Device
    from tests.e2e.harness.workspace import Workspace

CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"
LAST = "end-of-history"
"""Name of a claim that is made to tell the watch that everything before it has been seen."""


class ClaimHistory:
    """Use as a context manager around what shall be watched; read the attributes afterwards.

    Attributes:
        doubles: A sentence for each device that came to be held by two claims, ever.
        allocated: When each claim was first seen allocated, by namespace/name, in seconds of the monotonic clock.
        allocations: How many times a claim went from unallocated to allocated.
    """

    def __init__(self, workspace: Workspace) -> None:
        self.doubles: list[str] = []
        self.allocated: dict[str, float] = {}
        self.allocations = 0
        self._workspace = workspace
        self._held: dict[str, frozenset[Device]] = {}
        self._holders: dict[Device, set[str]] = defaultdict(set)
        self._version = ""
        self._is_over = False
        self._thread = Thread(target=self._follow, name="claim-history", daemon=True)

    def __enter__(self) -> Self:
        listed = json.loads(self._workspace.kubectl.run("get", "--raw", CLAIMS))
        for item in listed["items"]:
            self._take("ADDED", item)
        self._version = listed["metadata"]["resourceVersion"]
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._workspace.apply(claim(LAST, exactly("none", "none.example.com")))
        self._thread.join(timeout=30)
        assert not self._thread.is_alive(), "the watch of claims did not come to its end"

    def _follow(self) -> None:
        """kube-apiserver ends watches that cannot keep up with a burst: each goes on where the last one ended."""
        while not self._is_over:
            plane = self._workspace.control_plane
            context = ssl.create_default_context(cafile=str(plane.ca_file))
            connection = http.client.HTTPSConnection(urlsplit(plane.server).netloc, context=context)
            headers = {"Authorization": f"Bearer {plane.token}"}
            with closing(connection):
                connection.request(
                    "GET", f"{CLAIMS}?watch=true&resourceVersion={self._version}", headers=headers
                )
                self._read(connection.getresponse())

    def _read(self, answer: Iterable[bytes]) -> None:
        for line in answer:
            event = json.loads(line)
            if event["type"] == "ERROR":
                self.doubles.append(f"history has a gap: {event['object'].get('message')}")
                self._is_over = True
                return
            self._take(event["type"], event["object"])
            self._version = event["object"]["metadata"]["resourceVersion"]
            if self._is_last(event["object"]):
                self._is_over = True
                return

    def _is_last(self, found: dict[str, Any]) -> bool:
        metadata = found["metadata"]
        return (metadata["namespace"], metadata["name"]) == (self._workspace.namespace, LAST)

    def _take(self, event: str, found: dict[str, Any]) -> None:
        key = f"{found['metadata']['namespace']}/{found['metadata']['name']}"
        before = self._held.get(key, frozenset())
        after = frozenset() if event == "DELETED" else frozenset(holders([found]))
        if after and not before:
            self.allocations += 1
            self.allocated.setdefault(key, time.monotonic())
        for device in before - after:
            self._holders[device].discard(key)
        for device in after - before:
            self._hold(device, key, found["metadata"]["resourceVersion"])
        self._held[key] = after

    def _hold(self, device: Device, key: str, version: str) -> None:
        if others := self._holders[device]:
            self.doubles.append(
                f"{'/'.join(device)} given to {key} at {version} while held by {', '.join(others)}"
            )
        self._holders[device].add(key)
