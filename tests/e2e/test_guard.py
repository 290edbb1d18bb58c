"""`controlplane guard`: what runs under it ends with the test session, and its exit status comes through."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.e2e.harness.cluster import ControlPlane


@pytest.mark.parametrize(("script", "status"), [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137)])
def test_exit_status_comes_through(control_plane: ControlPlane, script: str, status: int) -> None:
    with subprocess.Popen(
        [*control_plane.guard_command, "sh", "-c", script], stdin=subprocess.PIPE
    ) as guarded:
        ended = guarded.wait(timeout=10)

    assert ended == status


def test_command_gets_a_sigterm_when_the_session_is_gone(control_plane: ControlPlane) -> None:
    """The session holds the other end of the standard input: closing it is what its death does."""
    script = "trap 'kill $!; echo told; exit 3' TERM; echo ready; sleep 60 & wait"
    command = [*control_plane.guard_command, "sh", "-c", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as guarded:
        assert guarded.stdin is not None
        assert guarded.stdout is not None
        ready = guarded.stdout.readline()
        guarded.stdin.close()
        told = guarded.stdout.readline()
        status = guarded.wait(timeout=10)

    assert (ready, told, status) == ("ready\n", "told\n", 3)
