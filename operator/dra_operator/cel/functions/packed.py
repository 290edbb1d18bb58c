"""`google.protobuf.Any`: bytes in the wire format of protocol buffers, read as the messages that cel-go knows.

Called for messages of that type, which hardly anybody writes. Of other messages, nothing can be read: upstream fails there as well.
https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

from dra_operator.cel.types.messages import MESSAGES, PACKAGE
from dra_operator.cel.types.quoting import go_quoted
from dra_operator.cel.types.values import UInt
from dra_operator.errors import CelRuntimeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_VARINT, _EIGHT, _BYTES, _GROUP, _END, _FOUR = range(6)
"""How a field is written."""

_MOST_FIELD: Final = 2**29 - 1
_LONGEST_VARINT: Final = 10
_WORD: Final = 2**64

_Part = tuple[int, int, Any]
_Fields = dict[str, Any]


class _MalformedError(Exception):
    """The bytes are no message."""


def unpacked(url: str, data: bytes) -> tuple[str, _Fields]:
    """The name of the message that is packed, and its fields.

    Raises:
        CelRuntimeError: it is none that is known, or cannot be read.
    """
    name = url.rpartition("/")[2]
    read = _MESSAGES.get(name)
    if read is None:
        raise _failed(url)
    try:
        return name, read(data)
    except (_MalformedError, UnicodeDecodeError) as error:
        raise _failed(url) from error


def _failed(url: str) -> CelRuntimeError:
    shown = f"type_url:{go_quoted(url)}" if url else ""
    return CelRuntimeError(f"unsupported conversion to ref.Val: (*dynamicpb.Message){shown}")


# ------------------------------------------------------------------ the wire format


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number and where it ends."""
    number = 0
    for place in range(_LONGEST_VARINT):
        if at + place >= len(data):
            break
        byte = data[at + place]
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:  # noqa: PLR2004 -- the highest bit says that more follows
            if number >= _WORD:
                break
            return number, at + place + 1
    raise _MalformedError


def _parts(data: bytes) -> Iterator[_Part]:
    """Number, form and value of each field, but for groups, which no message here has."""
    at, groups = 0, [0]
    while at < len(data):
        tag, at = _varint(data, at)
        number, form = tag >> 3, tag & 7
        if not 1 <= number <= _MOST_FIELD:
            raise _MalformedError
        value, at = _content(data, at, form)
        if form == _GROUP:
            groups.append(number)
        elif form == _END:
            if groups.pop() != number:
                raise _MalformedError
        elif len(groups) == 1:
            yield number, form, value
    if len(groups) > 1:
        raise _MalformedError


def _content(data: bytes, at: int, form: int) -> tuple[Any, int]:
    if form == _VARINT:
        return _varint(data, at)
    if form in {_GROUP, _END}:
        return None, at
    if form == _BYTES:
        size, at = _varint(data, at)
    else:
        size = {_EIGHT: 8, _FOUR: 4}.get(form, len(data) + 1)
    if at + size > len(data):
        raise _MalformedError
    return data[at : at + size], at + size


# ------------------------------------------------------------------ fields


def _signed(bits: int) -> Callable[[int], int]:
    return lambda number: (number + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


_SCALARS: Final[dict[str, tuple[int, Callable[[Any], Any]]]] = {
    "bool": (_VARINT, bool),
    "bytes": (_BYTES, bytes),
    "double": (_EIGHT, lambda data: struct.unpack("<d", data)[0]),
    "float": (_FOUR, lambda data: float(struct.unpack("<f", data)[0])),
    "int32": (_VARINT, _signed(32)),
    "int64": (_VARINT, _signed(64)),
    "string": (_BYTES, lambda data: data.decode()),
    "enum": (_VARINT, _signed(32)),
    "uint32": (_VARINT, lambda number: UInt(number % 2**32)),
    "uint64": (_VARINT, UInt),
}
"""Form of a field → how it is written, and what is read."""


def _plain(name: str) -> Callable[[bytes], _Fields]:
    """Reads a message whose fields are scalars."""
    fields = list(MESSAGES[name].fields.items())

    def read(data: bytes) -> _Fields:
        found: _Fields = {}
        for number, form, value in _parts(data):
            if number <= len(fields):
                field, (_, wanted) = fields[number - 1]
                expected, convert = _SCALARS[wanted]
                if form == expected:
                    found[field] = convert(value)
        return found

    return read


def _empty(data: bytes) -> _Fields:
    """What is not known is kept: it makes a difference when messages are compared."""
    list(_parts(data))  # whether it can be read
    return {"": data} if data else {}


def _struct(data: bytes) -> _Fields:
    return {
        "fields": dict(_entry(value) for number, form, value in _parts(data) if (number, form) == (1, _BYTES))
    }


def _entry(data: bytes) -> tuple[str, Any]:
    key, inner = "", []
    for number, form, value in _parts(data):
        if (number, form) == (1, _BYTES):
            key = value.decode()
        elif (number, form) == (2, _BYTES):
            inner.append(value)
    return key, _json(b"".join(inner))


def _list(data: bytes) -> _Fields:
    return {
        "values": tuple(_json(value) for number, form, value in _parts(data) if (number, form) == (1, _BYTES))
    }


_NULL, _NUMBER, _STRING, _BOOL, _STRUCT, _LIST = range(1, 7)
_JSON_FORMS: Final = {
    _NULL: _VARINT, _NUMBER: _EIGHT, _STRING: _BYTES, _BOOL: _VARINT, _STRUCT: _BYTES, _LIST: _BYTES,
}  # fmt: skip


def _value(data: bytes) -> _Fields:
    """The last of the fields counts; messages that follow each other in it are one."""
    last, contents = 0, [b""]
    for number, form, value in _parts(data):
        if _JSON_FORMS.get(number) == form:
            joined = number == last and number in {_STRUCT, _LIST}
            contents = contents if joined else []
            contents.append(value)
            last = number
    if last in {0, _NULL}:
        return {}
    return {"value": _JSON[last](b"".join(contents) if last in {_STRUCT, _LIST} else contents[0])}


_JSON: Final[dict[int, Callable[[Any], Any]]] = {
    _NUMBER: _SCALARS["double"][1],
    _STRING: _SCALARS["string"][1],
    _BOOL: bool,
    _STRUCT: lambda data: _struct(data)["fields"],
    _LIST: lambda data: _list(data)["values"],
}


def _json(data: bytes) -> Any:
    return _value(data).get("value")


_MESSAGES: Final[dict[str, Callable[[bytes], _Fields]]] = {
    **{
        name: _plain(name)
        for name, message in MESSAGES.items()
        if all(field.form in _SCALARS for field in message.fields.values())
    },
    f"{PACKAGE}Empty": _empty,
    f"{PACKAGE}ListValue": _list,
    f"{PACKAGE}Struct": _struct,
    f"{PACKAGE}Value": _value,
}
"""Full name of a message → what reads it."""
