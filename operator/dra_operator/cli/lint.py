"""`kubectl dra lint`: documents in, findings and the exit status out; `dra_operator.lint` does the looking. Pure; `files` reads, `main` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dra_operator.lint import ERROR, UNREADABLE, Known, look
from dra_operator.lint.objects import items

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dra_operator.lint import Finding
    from dra_operator.lint.texts import Document

OUTPUTS: Final = ("text", "json", "github")


def examine(found: Sequence[Document], known: Known | None) -> tuple[list[Finding], int]:
    """The findings, and how many objects there are."""
    count = sum(1 for document in found if document.value is not None for _ in items(document))
    return look(found, known), count


def status(findings: Iterable[Finding], *, strict: bool) -> int:
    """The exit status: 2 if something could not be looked at, else 1 for errors, or for warnings if one is `strict`."""
    found = list(findings)
    if any(finding.code == UNREADABLE for finding in found):
        return 2
    return int(any(strict or finding.severity == ERROR for finding in found))
