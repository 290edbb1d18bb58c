"""What runs each command of the pages: CI's script, a test, the story on the real control plane, or, with its reason, nothing.

Knows commands as text only; `test_commands` holds it to the pages, the Makefile and the tests.
"""

from __future__ import annotations

import shlex
from typing import Final

REMOVAL: Final = "sh manifests/uninstall.sh"
"""The same on every page that has it; the story runs it once, last."""

CI: Final = ".ci/run"

MAKE_RUN_BY: Final = {
    "setup": CI,
    "test": CI,
    "demo": CI,
    "e2e": CI,
    "chaos": CI,
    "check": CI,
    "help": "tests/docs/test_commands.py",
    "e2e KEEP": "tests/e2e/test_keep.py",
    "bench": "tests/bench/test_miniature.py",
    "bench-real": "tests/e2e/test_bench.py",
    "bench-start": "tests/bench/test_miniature.py",
}
"""Verb of make, with KEEP where that is set → what runs it: CI's script, or a test that starts the program behind it."""

PROGRAM: Final = ".venv/bin/python -m "
"""Beginning of commands that start a program of ours; those that ask for its help need no cluster, and `test_commands` runs them."""

PAGES_RUN_BY: Final = {
    "docs/gate-webhook.md": "tests/e2e/test_webhook_page.py",
    "docs/kubectl-dra.md": "tests/docs/test_examples.py",
    "docs/library.md": "tests/docs/test_examples.py",
    "docs/simulate.md": "tests/docs/test_examples.py",
    "docs/snapshot.md": "tests/docs/test_pages_of_a_cluster.py",
    "docs/taint.md": "tests/docs/test_pages_of_a_cluster.py",
}
"""Pages that are no part of the story, as they install the operator in another way or need no cluster → the test that follows them, every command included."""

NOT_RUN: Final = {
    "docker build": "the machines that run the tests have no Docker daemon; tests/e2e/test_image.py runs the Dockerfile's steps",
    "docker push": "as docker build; and there is no registry",
}
"""Beginnings of commands that nothing runs, and why."""


def is_for_cluster(command: str) -> bool:
    """Whether the story on the real control plane runs it."""
    return command.startswith("kubectl ") or command == REMOVAL


def is_for_help(command: str) -> bool:
    """Whether it asks for help."""
    return command.startswith(PROGRAM) and command.endswith(" --help")


def is_with_its_own_cluster(command: str) -> bool:
    """Whether it is a program of the end-to-end tier that starts a control plane itself; `tests/e2e/test_docs.py` runs them, too."""
    return command.startswith(f"{PROGRAM}tests.e2e.") and not is_for_help(command)


def make_verb(command: str) -> str | None:
    """The row of `MAKE_RUN_BY` for a command of make; None for other commands."""
    words = shlex.split(command, comments=True)
    if words[0] != "make":
        return None
    verbs = [word for word in words[1:] if "=" not in word]
    return " ".join([*verbs, *(["KEEP"] if "KEEP=1" in words else [])])


def not_run(command: str) -> str | None:
    """The entry of `NOT_RUN` for a command that nothing runs."""
    return next((beginning for beginning in NOT_RUN if command.startswith(beginning)), None)
