"""What the person sees. Prints, and nothing else; called by `story`, `kubectl` and `narrator`.

News from the API arrive while a command runs; they are held back until its output is on the screen, so that cause comes before
effect.
"""

from __future__ import annotations

import shlex
import textwrap
import time
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WIDTH = 118
INDENT = "    "


class Screen:
    """Standard output."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._steps = 0
        self._held: list[str] | None = None

    @property
    def seconds(self) -> float:
        """Since the demo began."""
        return time.monotonic() - self._start

    def step(self, title: str, *sentences: str) -> None:
        """A numbered heading, and what is about to happen."""
        self._steps += 1
        print(f"\n{self._steps}. {title}", flush=True)
        for sentence in sentences:
            self.say(sentence)

    def say(self, text: str) -> None:
        """A plain paragraph."""
        print(_wrapped(text, "   ", "   "), flush=True)

    def running(self, arguments: Sequence[str]) -> None:
        """A command starts: hold news back."""
        self._held = []
        print(f"{INDENT}$ {shlex.join(arguments)}", flush=True)

    def ran(self, output: str) -> None:
        """Its output; then the news."""
        if output.strip():
            print(textwrap.indent(output.rstrip(), INDENT), flush=True)
        held, self._held = self._held or [], None
        for line in held:
            print(line, flush=True)

    def news(self, text: str) -> None:
        """Something seen in the API, with the time."""
        line = _wrapped(text, f"  {self.seconds:5.1f} s  ", " " * 11)
        if self._held is None:
            print(line, flush=True)
        else:
            self._held.append(line)

    def table(self, headings: Iterable[str], rows: Iterable[Sequence[str]]) -> None:
        """A table."""
        made = Table(*headings, box=box.SIMPLE_HEAD, pad_edge=False)
        for row in rows:
            made.add_row(*row)
        Console(width=WIDTH, highlight=False).print(made)


def _wrapped(text: str, first: str, later: str) -> str:
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=later,
        break_on_hyphens=False,
        break_long_words=False,
    )
