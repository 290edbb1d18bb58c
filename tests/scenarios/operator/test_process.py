"""The operator as a process: `python -m dra_operator run`, its signals and its exit status."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import re
import signal
import sys
from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.testing.fakeapi.failures import StatusError
from dra_operator.testing.fakeapi.faults import ALWAYS, WATCHES, WEATHER, Fault, unavailable

from .objects import by_template, device_class, node, pod, policy, slice_, template
from .world import PATIENCE, World

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from dra_operator.testing.fakeapi.faults import Call

CLUSTER = (node("n1"), slice_("n1", 6), node("n2"), slice_("n2", 6), device_class(), policy(), template())
CRD_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/allocationpolicies.dra-operator.io"
STOCK = ("claims", "binding", "kubelet")
LONGEST_LINE = 2**20
"""Bytes; a traceback of many groups is one line of JSON."""


class Process:
    """One operator process, and what it has logged.

    Its log is read all the time: a pipe that is full would stop the operator in the midst of a line, while the test waits for it.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.log = ""
        self._news = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            self.log += line.decode()
            self._news.set()

    async def logged(self, pattern: str) -> re.Match[str]:
        """Wait for a line."""
        async with asyncio.timeout(PATIENCE):
            while not (found := re.search(pattern, self.log)):
                assert not self._reading.done(), self.log
                self._news.clear()
                await asyncio.wait(
                    (self._reading, waiting := asyncio.create_task(self._news.wait())),
                    return_when=asyncio.FIRST_COMPLETED,
                )
                waiting.cancel()
        return found

    async def end(self, number: signal.Signals) -> int:
        """Send a signal and wait for the end; the exit status."""
        self.process.send_signal(number)
        return await self.ended()

    async def ended(self) -> int:
        """Wait until the process has ended and all that it logged is read; the exit status."""
        async with asyncio.timeout(PATIENCE):
            await self._reading
            return await self.process.wait()

    async def close(self) -> None:
        """Kill it if it still runs."""
        if self.process.returncode is None:
            self.process.kill()
        await self.ended()


@contextlib.asynccontextmanager
async def process(here: World, folder: Path, *flags: str) -> AsyncIterator[Process]:
    """A running operator; killed at the end if it still runs."""
    kubeconfig = here.server.write_kubeconfig(folder / "kubeconfig")
    command = [sys.executable, "-m", "dra_operator", "run", "--kubeconfig", str(kubeconfig)]
    more = [
        "--http-host",
        "127.0.0.1",
        "--http-port",
        "0",
        "--settle-seconds",
        "0",
        "--leader-elect",
        "false",
        *flags,
    ]
    started = Process(
        await asyncio.create_subprocess_exec(
            *command, *more, stderr=asyncio.subprocess.PIPE, limit=LONGEST_LINE
        )
    )
    try:
        yield started
    finally:
        await started.close()


async def test_sigterm_ends_it_in_order_with_status_0(tmp_path: Path) -> None:
    async with World(*STOCK) as here, process(here, tmp_path, "--log-format", "json") as operator:
        here.add(*CLUSTER)
        await operator.logged('"message": "synced with Kubernetes')
        here.add(pod("web", by_template("gpu")))
        await here.until(lambda: here.node_of("web"))
        assert await operator.end(signal.SIGTERM) == 0
        assert "Traceback" not in operator.log


async def test_sigkill_in_a_burst_then_a_new_process_comes_to_the_same_end(tmp_path: Path) -> None:
    async with World(*STOCK) as here:
        here.add(*CLUSTER)
        async with process(here, tmp_path) as first:
            await first.logged("synced with Kubernetes")
            here.add(*(pod(f"p{number:02}", by_template("gpu")) for number in range(20)))
            await here.until(lambda: len(here.devices()) >= 4)
            assert await first.end(signal.SIGKILL) == -signal.SIGKILL
        async with process(here, tmp_path) as second:
            await second.logged("synced with Kubernetes")
            await here.until(lambda: sum(bool(here.node_of(name)) for name in here.pods) == 12)
            assert (len(here.devices()), here.held_twice()) == (12, [])


async def test_without_its_own_kind_it_does_not_start_and_says_what_to_do(tmp_path: Path) -> None:
    async with World(*STOCK) as here:
        await here.user.request("DELETE", CRD_PATH)
        async with process(here, tmp_path) as operator:
            await operator.logged("cannot run: .*AllocationPolicy.*kubectl apply -k crds")
            assert await operator.ended() == 1


async def test_without_rights_it_says_once_what_is_missing_and_goes_on_when_it_has_them(
    tmp_path: Path,
) -> None:
    words = StatusError(403, "Forbidden", 'User "nobody" cannot list resource')
    async with World(*STOCK) as here:
        for resource in ("pods", "resourceclaims"):
            here.server.faults.add(Fault(words, resource=resource, times=1_000_000))
        async with process(here, tmp_path) as operator:
            found = await operator.logged(r"rights are missing: cannot list (.*) \((.*)\): apply manifests/")
            assert found.groups() == ("pods, resourceclaims", 'User "nobody" cannot list resource')
            here.server.faults.clear()
            await operator.logged("synced with Kubernetes")
            assert await operator.end(signal.SIGTERM) == 0
        assert operator.log.count("cannot list") == 2  # one line
        assert " ERROR " in operator.log
        assert "Traceback" not in operator.log


@pytest.mark.parametrize("resource", ["pods", "resourceclaims"])
async def test_sigterm_twice_before_it_has_synced_is_an_orderly_end_as_well(
    tmp_path: Path, resource: str
) -> None:
    async with World(*STOCK) as here:
        here.server.faults.add(Fault(unavailable(), resource=resource, times=1_000_000))
        async with process(here, tmp_path) as operator:
            await operator.logged(resource)
            operator.process.send_signal(signal.SIGTERM)
            assert await operator.end(signal.SIGTERM) == 0
        assert "Traceback" not in operator.log
        assert "InvalidStateError" not in operator.log


class Watched(Fault):
    """Harmless: tells when a kind is watched."""

    def __init__(self, resource: str) -> None:
        super().__init__(verbs=frozenset({"watch"}), resource=resource)
        self.begins = asyncio.Event()

    def matches(self, call: Call) -> bool:
        """Whether this request is hit."""
        if found := super().matches(call):
            self.begins.set()
        return found


@pytest.mark.parametrize("is_watched", [False, True])
async def test_when_its_own_kind_goes_it_says_so_in_a_sentence_and_ends_with_status_1(
    tmp_path: Path, *, is_watched: bool
) -> None:
    async with World(*STOCK) as here:
        watched = Watched("allocationpolicies")
        here.server.faults.add(watched)
        async with process(here, tmp_path) as operator:
            await operator.logged("synced with Kubernetes")
            if is_watched:
                await watched.begins.wait()
            await here.user.request("DELETE", CRD_PATH)
            here.server.end_watches()  # as the real one does for a kind that goes
            await operator.logged("AllocationPolicy.*kubectl apply -k crds.*ends")
            assert await operator.ended() == 1
        assert "Traceback" not in operator.log
        assert operator.log.count(" ERROR ") == 1


def lasting(here: World, weather: str, **only: Any) -> Fault:
    """That weather without an end, narrowed by what `only` says of `Fault`; the watches that stand end, to meet it."""
    fault = here.server.faults.add(dataclasses.replace(WEATHER[weather](), times=ALWAYS, **only))
    here.server.end_watches()
    return fault


async def test_a_watch_that_kopf_cannot_go_on_with_ends_the_process_and_its_successor_works(
    tmp_path: Path,
) -> None:
    """Kopf takes a 410 as an event of a watch, as kube-apiserver sends it, but not in the place of one: crash-only, as with all that it cannot do."""
    async with World(*STOCK) as here:
        here.add(*CLUSTER)
        async with process(here, tmp_path) as operator:
            await operator.logged("synced with Kubernetes")
            lasting(here, "410 on watch")
            assert await operator.ended() == 1
        assert "task kopf has ended; so does the operator" in operator.log
        here.server.faults.clear()
        here.add(pod("p", by_template("gpu")))
        async with process(here, tmp_path):
            await here.until(lambda: here.node_of("p"))


async def test_what_ends_kopf_is_told_also_where_others_of_its_requests_wait_to_be_let_in(
    tmp_path: Path,
) -> None:
    """Kopf closes the session under them; what they fail with must not be told in the place of the reason."""
    async with World(*STOCK) as here:
        here.add(*CLUSTER)
        async with process(here, tmp_path) as operator:
            await operator.logged("synced with Kubernetes")
            waits = lasting(here, "401", verbs=WATCHES, resource="allocationpolicies", user_agent="kopf")
            async with asyncio.timeout(PATIENCE):
                while len(waits.hits) < 2:  # noqa: ASYNC110 - the server's faults tell nobody that they hit
                    await asyncio.sleep(0.01)
            lasting(here, "410 on watch", resource="deviceclasses")
            assert await operator.ended() == 1
        assert "410, message='Gone'" in operator.log
        assert "AssertionError" not in operator.log


async def test_wrong_settings_are_a_usage_error(tmp_path: Path) -> None:
    async with (
        World() as here,
        process(here, tmp_path, "--mode", "replace", "--generate-claims", "never") as operator,
    ):
        await operator.logged("Error: --generate-claims: mode replace has nobody else to generate claims")
        assert await operator.ended() == 2
