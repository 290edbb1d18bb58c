"""The demo as a program, the way `make demo` runs it: what it says, how it ends, and that nothing is left."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import resource
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ROOT = Path(__file__).parents[2]
MARK = "DEMO_UNDER_TEST"
SECONDS = 110
"""Several times what it takes on two slow cores."""
PROMISED = 60
"""Seconds that the demo may take. Held against the processor time of all its processes, which does not depend on what else runs here."""


class Demo:
    """One run, with a folder of its own for temporary files and a mark by which its children are known."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path) -> None:
        self.process = process
        self.folder = folder
        self.said = ""

    async def until_said(self, text: str) -> None:
        assert self.process.stdout is not None
        async with asyncio.timeout(SECONDS):
            while text not in self.said:
                line = await self.process.stdout.readline()
                assert line, f"ended without saying {text!r}:\n{self.said}"
                self.said += line.decode()

    async def ended(self) -> int:
        """The exit status, when all output has been read."""
        assert self.process.stdout is not None
        async with asyncio.timeout(SECONDS):
            self.said += (await self.process.stdout.read()).decode()
            return await self.process.wait()

    @property
    def children(self) -> list[int]:
        """Processes that have inherited the mark."""
        wanted = f"{MARK}={self.folder}".encode()
        found = []
        for environment in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if wanted in environment.read_bytes().split(b"\0"):
                    found.append(int(environment.parent.name))
        return [pid for pid in found if pid != self.process.pid]

    @property
    def left(self) -> list[object]:
        """What is still there of it: processes, temporary files."""
        return [*self.children, *(path.name for path in self.folder.iterdir())]


@contextlib.asynccontextmanager
async def demo(folder: Path, **variables: str) -> AsyncIterator[Demo]:
    """A demo in a nearly empty environment."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "dra_operator.testing.demo",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=ROOT,
        env={"PATH": os.defpath, "TMPDIR": str(folder), MARK: str(folder), **variables},
    )
    try:
        yield Demo(process, folder)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def processor_time() -> float:
    """Seconds that ended children and theirs have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def is_operator(pid: int) -> bool:
    return b"run" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")


async def test_it_shows_the_main_job_and_leaves_nothing(tmp_path: Path) -> None:
    before = processor_time()
    async with demo(tmp_path) as shown:
        status = await shown.ended()
        assert (status, shown.left) == (0, []), shown.said
        for text in (
            "pod research/train-0 → gpu-node-1: gpu-0 (gpu.nvidia.com) + pci-0000-10-1b-0 (dra.net)",
            "pod serving/serve-1 → small-node-1: gpu-2, gpu-3 (gpu.nvidia.com)",
            "pod research/big-0 → gpu-node-2: gpu-0…gpu-7 (gpu.nvidia.com)",
            "pod research/too-big waits (AllocationFailed): 0/4 nodes can serve this pod",
            "pod research/big-0 is gone; came free on gpu-node-2: gpu-0…gpu-7 (gpu.nvidia.com)",
            "pod research/big-1 → gpu-node-2: gpu-0…gpu-7 (gpu.nvidia.com)",
            "Each step was checked against the API.",
        ):
            assert text in shown.said
        assert re.search(r"Done in \d+ s;", " ".join(shown.said.split()))  # lines are wrapped anywhere
    assert 1 < processor_time() - before < PROMISED


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_interrupted_it_ends_in_good_order(tmp_path: Path, number: signal.Signals) -> None:
    async with demo(tmp_path) as shown:
        await shown.until_said("pod/train-0 created")
        shown.process.send_signal(number)
        status = await shown.ended()
        assert (status, shown.left) == (128 + number, []), shown.said


async def test_settings_of_other_clusters_do_not_reach_it(tmp_path: Path) -> None:
    """Neither kubectl nor the operator may touch what the caller's environment points at."""
    foreign = {
        "KUBECONFIG": "/nonexistent",
        "DRA_OPERATOR_MODE": "replace",
        "DRA_OPERATOR_GENERATE_CLAIMS": "never",
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "https_proxy": "http://127.0.0.1:9",
        "HTTP_PROXY": "http://127.0.0.1:9",
    }
    async with demo(tmp_path, **foreign) as shown:
        await shown.until_said("pod research/train-0 →")
        shown.process.send_signal(signal.SIGTERM)
        assert await shown.ended() == 128 + signal.SIGTERM


async def test_it_fails_when_the_operator_dies(tmp_path: Path) -> None:
    async with demo(tmp_path) as shown:
        await shown.until_said("condition met\n    $ kubectl get allocationpolicies")
        for child in filter(is_operator, shown.children):
            os.kill(child, signal.SIGKILL)
        status = await shown.ended()
        assert (status, shown.left) == (1, []), shown.said
        assert "The demo failed: the operator ended by itself with status -9" in shown.said
