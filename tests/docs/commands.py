"""The pages as stories: their commands with the output that they show, and the files that they tell the reader to write. Reads only.

A block ```` ```console ```` holds commands, each on a line that begins with `$ ` (a backslash at the end goes on in the next line), and below
each what it prints, if the page shows that. `…` in it stands for any text, on a line of its own for any lines. A block ```` ```yaml ```` or
```` ```python ```` whose first line is a comment with a file name is that file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from markdown_it.token import Token

ROOT: Final = Path(__file__).parents[2]

STORY: Final = (
    "README.md",
    "docs/device-owner.md",
    "docs/workload-operator.md",
    "docs/cluster-admin.md",
    "docs/runbook.md",
)
"""Pages with commands for a cluster, in the order in which one cluster sees them."""

PROMPT: Final = "$ "
ANY: Final = "…"


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a page.

    Attributes:
        text: as one types it.
        output: what the page shows below it; empty if it shows nothing.
        line: of the page, from 1.
    """

    text: str
    output: str
    line: int


@dataclass(frozen=True, slots=True)
class File:
    """A file that a page has its reader write, with its path from the clone's folder."""

    path: str
    text: str


Step = Command | File


def pages() -> list[str]:
    """Every page for people, generated ones included, as a path from the root."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "tests" / "e2e" / "README.md"]
    return sorted(str(path.relative_to(ROOT)) for path in found)


@cache
def tokens(page: str) -> list[Token]:
    """A page as CommonMark with tables."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return MarkdownIt("commonmark").enable("table").parse(text)


def fences(page: str) -> list[Token]:
    """The blocks of code of a page."""
    return [token for token in tokens(page) if token.type == "fence"]


def steps(page: str) -> list[Step]:
    """What the reader does, in order."""
    return [step for fence in fences(page) for step in _steps(fence)]


def commands(page: str) -> list[Command]:
    """The commands alone."""
    return [step for step in steps(page) if isinstance(step, Command)]


def _steps(fence: Token) -> Iterator[Step]:
    language = fence.info.split()[0] if fence.info else ""
    if language == "console":
        yield from _commands(fence)
    elif language in {"yaml", "python"} and (path := file_name(fence.content)):
        yield File(path, fence.content)


def file_name(text: str) -> str | None:
    """The file that a block is, by its first line."""
    named = re.match(r"# ([\w./-]+\.(?:yaml|py))\n", text)
    return named[1] if named else None


def _commands(fence: Token) -> Iterator[Command]:
    first = (fence.map[0] if fence.map else 0) + 2
    lines = fence.content.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith(PROMPT)]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        last = start
        while lines[last].endswith("\\"):
            last += 1
        text = "\n".join([lines[start][len(PROMPT) :], *lines[start + 1 : last + 1]])
        yield Command(text, "\n".join(lines[last + 1 : end]), first + start)


def matches(shown: str, printed: str) -> bool:
    """Whether a command printed what its page shows; how wide columns are does not matter."""
    pattern = "".join(_pattern(line) for line in shown.splitlines())
    return re.fullmatch(pattern, "".join(f"{_squeezed(line)}\n" for line in printed.splitlines())) is not None


def _pattern(line: str) -> str:
    if line.strip() == ANY:
        return r"(?:[^\n]*\n)*"
    return r"[^\n]*".join(map(re.escape, _squeezed(line).split(ANY))) + r"\n"


def _squeezed(line: str) -> str:
    return " ".join(line.split())
