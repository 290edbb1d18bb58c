"""Texts of files to objects that know where in the file each of their values stands.

YAML of any number of documents, JSON, Lists in either. What cannot be read is told with its place, and does not stop the documents beside it:
a line that begins with `---` ends a document, whatever is open. Scalars are read as kubectl reads them, which is YAML 1.1 as Go's library
has it: `on`, `no` and `y` are booleans, dates are strings.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

import yaml

from .findings import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

Step = str | int
Path = tuple[Step, ...]

_BASE: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_END: Final = re.compile(r"^(?:---(?=\s|$)|\.\.\.(?=\s|$))", re.MULTILINE)
_EMPTY: Final = re.compile(r"(?:\s|#[^\n]*|%[^\n]*)*")
_TEMPLATE: Final = re.compile(r"\{\{-?\s*[^}\s]")
_ALIASES: Final = 100_000
"""Values that aliases may stand for in one document. Aliases of aliases can make a small file a huge object."""

_DEEPEST: Final = 200
"""Lists and mappings within each other. Go reads more; no object of Kubernetes has as many, and looking at them takes stack."""

_WHOLE: Final = 10**21
"""From here on Go writes numbers into JSON with an exponent."""

_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_ESCAPE: Final = re.compile(r"\\u([dD][89abAB]..)\\u([dD][c-fC-F]..)|\\u[dD][89a-fA-F]..|\\.")

_MARK: Final = re.compile("(\\A|^---[^\\n]*\\n)\ufeff", re.MULTILINE)
"""Of the order of bytes, where a document begins: files that were joined have several."""

_BREAK: Final = re.compile("[\x85\u2028\u2029]")
_BREAK_REMEDY: Final = "to YAML, a line ends at U+0085, U+2028 and U+2029 (this one has such), too: remove it, or write it as an escape in double quotes"

TEMPLATE_REMEDY: Final = "this looks like a template: lint what `helm template` makes of it"


class _Loader(_BASE):  # type: ignore[misc,valid-type]
    """Resolves plain scalars as Go's YAML does."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}


def _resolve(tag: str, pattern: str, first: str) -> None:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(rf"(?:{pattern})\Z"), list(first))


_resolve(
    "bool", "y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF", "yYnNtTfFoO"
)
_resolve("null", "~|null|Null|NULL", "~nN")
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"\Z"), [""])
_resolve("int", r"[-+]?(?:0[xX][0-9a-fA-F_]+|0[oO]?[0-7_]+|0[bB][01_]+|0|[1-9][0-9_]*)", "-+0123456789")
_resolve("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789")
_resolve("float", r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+.")
_resolve("merge", "<<", "<")


class _Reanchoring(yaml.composer.Composer, _Loader):
    """Has an anchor stand a second time, for what follows it, as Go's YAML does; slower than what the other is made of."""

    def __init__(self, stream: str) -> None:
        _Loader.__init__(self, stream)  # type: ignore[call-arg]
        yaml.composer.Composer.__init__(self)

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()
        if not isinstance(event, yaml.AliasEvent) and event.anchor is not None:
            self.anchors.pop(event.anchor, None)
        return super().compose_node(parent, index)


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a file: from (line, column) to (end_line, end_column), all from 0; the end is not part of it."""

    line: int
    column: int
    end_line: int
    end_column: int


class _Unfit(yaml.YAMLError):
    """A value that no object of JSON can have."""

    def __init__(self, message: str, node: yaml.Node) -> None:
        super().__init__(message)
        self.node = node


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value stands, and its key.

    Attributes:
        value: of the value.
        key: of its key; of the value itself for items of lists.
        scalar: whether the value is one.
    """

    value: Span
    key: Span
    scalar: bool


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
    places: dict[Path, Place] = field(default_factory=dict)
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
    document = Document(file, lines)
    shift = _shift(lines, chunk, first)
    builder = _Builder(document, chunk, first, shift)
    document.faults += _behind_marker(chunk, first, shift)
    try:
        node = _composed(_without_directives(chunk))
        document.value = builder.value(node, ()) if node is not None else None
    except yaml.MarkedYAMLError as error:
        document.faults.append(builder.fault(error, chunk))
    except yaml.reader.ReaderError as error:
        document.faults.append(builder.forbidden(error, chunk))
    except _Unfit as error:
        at = builder.start(error.node)
        document.faults.append(Fault("BadYaml", f"cannot be read: {error}", at, _remedy(chunk)))
    except (yaml.YAMLError, ValueError) as error:
        at = Span(first, 0, first, 1)
        document.faults.append(Fault("BadYaml", f"cannot be read: {error}", at, _remedy(chunk)))
    return document


def _composed(chunk: str) -> yaml.Node | None:
    try:
        return yaml.compose(chunk, Loader=_Loader)
    except yaml.composer.ComposerError as error:
        if "duplicate anchor" not in f"{error.context} {error.problem}":
            raise
        return yaml.compose(chunk, Loader=_Reanchoring)


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
    """Makes values out of nodes, and notes their places."""

    def __init__(self, document: Document, chunk: str, first: int, shift: int) -> None:
        self._document = document
        self._first = first
        self._shift = shift
        self._starts = [0, *(found.end() for found in re.finditer("\n", chunk))]
        self._count = 0
        self._seen: set[int] = set()
        self._open: set[int] = set()

    def start(self, node: yaml.Node) -> Span:
        """The first line of a node."""
        span = self.span(node)
        end = span.end_column if span.end_line == span.line else span.column + 1
        return Span(span.line, span.column, span.line, end)

    def span(self, node: yaml.Node) -> Span:
        (line, column), (end_line, end_column) = self._at(node.start_mark), self._at(node.end_mark)
        return Span(line, column, end_line, end_column)

    def _at(self, mark: yaml.Mark) -> tuple[int, int]:
        """By its character alone: to YAML, lines end at more than line feeds."""
        line = bisect_right(self._starts, mark.index) - 1
        column = mark.index - self._starts[line]
        return self._first + line, column + (0 if line else self._shift)

    def fault(self, error: yaml.MarkedYAMLError, chunk: str) -> Fault:
        mark = error.problem_mark or error.context_mark
        line, column = self._at(mark) if mark is not None else (self._first, 0)
        what = ", ".join(filter(None, (error.context, error.problem)))
        remedy = _BREAK_REMEDY if self._has_breaks(line) else _remedy(chunk)
        return Fault("BadYaml", f"cannot be read: {what}", Span(line, column, line, column + 1), remedy)

    def _has_breaks(self, line: int) -> bool:
        """Whether a line or the one before it is more than one to YAML alone."""
        return bool(_BREAK.search("\n".join(self._document.lines[max(0, line - 1) : line + 1])))

    def forbidden(self, error: yaml.reader.ReaderError, chunk: str) -> Fault:
        """A character that no YAML may have."""
        before = chunk.encode()[: error.position].decode(errors="ignore")
        line, column = before.count("\n"), len(before) - (before.rfind("\n") + 1)
        span = Span(
            self._first + line,
            column + (0 if line else self._shift),
            self._first + line,
            column + 1 + (0 if line else self._shift),
        )
        message = (
            f"cannot be read: there is a character #x{ord(chunk[len(before)]):04x}, which YAML does not allow"
        )
        return Fault("BadYaml", message, span, "remove it, or write it as an escape in double quotes")

    def value(self, node: yaml.Node, path: Path, key: Span | None = None) -> Any:
        self._count += id(node) in self._seen
        self._seen.add(id(node))
        if id(node) in self._open:
            raise _Unfit("an alias stands within what it is an alias of", node)
        if self._count > _ALIASES:
            raise _Unfit(f"aliases stand for more than {_ALIASES:,} values", node)
        if len(self._open) > _DEEPEST:
            raise _Unfit(f"lists and mappings stand more than {_DEEPEST} deep in each other", node)
        span = self.span(node)
        scalar = isinstance(node, yaml.ScalarNode)
        self._document.places.setdefault(path, Place(span, key or span, scalar))
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node)
        self._open.add(id(node))
        value = (
            self._mapping(node, path)
            if isinstance(node, yaml.MappingNode)
            else [self.value(item, (*path, number)) for number, item in enumerate(node.value)]
        )
        self._open.discard(id(node))
        return value

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: list[yaml.Node] = []
        for key, item in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                merged += item.value if isinstance(item, yaml.SequenceNode) else [item]
                continue
            name = _key(key)
            at = self.span(key)
            if name in found:
                message = f"key {name!r} stands here a second time"
                self._document.faults.append(Fault("DuplicateKey", message, at, "keep one of them"))
            found[name] = self.value(item, (*path, name), at)
        for other in merged:
            if isinstance(other, yaml.MappingNode) and id(other) not in self._open:
                for name, value in self._mapping(other, path).items():
                    found.setdefault(name, value)
        return found


def _key(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise _Unfit("a key is a list or a mapping", node)
    value = _scalar(node)
    return (
        str(value).lower()
        if isinstance(value, bool)
        else str(node.value if isinstance(value, float) else value)
    )


def _scalar(node: yaml.ScalarNode) -> Any:
    kind, text = node.tag.rpartition(":")[2], node.value
    if kind == "bool":
        return text[:1] in "yYtT" or text.lower() == "on"
    if kind == "null":
        return None
    if kind == "int":
        return _integer(text)
    if kind == "float":
        return _number(node)
    return text


def _number(node: yaml.ScalarNode) -> int | float:
    """As JSON has it afterwards: `1e3` and `2.0` are whole numbers."""
    try:
        number = float(node.value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise _Unfit(f"{node.value} is no number of JSON", node)
    return int(number) if number.is_integer() and abs(number) < _WHOLE else number


def _integer(text: str) -> int | float | str:
    """Base by prefix; a leading zero is octal, as it is to Go. What has no digits is text, what has too many is a float, or text."""
    sign, digits = (-1 if text.startswith("-") else 1), text.lstrip("+-").replace("_", "")
    octal = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
    try:
        return sign * (int(digits, 8) if octal else int(digits, 0))
    except ValueError:
        number = float(digits) if digits.isdigit() else math.inf
        return text if math.isinf(number) else sign * number


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
    if place is None or not place.scalar:
        return None
    spots = _spots(document.lines, place.value, value[: start + length + 1])
    if start >= len(spots):
        line, column = spots[-1] if spots else (place.value.line, place.value.column)
        return Span(line, column + 1, line, column + 2)
    line, column = spots[start]
    last = next((spot for spot in reversed(spots[start : start + length]) if spot[0] == line), (line, column))
    return Span(line, column, line, max(column, last[1]) + 1)


def _spots(lines: tuple[str, ...], span: Span, value: str) -> list[tuple[int, int]]:
    """The place of each character of a scalar's value: found one after the other in its text, past indentation, quotes, escapes."""
    line, column = span.line, span.column
    if line < len(lines) and lines[line][column : column + 1] in {"|", ">"}:
        line, column = line + 1, 0
    spots = []
    for character in value:
        if character.isspace():
            spots.append((line, column))
            if character == "\n" or line >= len(lines):
                continue
            column += lines[line][column : column + 1] == character
            continue
        found = _next(lines, span, (line, column), character)
        if found is None:
            break
        spots.append(found)
        line, column = found[0], found[1] + 1
    return spots


def _next(lines: tuple[str, ...], span: Span, at: tuple[int, int], character: str) -> tuple[int, int] | None:
    line, column = at
    while line < len(lines) and line <= span.end_line:
        found = lines[line].find(character, column)
        if found >= 0:
            return line, found
        line, column = line + 1, 0
    return None
