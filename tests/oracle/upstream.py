"""Asks upstream's CEL and allocator: starts the Go program of this folder (`program/`) for a batch of questions.

Questions and answers are JSON objects with the fields that README.md lists. It must not judge; `compare` does.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.e2e.harness.build import ensure_oracle

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

Json = dict[str, Any]

TIMEOUT = 30.0
"""Seconds; as long as those that answered the recorded problems had."""

RUNS = 100
"""Evaluations after which upstream is believed to be of one mind: the order of Go's maps differs from run to run, but that of two entries in one run of
eight alone, so that twenty runs agree by chance too often."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """The program, ready to be asked.

    Attributes:
        binary: the built program.
        compatibility: Kubernetes version, as `1.33`, with which new expressions have to be compatible; empty for n-1. Matters to `ask`.
    """

    binary: Path
    compatibility: str = ""

    @classmethod
    def built(cls, compatibility: str = "") -> Upstream:
        """Out of the build's cache, built first where it is missing.

        Raises:
            BuildError: no usable Go, or the build failed.
        """
        return cls(ensure_oracle(), compatibility)

    def ask(self, questions: Iterable[Json], *, repeat: int = 1) -> list[Json]:
        """One answer a question, in order.

        Args:
            questions: their `id` is ignored.
            repeat: evaluations of each device; answers on which they disagree are marked `unstable`.

        Raises:
            subprocess.CalledProcessError: the program broke down.
        """
        return self._run(questions, "cel", f"-repeat={repeat}", f"-compatibility={self.compatibility}")

    def solve(self, problems: Iterable[Json], *, timeout: float = TIMEOUT) -> list[Json]:
        """One answer a problem, in order (README.md).

        Args:
            problems: what the allocator is asked.
            timeout: seconds for a problem that has no `timeoutMs`.

        Raises:
            subprocess.CalledProcessError: the program broke down.
        """
        return self._run(problems, "allocator", f"-timeout={timeout}s")

    def _run(self, asked: Iterable[Json], *arguments: str) -> list[Json]:
        lines = [json.dumps(each) for each in asked]
        command = [str(self.binary), *arguments]
        done = subprocess.run(
            command, input="\n".join(lines), stdout=subprocess.PIPE, text=True, check=True, encoding="utf-8"
        )
        answers = [json.loads(line) for line in done.stdout.split("\n") if line]
        if len(answers) != len(lines):
            raise subprocess.CalledProcessError(1, command, done.stdout[-1000:])
        return answers
