"""`kubectl dra lint`: reads files, folders and stdin, and the cluster if one is named; `dra_operator.lint` does the looking.

It must not write, and asks no cluster that nobody named.
"""

from __future__ import annotations

import codecs
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dra_operator.errors import ApiForbidden
from dra_operator.kube import Api
from dra_operator.kube.discovery import look as served_by
from dra_operator.kube.listing import list_all
from dra_operator.lint import ERROR, Known, documents, look
from dra_operator.lint.objects import items

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dra_operator.lint import Finding
    from dra_operator.lint.texts import Document

    from .where import Where

OUTPUTS = ("text", "json", "github")
SUFFIXES = frozenset({".yaml", ".yml", ".json"})
"""Of the files in a folder that are looked at."""

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

READ = ("DeviceClass", "ResourceSlice", "Namespace", "ResourceClaimTemplate", "ResourceClaim")
"""Kinds that are asked for."""


class Unreadable(Exception):
    """A file or folder that cannot be read, in words."""


def read(names: Iterable[str]) -> list[Document]:
    """The documents of files, of folders (with all that is below them), and of stdin (`-`).

    Raises:
        Unreadable: one of them cannot be read.
    """
    found: list[Document] = []
    for name in names:
        if name == "-":
            found += documents("-", _decoded("stdin", sys.stdin.buffer.read()))
        else:
            for path in _files(Path(name)):
                found += documents(str(path), _text(path))
    return found


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    below = sorted(one for one in path.rglob("*") if one.suffix in SUFFIXES and one.is_file())
    if not below:
        raise Unreadable(f"{path}: no file named {', '.join(sorted(SUFFIXES))} in it")
    return below


def _text(path: Path) -> str:
    try:
        return _decoded(str(path), path.read_bytes())
    except OSError as error:
        raise Unreadable(f"{path}: {error.strerror or error}") from error


def _decoded(name: str, content: bytes) -> str:
    """Manifests are UTF-8, whatever the terminal's language is."""
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        what = "UTF-16" if content.startswith(_UTF_16) else f"no UTF-8 text in line {line}"
        raise Unreadable(f"{name}: is {what}: save it as UTF-8") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def examine(found: Sequence[Document], known: Known | None) -> tuple[list[Finding], int]:
    """The findings, and how many objects there are."""
    count = sum(1 for document in found if document.value is not None for _ in items(document))
    return look(found, known), count


def is_bad(findings: Iterable[Finding], *, strict: bool) -> bool:
    """Whether the exit status says so."""
    return any(strict or finding.severity == ERROR for finding in findings)


async def ask(where: Where) -> tuple[Known, dict[str, str]]:
    """What the cluster tells, and the kinds that this user may not read, with the server's words.

    Raises:
        ApiError: the server cannot be asked.
    """
    async with await Api.connect(where.kubeconfig, where.context) as api:
        namespace = where.namespace or (await api.credentials.current()).namespace
        known = Known(namespace=namespace)
        served = (await served_by(api)).kinds
        unseen: dict[str, str] = {}
        for name in READ:
            if name not in served:
                continue
            try:
                listing = await list_all(api, served[name])
            except ApiForbidden as error:
                unseen[name] = str(error)
                continue
            for value in listing.objects:
                known.take(value)
            known.whole |= {name}
        return known, unseen
