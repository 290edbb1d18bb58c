"""Asks upstream's CEL and allocator: starts the Go program of this folder (`program/`) for a batch of questions.

Questions and answers are JSON objects with the fields that README.md lists. It must not judge; `compare` does.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from subprocess import PIPE, Popen
from threading import Event, Timer
from typing import TYPE_CHECKING, Any, Self

from tests.e2e.harness.build import ensure_oracle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

Json = dict[str, Any]

TIMEOUT = 30.0
"""Seconds; as long as those that answered the recorded problems had."""

PATIENCE = 60.0
"""Seconds; an answer takes milliseconds, and a machine may be busy."""

RUNS = 100
"""Evaluations after which upstream is believed to be of one mind: the order of Go's maps differs from run to run, but that of two entries in one run of
eight alone, so that twenty runs agree by chance too often."""


class NoAnswerError(Exception):
    """Upstream's program gave no answer to a question.

    Args:
        question: the one that it had.
        what: what it did instead.
    """

    def __init__(self, question: Json, what: str) -> None:
        name = question.get("id") or question.get("expression") or "of no name"
        super().__init__(f"upstream's program {what}: {name}\n{json.dumps(question)}")


@dataclass(frozen=True, slots=True)
class Upstream:
    """The program, ready to be asked.

    Attributes:
        binary: the built program.
        compatibility: Kubernetes version, as `1.33`, with which new expressions have to be compatible; empty for n-1. Matters to `ask`.
        patience: seconds until it counts as hanging: for each evaluation, and beside what a search may take.
    """

    binary: Path
    compatibility: str = ""
    patience: float = PATIENCE

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
            NoAnswerError: it hangs or broke down; the question is named.
        """
        arguments = ("cel", f"-repeat={repeat}", f"-compatibility={self.compatibility}")
        return self._run(questions, lambda _: self.patience * repeat, *arguments)

    def solve(self, problems: Iterable[Json], *, timeout: float = TIMEOUT) -> list[Json]:
        """One answer a problem, in order (README.md).

        Args:
            problems: what the allocator is asked.
            timeout: seconds for a problem that has no `timeoutMs`.

        Raises:
            NoAnswerError: it hangs, though a search ends at its time-out, or broke down; the problem is named.
        """

        def limit(problem: Json) -> float:
            own: int = problem.get("timeoutMs") or 0
            runs: int = 1 + problem.get("repeat", 0)
            return (own / 1000 or timeout) * runs + self.patience

        return self._run(problems, limit, "allocator", f"-timeout={timeout}s")

    def _run(self, asked: Iterable[Json], limit: Callable[[Json], float], *arguments: str) -> list[Json]:
        with Asked([str(self.binary), *arguments]) as program:
            return [program.answer(each, limit(each)) for each in asked]


class Asked:
    """The program while it runs. It has one question at a time, so that it is known which one it hangs or dies on.

    Args:
        command: starts it.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command

    def __enter__(self) -> Self:
        """Start it."""
        self._process = Popen(self._command, stdin=PIPE, stdout=PIPE, encoding="utf-8")
        return self

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        """End it; where no more questions come, it does so by itself, unless something went wrong."""
        if failed is not None:
            self._process.kill()
        self._process.communicate()

    def answer(self, question: Json, limit: float) -> Json:
        """Its answer.

        Args:
            question: one object.
            limit: seconds.

        Raises:
            NoAnswerError: it hangs, it ended, or what it wrote is no answer; the question is named.
        """
        hangs = Event()
        timer = Timer(limit, self._give_up, [hangs])
        timer.start()
        try:
            said = self._put(json.dumps(question))
        finally:
            timer.cancel()
        if hangs.is_set():
            raise NoAnswerError(question, f"has not answered within {limit:g} s")
        if not said.endswith("\n"):
            raise NoAnswerError(question, f"ended with status {self._process.wait()}, and did not answer")
        answer: Json = json.loads(said)
        return answer

    def _give_up(self, hangs: Event) -> None:
        hangs.set()
        self._process.kill()

    def _put(self, line: str) -> str:
        """A line for a line; nothing where it ended before."""
        questions, answers = self._process.stdin, self._process.stdout
        assert questions is not None
        assert answers is not None
        with suppress(BrokenPipeError):
            questions.write(f"{line}\n")
            questions.flush()
        return answers.readline()
