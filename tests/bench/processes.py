"""What the kernel tells of processes, and of this machine: CPU time, memory, start to ready. Linux only, out of /proc.

Reads only; `tests.e2e.harness.process` starts and stops.
"""

from __future__ import annotations

import os
import platform
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.e2e.harness.probe import answers_ok

if TYPE_CHECKING:
    from collections.abc import Callable

TICKS = os.sysconf("SC_CLK_TCK")
MEGABYTE = 1_000_000
LOOK_SECONDS = 0.01
"""Between two looks at `/readyz`: the error of the start-up times."""

CALM_SECONDS = 0.5
CALM_SHARE = 0.1
"""A process is calm when it uses less than that share of a core over that time; kube-apiserver at rest uses a twentieth."""


class NotReadyError(Exception):
    """A process ended, or did not get ready."""


def cpu_seconds(pid: int) -> float:
    """CPU time that a process has used, user and system, its threads included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory(pid: int, field: str = "VmRSS") -> float:
    """Resident memory in MB (10^6 bytes): now (`VmRSS`), or the most that it has ever been (`VmHWM`)."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(rf"^{field}:\s+(\d+) kB$", status, re.MULTILINE)
    assert found, status
    return int(found[1]) * 1024 / MEGABYTE


@dataclass(frozen=True, slots=True)
class Meter:
    """CPU times of processes since `start`; keys are those of the figures."""

    before: dict[str, tuple[int, float]]

    @classmethod
    def start(cls, **pids: int) -> Meter:
        """Begin to count."""
        return cls({name: (pid, cpu_seconds(pid)) for name, pid in pids.items()})

    def per_pod(self, pods: int) -> dict[str, float]:
        """Milliseconds a pod of each process."""
        return {
            name: 1000 * (cpu_seconds(pid) - before) / pods for name, (pid, before) in self.before.items()
        }


def await_ready(url: str, begin: float, alive: Callable[[], bool], timeout: float = 60.0) -> float:
    """Wait until `/readyz` answers 200.

    Returns: seconds since `begin` (`time.monotonic`).

    Raises:
        NotReadyError: it is not alive any more, or not ready in time.
    """
    while not answers_ok(f"{url}/readyz"):
        if not alive() or time.monotonic() - begin > timeout:
            raise NotReadyError(f"{url} does not get ready")
        time.sleep(LOOK_SECONDS)
    return time.monotonic() - begin


def await_calm(pid: int, patience: float = 30.0) -> None:
    """Wait until a process has hardly anything to do, so that what came before is not counted; not longer than `patience` seconds."""
    deadline, before = time.monotonic() + patience, cpu_seconds(pid)
    while time.monotonic() < deadline:
        time.sleep(CALM_SECONDS)
        now = cpu_seconds(pid)
        if now - before < CALM_SECONDS * CALM_SHARE:
            return
        before = now


def machine() -> dict[str, Any]:
    """What the figures depend on, without anything that tells whose machine it is."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "architecture": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "pythonImplementation": platform.python_implementation(),
        "loadBefore": round(os.getloadavg()[0], 2),
    }
