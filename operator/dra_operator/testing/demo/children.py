"""Processes that the demo starts and ends, and what they get to see of the caller's environment.

Called by `__main__` and `kubectl`. A child has a session of its own, so that Ctrl-C reaches the demo alone, which then
ends it by its process id.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import DemoFailed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

STOP_SECONDS = 15.0
"""So long a child may take to end in good order; then it is killed, and the demo has failed."""

LOG_LINES = 15

_FOREIGN = ("DRA_OPERATOR_", "KUBE")
"""Settings of the caller's own clusters, which must not reach the demo's."""


def environment(home: Path) -> dict[str, str]:
    """The caller's environment without clusters and proxies, with the demo's kubeconfig, and our tools first in the path.

    Args:
        home: a folder for everything that kubectl likes to keep in one's home.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_FOREIGN) and not name.lower().endswith("_proxy")
    }
    tools = str(Path(sys.executable).parent)
    path = os.pathsep.join([tools, kept.get("PATH", os.defpath)])
    return kept | {"HOME": str(home), "KUBECONFIG": str(kubeconfig(home)), "PATH": path}


def kubeconfig(home: Path) -> Path:
    """Where the kubeconfig is."""
    return home / "kubeconfig"


class Child:
    """A running Python module.

    Args:
        name: for people.
        process: what was started.
        log: its standard output and error.
    """

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path) -> None:
        self.name = name
        self._process = process
        self._log = log
        self._may_end = False

    async def watch(self) -> None:
        """Wait until it ends, which it may only do after `stop`.

        Raises:
            DemoFailed: it ended by itself.
        """
        status = await self._process.wait()
        if not self._may_end:
            raise DemoFailed(f"the {self.name} ended by itself with status {status}:\n{self.tail()}")

    def tail(self) -> str:
        """The end of its log."""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-LOG_LINES:])

    async def stop(self) -> int:
        """Ask it to end, and see that it does.

        Returns: its exit status; negative if it had to be killed.
        """
        self._may_end = True
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                return await self._process.wait()
        except TimeoutError:
            self._process.kill()
            return await self._process.wait()


@contextlib.asynccontextmanager
async def child(name: str, home: Path, *arguments: str) -> AsyncIterator[Child]:
    """Run `python -m arguments…`; it is gone when the context ends, however that comes about.

    Raises:
        DemoFailed: all went well, and it did not end in good order.
    """
    log = home / f"{name.replace(' ', '-')}.log"
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment(home),
            start_new_session=True,
        )
    running = Child(name, process, log)
    try:
        yield running
    except BaseException as error:
        await _end(running)
        error.add_note(f"The last that the {name} said:\n{running.tail()}")
        raise
    status = await _end(running)
    if status != 0:
        raise DemoFailed(f"the {name} ended with status {status} when asked to stop:\n{running.tail()}")


async def _end(running: Child) -> int:
    """Stop it even if we are cancelled meanwhile: a child must not outlive the demo. Returns: its exit status."""
    stopping = asyncio.ensure_future(running.stop())
    try:
        return await asyncio.shield(stopping)
    except asyncio.CancelledError:
        await asyncio.wait([stopping])
        raise
