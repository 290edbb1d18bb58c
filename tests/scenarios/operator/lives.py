"""Operators as processes, on the embedded server: each with its own event loop, its own Kopf, and real signals.

Several in one event loop are no pair of operators: Kopf ends with all tasks of its kind in the loop, and takes its neighbour's along. Each
life has a fault proxy of its own, so that whatever comes that way is of that process and no other. A process that ends by itself
is started again, as a Deployment would. All are forked off one that has the program loaded: to start Python costs seconds on a busy machine.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import aiohttp

from dra_operator.kube.timing import SINCE_BOOT
from tests.e2e.harness.cluster import free_port
from tests.e2e.harness.faultproxy import FaultProxy

from .operating import BEGIN, END, NEVER, operate

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.context import ForkServerProcess
    from pathlib import Path

    from .world import World

LOOK_SECONDS = 0.05
"""Between two looks at `/readyz`."""

ANSWER_SECONDS = 2.0
"""The longest that an answer of `/readyz` is waited for; a process that is stopped gives none."""

PATIENCE = 300.0
"""Seconds within which anything awaited has to happen. Processes that have to share the processors with many others take their time."""

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([operate.__module__])


class Life:
    """One process of an operator.

    Attributes:
        status: its exit status; None while it lives. Negative for the signal that ended it.
        proxy: the way to the API server that only it goes; from its beginning on.
        readyz: what it said last; empty before it has, and when it has ended.
    """

    def __init__(self, here: World, flags: list[str], without: str = "") -> None:
        self.status: int | None = None
        self.readyz: dict[str, Any] = {}
        self._server = here.server.url
        self._flags = flags
        self._without = without
        self._belief = FORKS.RawArray("d", NEVER)  # no lock: one who is killed would keep it
        self._ended = asyncio.Event()
        self._process: ForkServerProcess | None = None
        self._looking: asyncio.Task[None] | None = None

    async def begin(self, kubeconfig: Path, log: Path) -> None:
        """Start it; returns when the process is there."""
        self.proxy = FaultProxy(self._server)
        self.proxy.__enter__()
        port = free_port()
        arguments = [
            "run",
            f"--kubeconfig={self.proxy.kubeconfig(kubeconfig)}",
            "--http-host=127.0.0.1",
            f"--http-port={port}",
            *self._flags,
        ]
        given = (arguments, str(log), self._belief, self._without)
        process = FORKS.Process(target=operate, args=given, daemon=True)
        await asyncio.to_thread(process.start)
        self._process = process
        asyncio.get_running_loop().add_reader(process.sentinel, self._end)
        self._looking = asyncio.create_task(self._look(f"http://127.0.0.1:{port}/readyz"))

    async def ended(self) -> int:
        """Wait for its end; the exit status."""
        await self._ended.wait()
        assert self.status is not None
        return self.status

    def send(self, number: signal.Signals) -> None:
        """A signal; nothing if it has ended."""
        if self.status is None and self._process is not None and self._process.pid:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, number)

    async def close(self) -> None:
        """Kill what is left of it. What its proxy holds back is let go."""
        if self._process is None:  # never begun
            return
        self.send(signal.SIGKILL)
        await self.ended()
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])
        await asyncio.to_thread(self.proxy.__exit__, None, None, None)

    @property
    def leads(self) -> bool:
        """Whether the process believes, now, that it may write."""
        now = SINCE_BOOT.monotonic()
        return self.status is None and self._belief[BEGIN] <= now < self._belief[END]

    @property
    def is_ready(self) -> bool:
        """Whether it works, or could follow at once."""
        return self.readyz.get("status") == "ok"

    @property
    def is_at_work(self) -> bool:
        """Whether its controllers run."""
        return self.is_ready and bool(self.readyz["controllers"]) and self.readyz["role"] == "leader"

    def _end(self) -> None:
        assert self._process is not None
        asyncio.get_running_loop().remove_reader(self._process.sentinel)
        self._process.join()
        self.status = self._process.exitcode
        self._process.close()
        self.readyz = {}
        self._ended.set()

    async def _look(self, url: str) -> None:
        timeout = aiohttp.ClientTimeout(total=ANSWER_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            while not self._ended.is_set():
                try:
                    async with session.get(url) as answer:
                        found = await answer.json()
                except (aiohttp.ClientError, TimeoutError):
                    found = {}  # not there yet, stopped, or gone
                self.readyz = {} if self._ended.is_set() else found
                await asyncio.sleep(LOOK_SECONDS)


class Member:
    """One of several operators, in one life after another.

    Attributes:
        life: the one that it has, or had last.
        log: what all of them have logged.
        unasked: exit statuses of lives that ended although nobody had done anything to them.
    """

    def __init__(
        self, here: World, folder: Path, name: str, flags: Callable[[], list[str]], without: str = ""
    ) -> None:
        self.unasked: list[int] = []
        self.log = folder / f"{name}.log"
        folder = folder / name
        folder.mkdir()
        self._kubeconfig = here.server.write_kubeconfig(folder / "kubeconfig")
        self._made: Callable[[], Life] = lambda: Life(here, flags(), without)
        self._keeping: asyncio.Task[None] | None = None
        self._is_kept = False
        self.life = self._made()

    async def begin(self) -> None:
        """A new life, and another whenever one ends by itself."""
        await self.close()
        self._is_kept = True
        await self._live()
        self._keeping = asyncio.create_task(self._keep())

    def leave(self) -> Life:
        """When the life that it has ends, nobody starts another until `begin`."""
        self._is_kept = False
        return self.life

    async def close(self) -> None:
        """Its end; also of a life that began just when it was left."""
        self._is_kept = False
        while self._keeping is not None and not self._keeping.done():
            self.life.send(signal.SIGKILL)
            await asyncio.wait([self._keeping], timeout=LOOK_SECONDS)
        if self._keeping is not None:
            await self._keeping
        await self.life.close()

    async def _live(self) -> None:
        self.life = self._made()
        await self.life.begin(self._kubeconfig, self.log)

    async def _keep(self) -> None:
        while True:
            status = await self.life.ended()
            if not self._is_kept:
                return
            self.unasked.append(status)
            await self.life.close()
            await self._live()


async def until(condition: Callable[[], Any], what: str) -> None:
    """Wait for something that no change of an object tells, or that takes processes to happen."""
    now = asyncio.get_running_loop().time
    began = now()
    while not condition():
        assert now() - began < PATIENCE, f"never happened: {what}"
        await asyncio.sleep(0.01)
