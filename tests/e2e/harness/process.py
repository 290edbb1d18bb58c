"""One component as an operating system process: started with a log file, stopped by its own pid.

Used by `cluster` only. It never touches a process that it did not start.
"""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

GRACE = 10.0  # seconds from SIGTERM to SIGKILL; a quiet control plane needs under one
_TAIL_BYTES = 4000


def guarded_pid(guard: int) -> int:
    """Process id of the program that a guard runs (`ControlPlane.guard_command`). Raises: ProcessLookupError: It has ended."""
    found = Path(f"/proc/{guard}/task").glob("*/children")
    children = [child for path in found for child in path.read_text().split()]
    if not children:
        raise ProcessLookupError(f"process {guard} guards nothing")
    return int(children[0])


class Process:
    """A running component; starting it is what the constructor does.

    Its standard input is a pipe that this process holds open: when the test session dies, however it dies, the pipe ends and
    the component stops (the `controlplane` binary looks after that). It runs in a session of its own, so that Ctrl-C in a
    terminal reaches only the harness, which then stops the components in their order.
    """

    def __init__(self, name: str, argv: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        self.name = name
        self.log = log
        with log.open("ab") as output:
            self._popen = subprocess.Popen(
                list(argv),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **environment, "DRA_E2E_STDIN_GUARD": "1"},
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Process id; stays the same after the end."""
        return self._popen.pid

    @property
    def exit_status(self) -> int | None:
        """None while it runs; negative for the signal that ended it."""
        return self._popen.poll()

    def send(self, number: signal.Signals) -> None:
        """Sends a signal if it still runs (SIGSTOP and SIGCONT included)."""
        if self.exit_status is None:
            self._popen.send_signal(number)

    def stop(self, grace: float = GRACE) -> None:
        """SIGTERM, then SIGKILL when `grace` seconds are over; returns when the process is gone."""
        self.send(signal.SIGTERM)
        try:
            self._popen.wait(grace)
        except subprocess.TimeoutExpired:
            self.kill()
        self._close()

    def kill(self) -> None:
        """SIGKILL; returns when the process is gone."""
        self.send(signal.SIGKILL)
        self._popen.wait()
        self._close()

    def _close(self) -> None:
        if self._popen.stdin is not None:
            self._popen.stdin.close()

    def log_tail(self) -> str:
        """The last lines that it wrote."""
        with self.log.open("rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - _TAIL_BYTES))
            return log.read().decode(errors="replace")
