"""`make e2e KEEP=1`: a control plane for a developer, up until a signal ends it, and then gone without a trace."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.harness.kubectl import Kubectl
from tests.e2e.harness.objects import node

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timeout(180)

ROOT = Path(__file__).parents[2]
MARK = "KEEP_UNDER_TEST"
EXPORT = "export KUBECONFIG="


@contextmanager
def kept(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """The program with a folder of its own for temporary files, and a mark by which its children are known."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.e2e.harness"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(folder), MARK: str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()  # nothing happens if it has ended; its children end with it


def processes(folder: Path) -> list[int]:
    """Those that live and have inherited the mark."""
    wanted = f"{MARK}={folder}".encode()
    found = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if wanted in environment.read_bytes().split(b"\0"):
                found.append(int(environment.parent.name))
    return found


def kubeconfig(process: subprocess.Popen[str]) -> Path:
    """What the first line tells the developer to export."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith(EXPORT), line
    return Path(line.removeprefix(EXPORT).strip())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_kept_control_plane_works_until_a_signal_and_leaves_nothing(
    tmp_path: Path, number: signal.Signals
) -> None:
    with kept(tmp_path) as process:
        developer = Kubectl(kubeconfig(process))
        developer.apply(node("kept"))
        developer.run("wait", "--for=condition=Ready", "--timeout=30s", "node/kept")
        nodes = developer.run("get", "nodes", "--output=name")
        running = processes(tmp_path)
        process.send_signal(number)
        status = process.wait(timeout=60)

    assert nodes == "node/kept\n"
    assert len(running) > len(("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"))
    assert (status, processes(tmp_path), list(tmp_path.iterdir())) == (0, [], [])
