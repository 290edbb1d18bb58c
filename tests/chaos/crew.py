"""The operators of the storm, and the tiny supervisor that starts each again when it has ended, as a Deployment would.

Each goes to kube-apiserver by a proxy of its own, so that one of them can be cut off. They are the program, with exactly the shipped
rights; nothing of it is imported here.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.chaos.client import until
from tests.chaos.traces import resident
from tests.e2e.harness.cluster import free_port
from tests.e2e.harness.probe import answers_ok
from tests.e2e.harness.process import Process, guarded_pid

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.chaos.schedule import Step
    from tests.e2e.harness.cluster import ControlPlane
    from tests.e2e.harness.faultproxy import FaultProxy

FLAGS = ("--settle-seconds=1", "--sweep-seconds=5")
LEASE = {"lease_seconds": 8, "renew_seconds": 6, "retry_seconds": 1}
"""Settings by which a successor comes soon; those that this operator has."""
READY_SECONDS = 120.0
GRACE = 30.0  # as terminationGracePeriodSeconds in the Deployment
LOOK = 0.2  # seconds between two looks of the supervisor

DEEDS = {
    "kill": "SIGKILL",
    "pause": "SIGSTOP, SIGCONT",
    "end": "SIGTERM",
}
"""What the schedule's words mean."""


@dataclass(slots=True)
class Life:
    """One process of an operator: its memory over time, in seconds and MiB."""

    pid: int
    began: float
    memory: list[tuple[float, float]] = field(default_factory=list)


class Member:
    """One operator, in one process after another."""

    def __init__(
        self, number: int, plane: ControlPlane, proxy: FaultProxy, guard: str, flags: Iterable[str]
    ) -> None:
        self.number = number
        self.proxy = proxy
        self.log = plane.folder / f"chaos-operator-{number}.log"
        self.lives: list[Life] = []
        self.starts = 0
        self.asked_to_end = False
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        scripts = Path(sys.executable).parent
        program = (
            [sys.executable, "-m", "tests.chaos.mutant", guard] if guard else [str(scripts / "dra-operator")]
        )
        kubeconfig = proxy.kubeconfig(plane.folder / "dra-operator.dra-operator.kubeconfig")
        self._command = [
            *plane.guard_command,
            *program,
            "run",
            f"--kubeconfig={kubeconfig}",
            "--http-host=127.0.0.1",
            f"--http-port={port}",
            *flags,
        ]
        self._process: Process | None = None

    @property
    def is_running(self) -> bool:
        """Whether there is a process."""
        return self._process is not None and self._process.exit_status is None

    @property
    def exit_status(self) -> int | None:
        """Of the last process."""
        return self._process.exit_status if self._process else None

    @property
    def is_ready(self) -> bool:
        """Whether /readyz says so."""
        return self.is_running and answers_ok(f"{self.url}/readyz")

    def start(self) -> None:
        """A new process."""
        self.asked_to_end = False
        self.starts += 1
        self._process = Process(f"dra-operator-{self.number}", self._command, self.log, {})

    def send(self, number: signal.Signals) -> None:
        """A signal to the program itself; nothing if it is not there."""
        with suppress(ProcessLookupError):
            os.kill(self._pid(), number)

    def measure(self) -> None:
        """Note its memory."""
        with suppress(OSError):
            pid = self._pid()
            if not self.lives or self.lives[-1].pid != pid:
                self.lives.append(Life(pid, time.monotonic()))
            size = resident(Path(f"/proc/{pid}/status").read_text())
            life = self.lives[-1]
            if size is not None:
                life.memory.append((time.monotonic() - life.began, size))

    def end(self) -> None:
        """For good, in order."""
        if self._process is not None:
            self.send(signal.SIGCONT)
            self.asked_to_end = True
            self._process.stop(GRACE)

    def _pid(self) -> int:
        if self._process is None:
            raise ProcessLookupError
        return guarded_pid(self._process.pid)


class Crew:
    """All operators, and what is done to them.

    Attributes:
        members: the operators.
        done: what was done to them, and how they ended by themselves.
    """

    def __init__(self, members: list[Member], seed: int) -> None:
        self.members = members
        self.done: Counter[str] = Counter()
        self._dice = random.Random(f"crew {seed}")
        self._paused: set[int] = set()
        self.scene = asyncio.Lock()
        """Held while a scene is played in which the operators act: what the schedule has for them waits."""

    async def start(self) -> None:
        """All of them; returns when all are ready."""
        for member in self.members:
            member.start()
        await self.until_ready()

    async def until_ready(self) -> None:
        """Wait until every member says that it is ready.

        Raises:
            TimeoutError: one does not.
        """

        async def ready() -> bool:
            return all([await asyncio.to_thread(getattr, member, "is_ready") for member in self.members])

        await until(ready, READY_SECONDS)

    async def supervise(self) -> None:
        """Start again what has ended, until cancelled; measure memory."""
        looks = 0
        while True:
            for member in self.members:
                if not member.is_running:
                    if not member.asked_to_end:
                        self.done[f"ended by itself ({member.exit_status})"] += 1
                    member.start()
                    self.done["started again"] += 1
                if looks % 15 == 0:
                    member.measure()
            looks += 1
            await asyncio.sleep(LOOK)

    async def disturb(self, steps: Iterable[Step]) -> None:
        """Do to the members what the schedule says."""
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for step in steps:
                await asyncio.sleep(max(0.0, began + step.at - time.monotonic()))
                member = self.members[step.number]
                async with self.scene:
                    pass
                if member.is_running and member.number not in self._paused:
                    self.done[DEEDS[step.what]] += 1
                    group.create_task(self._disturb(member, step.what))

    async def _disturb(self, member: Member, how: str) -> None:
        if how == "pause":
            await self._pause(member, self._dice.uniform(1.0, 12.0))
            return
        self.kill(member, signal.SIGKILL if how == "kill" else signal.SIGTERM)

    def kill(self, member: Member, number: signal.Signals = signal.SIGKILL) -> None:
        """End a member's process; the supervisor starts the next one."""
        member.asked_to_end = True
        member.send(number)

    async def _pause(self, member: Member, seconds: float) -> None:
        self._paused.add(member.number)
        member.send(signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            member.send(signal.SIGCONT)
            self._paused.discard(member.number)

    def stop(self) -> None:
        """End all, for good."""
        for member in self.members:
            member.end()
