"""Manifests out of files, folders and stdin, for `kubectl dra lint` and `simulate`: which files, and as which text, as kubectl has it.

What cannot be read is a document with that fault, and does not stop the others. It must not judge what it reads, nor ask a cluster.
"""

from __future__ import annotations

import codecs
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dra_operator.lint import documents, unreadable
from dra_operator.lint.texts import not_utf_8

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dra_operator.lint.texts import Document

SUFFIXES: Final = (".json", ".yaml", ".yml")
"""Ends of names of files that are taken out of folders, hidden or not. kubectl takes the same; backups of editors have other ends."""

_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read(names: Iterable[str], *, recursive: bool) -> list[Document]:
    """The documents of files, of folders (`recursive`: with all that is below them), and of stdin (`-`)."""
    return [document for name in names for document in _named(name, recursive=recursive)]


def _named(name: str, *, recursive: bool) -> Iterator[Document]:
    if name == "-":
        yield from _stdin()
    elif Path(name).is_dir():
        yield from _folder(Path(name), recursive=recursive)
    else:
        yield from _file(Path(name), name)


def _stdin() -> Iterator[Document]:
    if sys.stdin is None:
        yield unreadable("-", "stdin is closed")
        return
    try:
        content = sys.stdin.buffer.read()
    except OSError as error:
        yield unreadable("-", _why(error))
        return
    yield from _documents("-", content)


def _folder(folder: Path, *, recursive: bool) -> Iterator[Document]:
    failed: list[OSError] = []
    found: list[Path] = []
    for place, below, files in os.walk(folder, onerror=failed.append):
        found += [Path(place, file) for file in files if file.endswith(SUFFIXES)]
        if not recursive:
            below.clear()
    for error in failed:
        yield unreadable(str(error.filename), _why(error))
    if not found and not failed:
        deeper = "" if recursive else ", not counting the folders below"
        yield unreadable(str(folder), f"no file in it ends with {', '.join(SUFFIXES)}{deeper}")
    for path in sorted(found):
        if path.exists() and not path.is_file():  # a pipe would be waited for
            yield unreadable(str(path), "is no regular file")
        else:
            yield from _file(path, str(path))


def _file(path: Path, name: str) -> Iterator[Document]:
    try:
        content = path.read_bytes()
    except OSError as error:
        if "://" in name:
            remedy = f"nothing is fetched: `curl --location {name} |`, and `-f -`"
            yield unreadable(name, "is an address", remedy)
        else:
            yield unreadable(str(path), _why(error))
        return
    yield from _documents(str(path), content)


def in_repository(name: str) -> str:
    """A file as GitHub names it, from the root of the repository, if a workflow of GitHub is running and the file is in it."""
    root = os.environ.get("GITHUB_WORKSPACE", "")
    if not root or name == "-":
        return name
    path = Path(name).absolute()
    whole = Path(os.path.normpath(path))
    return str(whole.relative_to(root)) if whole.is_relative_to(root) else name


def _why(error: OSError) -> str:
    return error.strerror or str(error)


def _documents(name: str, content: bytes) -> Iterator[Document]:
    """Manifests are UTF-8 whatever the terminal's language is, or UTF-16 that says so; kubectl has it so, too."""
    encoding = "utf-16" if content.startswith(_UTF_16) else "utf-8"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        text = content.decode(encoding, errors="replace")
        before = content[: error.start].decode(encoding, errors="replace")
        yield not_utf_8(name, _with_ends(text), len(_with_ends(before)))
    yield from documents(name, _with_ends(text))


def _with_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
