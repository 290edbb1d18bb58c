"""Texts of files to objects that know where in the file each of their values stands.

YAML of any number of documents, JSON, Lists in either. What cannot be read is told with its place, and does not stop the documents beside it:
a line that begins with `---` ends a document, whatever is open. Scalars are read as kubectl reads them, which is YAML 1.1 as Go's library
has it: `on`, `no` and `y` are booleans, dates are strings.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import yaml

from .findings import UNREADABLE
from .places import Path, Places, Span, part_of
from .scalars import MERGE, Unfit, composed, key_of, scalar

if TYPE_CHECKING:
    from collections.abc import Iterator

_END: Final = re.compile(r"^(?:---(?=\s|$)|\.\.\.(?=\s|$))", re.MULTILINE)
_EMPTY: Final = re.compile(r"(?:\s|#[^\n]*|%[^\n]*)*")
_TEMPLATE: Final = re.compile(r"\{\{-?\s*[^}\s]")
_ALIASES: Final = 100_000
"""Values that aliases may stand for in one document. Aliases of aliases can make a small file a huge object."""

_DEEPEST: Final = 200
"""Lists and mappings within each other. Go reads more; no object of Kubernetes has as many, and looking at them takes stack."""

_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_ESCAPE: Final = re.compile(r"\\u([dD][89abAB]..)\\u([dD][c-fC-F]..)|\\u[dD][89a-fA-F]..|\\.")

_MARK: Final = re.compile("(\\A|^---[^\\n]*\\n)\ufeff", re.MULTILINE)
"""Of the order of bytes, where a document begins: files that were joined have several."""

_BREAK: Final = re.compile("[\x85\u2028\u2029]")
_BREAK_REMEDY: Final = "to YAML, a line ends at U+0085, U+2028 and U+2029 (this one has such), too: remove it, or write it as an escape in double quotes"

_TABS: Final = re.compile("\t+")
_TAB_REMEDY: Final = "indent with spaces; each tab is shown as an arrow"

TEMPLATE_REMEDY: Final = "this looks like a template: lint what `helm template` makes of it"


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a text is no object: what is wrong, where, and what to do."""

    code: str
    message: str
    span: Span
    remedy: str = ""


@dataclass(slots=True)
class Document:
    """One document of a file.

    Attributes:
        file: its name.
        lines: of the whole file.
        value: what it says; None if it could not be read.
        places: of all its values.
        faults: what is wrong with its text.
    """

    file: str
    lines: tuple[str, ...]
    value: Any = None
    places: Places = field(default_factory=Places)
    faults: list[Fault] = field(default_factory=list)


def documents(file: str, text: str) -> list[Document]:
    """The documents of a file, in their order; those that are empty are left out."""
    text = _MARK.sub(r"\1", text)
    lines = _lines(text)
    if text.lstrip()[:1] in {"{", "["}:
        text = _STRING.sub(_as_yaml, text.replace("\t", " "))
    return [_read(file, lines, chunk, first) for chunk, first in _chunks(text) if not _EMPTY.fullmatch(chunk)]


def unreadable(file: str, message: str, remedy: str = "") -> Document:
    """What stands for a file, or a folder, that cannot be read."""
    return Document(file, (), faults=[Fault(UNREADABLE, message, Span(0, 0, 0, 1), remedy)])


def not_utf_8(file: str, text: str, first: int) -> Document:
    """What tells of a text that was no UTF-8, with other characters in the place of what was none; `first` is the first of these."""
    line = text.count("\n", 0, first)
    column = first - (text.rfind("\n", 0, first) + 1)
    message = "is no UTF-8 text from here on"
    return Document(
        file, _lines(text), faults=[Fault("NotUtf8", message, Span(line, column, line, column + 1))]
    )


def _lines(text: str) -> tuple[str, ...]:
    """As editors and Kubernetes count them: YAML has further ends of lines, and Python even more."""
    return tuple(text.removesuffix("\n").split("\n"))


def _as_yaml(found: re.Match[str]) -> str:
    """A string of JSON, for a reader of YAML: that has no halves of characters. What follows stays where it is."""
    if "\\u" not in found[0]:
        return found[0]
    text = _ESCAPE.sub(_whole_character, found[0])
    return text + " " * (len(found[0]) - len(text))


def _whole_character(found: re.Match[str]) -> str:
    if found[1]:
        return f"\\U{0x10000 + (int(found[1], 16) - 0xD800) * 0x400 + int(found[2], 16) - 0xDC00:08x}"
    return "\\ufffd" if len(found[0]) > len("\\u") else found[0]  # a half without the other, as Go reads it


def _chunks(text: str) -> Iterator[tuple[str, int]]:
    """Each document's text and the line that it begins at. What follows `---` on its line belongs to the document."""
    start = 0
    for found in _END.finditer(text):
        yield from _values(text[start : found.start()], text.count("\n", 0, start))
        start = found.end()
    yield from _values(text[start:], text.count("\n", 0, start))


def _values(chunk: str, first: int) -> Iterator[tuple[str, int]]:
    """A chunk, or each of the objects of JSON that follow each other in it, as `jq` prints them; each keeps its columns."""
    ends = _ends(chunk)
    if len(ends) < 2:  # noqa: PLR2004 -- several
        yield chunk, first
        return
    start = 0
    for end in ends:
        here = start + len(chunk[start:end]) - len(chunk[start:end].lstrip())
        column = here - (chunk.rfind("\n", 0, here) + 1)
        yield " " * column + chunk[here:end], first + chunk.count("\n", 0, here)
        start = end


def _ends(chunk: str) -> list[int]:
    """Where objects of JSON end, if there is nothing else."""
    ends: list[int] = []
    end = 0
    decoder = json.JSONDecoder()
    while chunk[end:].strip():
        start = end + len(chunk[end:]) - len(chunk[end:].lstrip())
        if chunk[start] != "{":
            return []
        try:
            _, end = decoder.raw_decode(chunk, start)
        except (ValueError, RecursionError):
            return []
        ends.append(end)
    return ends


def _read(file: str, lines: tuple[str, ...], chunk: str, first: int) -> Document:
    shift = _shift(lines, chunk, first)
    document = Document(file, lines, places=Places(chunk, first, shift))
    builder = _Builder(document)
    document.faults += _behind_marker(chunk, first, shift)
    try:
        root = composed(_without_directives(chunk))
        document.value = builder.value(root) if root is not None else None
        document.places.root = root
    except yaml.MarkedYAMLError as error:
        document.faults.append(builder.fault(error, chunk))
    except yaml.reader.ReaderError as error:
        document.faults.append(builder.forbidden(error, chunk))
    except Unfit as error:
        at = document.places.start(error.node)
        document.faults.append(Fault("BadYaml", f"cannot be read: {error}", at, _remedy(chunk)))
    except (yaml.YAMLError, ValueError) as error:
        at = Span(first, 0, first, 1)
        document.faults.append(Fault("BadYaml", f"cannot be read: {error}", at, _remedy(chunk)))
    return document


def _shift(lines: tuple[str, ...], chunk: str, first: int) -> int:
    """Columns by which the first line of a chunk is moved to the right in its file: it may follow a `---`."""
    line = chunk.partition("\n")[0]
    return len(lines[first]) - len(line) if first < len(lines) and lines[first].endswith(line) else 0


def _behind_marker(chunk: str, first: int, shift: int) -> list[Fault]:
    """What stands behind `---`, where kubectl takes nothing but a comment."""
    line = chunk.partition("\n")[0].strip() if shift else ""
    if not line or line.startswith("#"):
        return []
    remedy = "begin the document on the next line"
    return [
        Fault(
            "BadYaml",
            "kubectl takes nothing on the line of `---`",
            Span(first, shift, first, shift + 1),
            remedy,
        )
    ]


def _without_directives(chunk: str) -> str:
    """The same with comments in their place: what stands behind them stays where it is."""
    return re.sub(r"^%", "#", chunk, flags=re.MULTILINE) if chunk.lstrip().startswith("%") else chunk


def _remedy(chunk: str) -> str:
    return TEMPLATE_REMEDY if _TEMPLATE.search(chunk) else ""


class _Builder:
    """Makes values out of nodes."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._places = document.places
        self._count = 0
        self._seen: set[int] = set()
        self._open: set[int] = set()

    def fault(self, error: yaml.MarkedYAMLError, chunk: str) -> Fault:
        mark = error.problem_mark or error.context_mark
        line, column = self._places.at(mark) if mark is not None else self._places.moved(0, 0)
        tabs = _TABS.match(chunk, mark.index) if mark is not None else None
        if tabs is not None:
            message = "cannot be read: there is a tab where YAML takes nothing but spaces"
            return Fault("BadYaml", message, Span(line, column, line, column + len(tabs[0])), _TAB_REMEDY)
        what = ", ".join(filter(None, (error.context, error.problem)))
        remedy = _BREAK_REMEDY if self._has_breaks(line) else _remedy(chunk)
        return Fault("BadYaml", f"cannot be read: {what}", Span(line, column, line, column + 1), remedy)

    def _has_breaks(self, line: int) -> bool:
        """Whether a line or the one before it is more than one to YAML alone."""
        return bool(_BREAK.search("\n".join(self._document.lines[max(0, line - 1) : line + 1])))

    def forbidden(self, error: yaml.reader.ReaderError, chunk: str) -> Fault:
        """A character that no YAML may have."""
        before = chunk.encode()[: error.position].decode(errors="ignore")
        line, column = self._places.moved(before.count("\n"), len(before) - (before.rfind("\n") + 1))
        span = Span(line, column, line, column + 1)
        message = (
            f"cannot be read: there is a character #x{ord(chunk[len(before)]):04x}, which YAML does not allow"
        )
        return Fault("BadYaml", message, span, "remove it, or write it as an escape in double quotes")

    def value(self, node: yaml.Node) -> Any:
        self._count += id(node) in self._seen
        self._seen.add(id(node))
        if id(node) in self._open:
            raise Unfit("an alias stands within what it is an alias of", node)
        if self._count > _ALIASES:
            raise Unfit(f"aliases stand for more than {_ALIASES:,} values", node)
        if len(self._open) > _DEEPEST:
            raise Unfit(f"lists and mappings stand more than {_DEEPEST} deep in each other", node)
        if isinstance(node, yaml.ScalarNode):
            return scalar(node)
        self._open.add(id(node))
        value = (
            self._mapping(node)
            if isinstance(node, yaml.MappingNode)
            else [self.value(item) for item in node.value]
        )
        self._open.discard(id(node))
        return value

    def _mapping(self, node: yaml.MappingNode) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: list[yaml.Node] = []
        for key, item in node.value:
            if key.tag == MERGE:
                merged += item.value if isinstance(item, yaml.SequenceNode) else [item]
                continue
            name = key_of(key)
            if name in found:
                message = f"key {name!r} stands here a second time"
                at = self._places.span(key)
                self._document.faults.append(Fault("DuplicateKey", message, at, "keep one of them"))
            found[name] = self.value(item)
        for other in merged:
            if isinstance(other, yaml.MappingNode) and id(other) not in self._open:
                for name, value in self._mapping(other).items():
                    found.setdefault(name, value)
        return found


def inner(document: Document, path: Path, value: str, start: int, length: int) -> Span | None:
    """The place of a part of a string, such as of an expression; None if it cannot be told.

    Args:
        document: that the string stands in.
        path: of the string.
        value: the string.
        start: of the part, in characters.
        length: of the part, in characters; it ends with its line at the latest.
    """
    place = document.places.get(path)
    return None if place is None else part_of(document.lines, place, value, start, length)
