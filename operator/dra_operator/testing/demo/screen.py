"""What the person sees. Prints, and nothing else; called by `story`, `kubectl` and `narrator`.

News from the API arrive while a command runs; they are held back until its output is on the screen, so that cause comes before
effect.
"""

from __future__ import annotations

import os
import shlex
import sys
import textwrap
import time
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table

from .errors import DemoFailed

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
        _show(f"\n{self._steps}. {title}")
        for sentence in sentences:
            self.say(sentence)

    def say(self, text: str) -> None:
        """A plain paragraph."""
        _show(_wrapped(text, "   ", "   "))

    def running(self, arguments: Sequence[str]) -> None:
        """A command starts: hold news back."""
        self._held = []
        _show(f"{INDENT}$ {shlex.join(arguments)}")

    def ran(self, output: str) -> None:
        """Its output; then the news."""
        if output.strip():
            _show(textwrap.indent(output.rstrip(), INDENT))
        held, self._held = self._held or [], None
        for line in held:
            _show(line)

    def news(self, text: str) -> None:
        """Something seen in the API, with the time."""
        line = _wrapped(text, f"  {self.seconds:5.1f} s  ", " " * 11)
        if self._held is None:
            _show(line)
        else:
            self._held.append(line)

    def table(self, headings: Iterable[str], rows: Iterable[Sequence[str]]) -> None:
        """A table."""
        made = Table(*headings, box=box.SIMPLE_HEAD, pad_edge=False)
        for row in rows:
            made.add_row(*row)
        Console(width=WIDTH, highlight=False).print(made)


def _show(text: str) -> None:
    """Print it now.

    Raises:
        DemoFailed: nobody reads any longer (`… | head`).
    """
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # What is left in the buffer must not fail again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise DemoFailed("nobody reads its output any longer") from None


def _wrapped(text: str, first: str, later: str) -> str:
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=later,
        break_on_hyphens=False,
        break_long_words=False,
    )
