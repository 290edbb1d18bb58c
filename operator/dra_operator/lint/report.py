"""Findings as text with carets, as JSON, and as annotations of GitHub's workflows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from unicodedata import category

from rich.cells import cell_len
from rich.text import Text

from .findings import ERROR, UNREADABLE, WARNING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .findings import Finding

STYLES = {ERROR: "bold red", WARNING: "bold yellow"}
MOST = 160
"""Characters of a line of a file that are shown. Arbitrary."""

LONGEST = 1000
"""Characters of a message that are shown; it may hold a value of any length. Arbitrary."""

_ARROW = "→"
"""A tab that is what is wrong; others are shown as blanks."""

_JOINERS = frozenset("\u200c\u200d")
"""Parts of words and pictures, though of the category of characters that show nothing."""


def text(findings: Iterable[Finding]) -> Text:
    """For a terminal."""
    return Text("\n").join(_one(finding) for finding in findings)


def _one(finding: Finding) -> Text:
    style = STYLES[finding.severity]
    result = Text(f"{_shown(finding.file)}:{finding.line}:{finding.column}: ")
    result.append(finding.severity, style)
    result.append(f": {finding.code}")
    about = ": ".join(filter(None, (finding.about, finding.path)))
    result.append(f": {_shown(about)}\n" if about else "\n")
    message = finding.message
    if len(message) > LONGEST:
        message = f"{message[:LONGEST]}… ({len(message):,} characters)"
    result.append(f"  {_shown(message)}\n")
    if finding.code != UNREADABLE:
        line, start, end = _window(finding)
        number = str(finding.line)
        result.append(f"  {number} | {line}\n")
        result.append(f"  {' ' * len(number)} | {' ' * start}")
        result.append("^" * max(1, end - start) + "\n", style)
    if finding.remedy:
        result.append(f"  {_shown(finding.remedy)}\n")
    return result


def _shown(value: str) -> str:
    """Without what a terminal obeys or hides, such as escape sequences and turns of the direction: each as its escape in Python."""
    return "".join(map(_visible, value))


def _visible(character: str) -> str:
    if character == "\t":
        return " "
    hidden = category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and character not in _JOINERS
    return ascii(character)[1:-1] if hidden else character


def _window(finding: Finding) -> tuple[str, int, int]:
    """The part of the line that is shown, and in which of its cells the carets begin and end: of some characters a terminal makes two, of some none."""
    line, start, end = finding.source, finding.column - 1, finding.end_column - 1
    end = min(max(end, start + 1), max(len(line), start + 1))
    if len(line) > MOST:
        first = max(0, min(start - MOST // 4, len(line) - MOST))
        line, start, end = line[first : first + MOST], start - first, min(end - first, MOST)
    before, below, after = _shown(line[:start]), _shown(line[start:end]), _shown(line[end:])
    if line[start:end].strip("\t") == "":
        below = _ARROW * len(line[start:end])
    at = cell_len(before) + max(0, start - len(line))
    return before + below + after, at, at + cell_len(below)


def summary(findings: Sequence[Finding], objects: int) -> str:
    """One sentence."""
    errors = sum(finding.severity == ERROR for finding in findings)
    warnings = len(findings) - errors
    counted = [_counted(errors, "error"), _counted(warnings, "warning")]
    return f"{', '.join(counted)} in {_counted(objects, 'object')}."


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def as_json(findings: Sequence[Finding]) -> str:
    """A document with all findings."""
    return json.dumps({"findings": [finding.to_object() for finding in findings]}, indent=2)


def as_github(findings: Iterable[Finding]) -> str:
    """A workflow command for each finding: GitHub shows them beside the lines of a change, if files are named from the root of the repository."""
    return "\n".join(_command(finding) for finding in findings)


def _command(finding: Finding) -> str:
    title = f"{finding.code}: {finding.about}".rstrip(": ")
    where = f"{finding.path}: " if finding.path else ""
    text = f"{where}{finding.message}" + (f". {finding.remedy}" if finding.remedy else "")
    properties = {
        "file": finding.file,
        "line": str(finding.line),
        "endLine": str(finding.line),
        "col": str(finding.column),
        "endColumn": str(finding.end_column),
        "title": title,
    }
    if finding.file == "-":  # there is no such file, and no line in it
        properties = {"title": title}
        text = f"stdin:{finding.line}:{finding.column}: {text}"
    listed = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{finding.severity} {listed}::{_data(text)}"


def _data(value: str) -> str:
    return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")
