"""The operator writes to no file: the manifests give its container a read-only file system, and no volume to write to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from .objects import by_template, pod
from .test_process import CLUSTER, STOCK, process
from .world import World

if TYPE_CHECKING:
    from pathlib import Path

HOOK = '''
"""Tells on standard error of everything that changes the file system; /dev/null does not count."""
import os, sys

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = ("os.chmod", "os.chown", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "os.truncate")

def tell(event, args):
    if event == "open" and isinstance(args[0], (str, bytes)):
        path, mode, flags = args
        if (flags or 0) & WRITING and os.fsdecode(path) != "/dev/null":
            os.write(2, f"WRITES {path!r} {mode!r}\\n".encode())
    elif event in CHANGES or event.startswith(("tempfile.", "shutil.")):
        os.write(2, f"WRITES {event} {args!r}\\n".encode())

sys.addaudithook(tell)
'''


@pytest.fixture
def _watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every Python that is started tells what it writes. It keeps no compiled modules, as in the image."""
    folder = tmp_path / "hook"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(HOOK, encoding="utf-8")
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    )
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")


@pytest.mark.usefixtures("_watched")
async def test_it_serves_pods_and_ends_without_a_write(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("logFormat: json\nlogLevel: debug\n", encoding="utf-8")
    async with World(*STOCK) as here, process(here, tmp_path, "--config", str(config)) as operator:
        here.add(*CLUSTER)
        await operator.logged("synced with Kubernetes")
        here.add(pod("p1", by_template("gpu")))
        await here.until(lambda: here.node_of("p1"))

        assert await operator.end(signal.SIGTERM) == 0

    assert [line for line in operator.log.splitlines() if line.startswith("WRITES")] == []


@pytest.mark.usefixtures("_watched")
@pytest.mark.parametrize(
    "deed",
    [
        "open(sys.argv[1], 'w')",
        "os.mkdir(sys.argv[1])",
        "os.open(sys.argv[1], os.O_CREAT)",
        "tempfile.mkstemp()",
    ],
)
def test_a_write_would_be_seen(tmp_path: Path, deed: str) -> None:
    code = f"import os, sys, tempfile; {deed}"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "new")],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert "WRITES" in done.stderr
