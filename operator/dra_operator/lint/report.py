"""Findings as text with carets, as JSON, and as annotations of GitHub's workflows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rich.text import Text

from .findings import ERROR, WARNING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .findings import Finding

STYLES = {ERROR: "bold red", WARNING: "bold yellow"}
MOST = 160
"""Characters of a line of a file that are shown. Arbitrary."""


def text(findings: Iterable[Finding]) -> Text:
    """For a terminal."""
    return Text("\n").join(_one(finding) for finding in findings)


def _one(finding: Finding) -> Text:
    style = STYLES[finding.severity]
    result = Text(f"{finding.file}:{finding.line}:{finding.column}: ")
    result.append(finding.severity, style)
    result.append(f": {finding.code}")
    about = ": ".join(filter(None, (finding.about, finding.path)))
    result.append(f": {about}\n" if about else "\n")
    result.append(f"  {finding.message}\n")
    line, start, end = _window(finding)
    number = str(finding.line)
    result.append(f"  {number} | {line}\n")
    result.append(f"  {' ' * len(number)} | {' ' * start}")
    result.append("^" * max(1, end - start), style)
    result.append(f"\n  {finding.remedy}\n" if finding.remedy else "\n")
    return result


def _window(finding: Finding) -> tuple[str, int, int]:
    """The part of the line that is shown, and where in it the carets begin and end."""
    line, start, end = finding.source.replace("\t", " "), finding.column - 1, finding.end_column - 1
    end = min(max(end, start + 1), max(len(line), start + 1))
    if len(line) <= MOST:
        return line, start, end
    first = max(0, min(start - MOST // 4, len(line) - MOST))
    shown = line[first : first + MOST]
    return shown, start - first, min(end - first, MOST)


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
    """A workflow command for each finding: GitHub shows them beside the lines of a change."""
    return "\n".join(_command(finding) for finding in findings)


def _command(finding: Finding) -> str:
    properties = {
        "file": finding.file,
        "line": str(finding.line),
        "col": str(finding.column),
        "endColumn": str(finding.end_column),
        "title": f"{finding.code}: {finding.about}".rstrip(": "),
    }
    listed = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    where = f"{finding.path}: " if finding.path else ""
    text = f"{where}{finding.message}" + (f". {finding.remedy}" if finding.remedy else "")
    return f"::{finding.severity} {listed}::{_data(text)}"


def _data(value: str) -> str:
    return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")
