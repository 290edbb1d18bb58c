"""Snapshots of clusters, as files: their form, and how commands read them in the place of a cluster (`--from FILE`).

JSON, an object a line, gzipped or not; `snapshot` writes them, and `simulation.keeping` says what is in them. Imports nothing that speaks with clusters:
that is most of a command's start. It must not decide anything.
"""

from __future__ import annotations

import gzip
import sys
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from dra_operator.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator

FORM: Final = 1
"""The form that is written. A reader knows this one and all before it."""

NEEDED: Final = frozenset({"DeviceClass", "Pod", "ResourceClaim", "ResourceSlice"})
"""Kinds without which nothing can be simulated: who holds what must be known whole."""

_GZIP: Final = b"\x1f\x8b"
_HOW: Final = "take one with `kubectl dra snapshot -o FILE`"


class NotRead(msgspec.Struct, frozen=True, rename="camel"):
    """A kind that could not be listed, with the server's words."""

    kind: str
    message: str


class LeftOut(msgspec.Struct, frozen=True, rename="camel"):
    """An object that could not be decoded, so that it could not be told what in it may be kept."""

    kind: str
    namespace: str
    name: str
    message: str


class Gates(msgspec.Struct, frozen=True, rename="camel"):
    """What is known of feature gates: those that were named by flags, and those that the version has on by default. Others cannot be asked for."""

    named: tuple[str, ...] = ()
    by_default: tuple[str, ...] = ()


class Facts(msgspec.Struct, frozen=True, rename="camel"):
    """What a snapshot says of itself and of the server.

    Attributes:
        form: of the file.
        taken_at: when, RFC 3339, by the clock of whoever took it.
        taken_by: program and version.
        server_version, minor: of Kubernetes; no minor if the server did not tell.
        namespace: that of the context, for objects that are given beside the snapshot and name none.
        served: kinds that the server has, with the version that was read.
        feature_gates: what is known of them.
        not_read: kinds that are missing.
        left_out: objects that are missing.
    """

    form: int
    taken_at: str = ""
    taken_by: str = ""
    server_version: str = ""
    minor: int | None = None
    namespace: str = "default"
    served: dict[str, str] = {}
    feature_gates: Gates = Gates()
    not_read: tuple[NotRead, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    def missing(self) -> list[str]:
        """What could not be read, a sentence each."""
        return [f"Not read when the snapshot was taken: {one.kind}: {one.message}" for one in self.not_read]


class _File(msgspec.Struct, frozen=True):
    snapshot: Facts | None = None
    items: list[msgspec.Raw] = []


class _Meta(msgspec.Struct, frozen=True):
    namespace: str = ""


class _Envelope(msgspec.Struct, frozen=True):
    kind: str = ""
    metadata: _Meta = _Meta()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot that was read; objects are decoded when they are asked for.

    Attributes:
        name: of the file.
        facts: what it says of itself.
    """

    name: str
    facts: Facts
    _items: dict[str, list[tuple[str, msgspec.Raw]]] = field(default_factory=dict)

    def kinds(self) -> list[str]:
        """Kinds of which there are objects, in the order of the file."""
        return list(self._items)

    def texts(self, kind: str, namespace: str = "") -> list[msgspec.Raw]:
        """The objects of a kind as JSON; those of one namespace and of none, if one is given."""
        return [text for of, text in self._items.get(kind, ()) if not namespace or of in {"", namespace}]

    def raw(self, kind: str) -> Iterator[dict[str, Any]]:
        """The objects of a kind, parsed."""
        return (msgspec.json.decode(text, type=dict[str, Any]) for text in self.texts(kind))

    def namespace(self, named: str | None) -> str:
        """The namespace to look into: the one that is named, or that of the context in which the snapshot was taken; empty for all."""
        return self.facts.namespace if named is None else named

    def check(self, *kinds: str) -> None:
        """Make sure that kinds are there.

        Raises:
            InvalidInput: one could not be read when the snapshot was taken.
        """
        for one in self.facts.not_read:
            if one.kind in kinds:
                message = f"{one.kind} could not be read when it was taken: {one.message}. Have it taken by somebody who may list that in all namespaces"
                raise InvalidInput(self.name, message)


def load(name: str) -> Snapshot:
    """Read a snapshot; `-` for stdin.

    Raises:
        InvalidInput: the file cannot be read, or is none; names file and remedy.
    """
    content = _content(name)
    try:
        found = msgspec.json.decode(content, type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(name, f"is no snapshot: {error}; {_HOW}") from error
    if found.snapshot is None:
        raise InvalidInput(
            name, f"is no snapshot, as it has no member `snapshot`: {_HOW}; manifests go to -f FILE"
        )
    if found.snapshot.form > FORM:
        message = f"is a snapshot of form {found.snapshot.form}, and this program reads up to {FORM}: use a newer one"
        raise InvalidInput(name, message)
    by_kind: dict[str, list[tuple[str, msgspec.Raw]]] = {}
    for item in found.items:
        about = msgspec.json.decode(item, type=_Envelope)
        by_kind.setdefault(about.kind, []).append((about.metadata.namespace, item))
    return Snapshot(name, found.snapshot, by_kind)


def _content(name: str) -> bytes:
    try:
        content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return gzip.decompress(content) if content.startswith(_GZIP) else content
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InvalidInput(name, f"is not whole: {error}; {_HOW}") from error
    except OSError as error:
        raise InvalidInput(name, f"{error.strerror or error}") from error
