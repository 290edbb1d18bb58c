"""The process ends when the operator has, also when a task of a library does not."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, sys
from dra_operator.app.ending import ends_for_sure

async def stubborn():
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

async def operator():
    global task
    task = asyncio.create_task(stubborn())
    await asyncio.sleep(0)
    {end}

sys.exit(asyncio.run(ends_for_sure(operator(), 0.1)))
"""


@pytest.mark.parametrize(
    ("end", "status"), [("return 0", 0), ("return 3", 3), ("raise RuntimeError('boom')", 1)]
)
def test_a_task_that_swallows_its_cancellation_does_not_keep_the_process(end: str, status: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(end=end)], capture_output=True, timeout=60, check=False
    )

    assert done.returncode == status
    assert b"a task does not end" in done.stderr


IMPATIENT = """
import asyncio, os, signal, sys
from asyncio.selector_events import BaseSelectorEventLoop
from dra_operator.app.ending import ends_for_sure

async def operator():
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, lambda: None)
    return 0

def closes(loop, close=BaseSelectorEventLoop.close):
    close(loop)
    os.kill(os.getpid(), signal.SIGTERM)

BaseSelectorEventLoop.close = closes
sys.exit(asyncio.run(ends_for_sure(operator())))
"""


def test_a_second_signal_while_the_loop_closes_changes_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", IMPATIENT], capture_output=True, timeout=60, check=False)

    assert (done.returncode, done.stderr) == (0, b"")
