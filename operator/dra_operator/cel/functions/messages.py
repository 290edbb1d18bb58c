"""Messages of protocol buffers: what cel-go makes of their fields, and the value of CEL that they then are.

Called by the evaluators for `name{field: value}`. Fields take what their type takes, and convert what is of another one only where cel-go does:
anything to JSON, and Kubernetes' own types to text. Which messages there are, `types/messages.py` says.
"""

from __future__ import annotations

import base64
import math
import struct
from typing import TYPE_CHECKING, Any, Final

from dra_operator.cel.types.messages import MESSAGES
from dra_operator.cel.types.values import (
    CIDR,
    INT_MAX,
    INT_MIN,
    IP,
    URL,
    Computed,
    Duration,
    Empty,
    Entry,
    Optional,
    Record,
    Timestamp,
    UInt,
    from_key,
    type_name,
)
from dra_operator.cel.types.versions import Semver
from dra_operator.errors import CelRuntimeError
from dra_operator.quantity import Quantity

from .packed import unpacked
from .times import SECOND, duration_text, moment, timestamp_text

if TYPE_CHECKING:
    from collections.abc import Callable

PACKED: Final = "google.protobuf.Any"
"""The message that holds another one as bytes."""

_SAFE: Final = 2**53 - 1
"""Whole numbers up to it are numbers in JSON, larger ones are text."""


def built(name: str, fields: dict[str, Any]) -> Any:
    """The value that a message is.

    Args:
        name: of the message.
        fields: their values.

    Raises:
        CelRuntimeError: a field cannot hold its value, or the message is no value.
    """
    message = MESSAGES.get(name)
    if message is None:
        raise CelRuntimeError(f"unknown type '{name}'")
    return _MADE[name](
        {
            field: _converted(f"{name}.{field}", message.fields[field].form, value)
            for field, value in fields.items()
        }
    )


_REPEATED: Final = {
    "google.protobuf.ListValue.values": tuple,
    "google.protobuf.Struct.fields": dict,
}
"""Fields that hold several values → what they have to be given."""


def _converted(place: str, form: str, value: Any) -> Any:
    if place in _REPEATED and not isinstance(value, _REPEATED[place]):
        raise CelRuntimeError(f"unsupported field type for {place}: {type_name(value)}")
    try:
        return _FORMS[form](value)
    except CelRuntimeError as error:
        raise CelRuntimeError(f"field type conversion error for {place} value type: {error}") from error


# ------------------------------------------------------------------ fields


def _held(value: Any) -> Any:
    """What an optional holds, which is asked for what it can be converted to."""
    while isinstance(value, Optional):
        if not value.present:
            raise CelRuntimeError("optional.none() dereference")
        value = value.value
    return value


_REFUSALS: Final[dict[str, Callable[[str], str]]] = {
    "bool": lambda wanted: f"type conversion error from bool to '{wanted}'",
    "bytes": lambda wanted: f"type conversion error from Bytes to '{wanted}'",
    "double": lambda wanted: f"type conversion error from Double to '{wanted}'",
    "int": lambda wanted: f"unsupported type conversion from 'int' to {wanted}",
    "list": lambda wanted: f"type conversion error from list to '{wanted}'",
    "map": lambda wanted: f"type conversion error from map to '{wanted}'",
    "string": lambda wanted: f"unsupported native conversion from string to '{wanted}'",
    "type": lambda _: "type conversion not supported for 'type'",
    "uint": lambda wanted: f"unsupported type conversion from 'uint' to {wanted}",
}
"""Upstream's words for a value of this type that cannot be converted."""

_GO_FORMS: Final = {
    "array": "*structpb.ListValue",
    "bytes": "[]uint8",
    "double": "float64",
    "enum": "protoreflect.EnumNumber",
    "float": "float32",
    "json": "*structpb.Value",
    "object": "*structpb.Struct",
}
"""Forms by the names of Go's types, where they are others."""


_GIVEN: Final = {
    "google.protobuf.Empty": "*dynamicpb.Message",
    "google.protobuf.Struct.FieldsEntry": "*dynamicpb.Message",
    "kubernetes.NamedFormat": "Format",
}
"""Types that upstream calls by another name here than by the last part of their own."""


def _refused(value: Any, form: str) -> CelRuntimeError:
    wanted, name = _GO_FORMS.get(form, form), type_name(value)
    refusal = _REFUSALS.get(name)
    if refusal is not None:
        return CelRuntimeError(refusal(wanted))
    given = _GIVEN.get(name) or name.rpartition(".")[2]
    return CelRuntimeError(f"type conversion error from '{given}' to '{wanted}'")


def _of(form: str, *kinds: type) -> Callable[[Any], Any]:
    """Takes values of these types as they are."""

    def convert(value: Any) -> Any:
        held = _held(value)
        if type(held) not in kinds:
            raise _refused(held, form)
        return held

    return convert


def _whole(form: str, kind: type, least: int, most: int, complaint: str) -> Callable[[Any], Any]:
    convert = _of(form, kind)

    def within(value: Any) -> Any:
        held = convert(value)
        if not least <= held <= most:
            raise CelRuntimeError(complaint)
        return held

    return within


_TEXTS: Final[dict[type, Callable[[Any], str]]] = {
    str: lambda value: value,
    Quantity: str,
    Computed: str,
    Semver: lambda value: str(value.version),
    IP: str,
    CIDR: str,
    URL: lambda value: value.text,
}
"""Types of values that a field for text takes."""


def _text(value: Any) -> str:
    held = _held(value)
    convert = _TEXTS.get(type(held))
    if convert is None:
        raise _refused(held, "string")
    return convert(held)


_BYTE: Final = 2**8 - 1


def _bytes(value: Any) -> bytes:
    """Bytes, also as a list of small uints."""
    held = _held(value)
    if isinstance(held, bytes):
        return held
    if not isinstance(held, tuple):
        raise _refused(held, "bytes")
    return bytes(map(_byte, held))


_byte: Final = _whole("uint8", UInt, 0, _BYTE, "unsigned integer overflow")


def _float(value: Any) -> float:
    """A double as near as a float of four bytes comes."""
    number = _of("float", float)(value)
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


# ------------------------------------------------------------------ JSON


def _json(value: Any) -> Any:
    """Any value as one of JSON, and that as one of CEL again."""
    held = _held(value)
    convert = _TO_JSON.get(type(held))
    if convert is None and not isinstance(held, dict):
        raise _refused(held, "json")
    return _object(held) if convert is None else convert(held)


def _entry_as_json(value: Record) -> dict[str, Any]:
    """Upstream makes text of it and reads that again: there are no numbers in it that are none, nor text that is no UTF-8."""
    waiting = [("Struct.FieldsEntry.key", value.fields.get("key", ""))]
    waiting += _leaves(value.fields.get("value"))
    for place, leaf in waiting:
        if isinstance(leaf, float) and not math.isfinite(leaf):
            raise CelRuntimeError(
                f"proto: google.protobuf.Value.number_value: invalid {_INFINITE.get(leaf, 'NaN')} value"
            )
        if isinstance(leaf, str) and not _is_utf_8(leaf):
            raise CelRuntimeError(f"proto: field google.protobuf.{place} contains invalid UTF-8")
    return value.fields


_INFINITE: Final = {math.inf: "+Inf", -math.inf: "-Inf"}


def _leaves(value: Any) -> list[tuple[str, Any]]:
    """All that is in a value of JSON and holds nothing, with the name of its field."""
    found, waiting = [], [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, dict):
            found += [("Struct.FieldsEntry.key", key) for key in inner]
            waiting += inner.values()
        elif isinstance(inner, tuple):
            waiting += inner
        else:
            found.append(("Value.string_value", inner))
    return found


def _is_utf_8(text: str) -> bool:
    """Whether nothing in it is left of bytes that were none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _number(value: int) -> float | str:
    return float(value) if -_SAFE <= value <= _SAFE else str(int(value))


def _same(value: Any) -> Any:
    return value


_TO_JSON: Final[dict[type, Callable[[Any], Any]]] = {
    type(None): _same,
    bool: _same,
    float: _same,
    str: _same,
    int: _number,
    UInt: _number,
    bytes: lambda value: base64.b64encode(value).decode(),
    Duration: duration_text,
    Timestamp: timestamp_text,
    Empty: lambda _: {},
    Entry: _entry_as_json,
    tuple: lambda value: tuple(map(_json, value)),
}


def _array(value: Any) -> tuple[Any, ...]:
    held = _held(value)
    if not isinstance(held, tuple):
        raise _refused(held, "array")
    return tuple(map(_json, held))


def _object(value: Any) -> dict[str, Any]:
    held = _held(value)
    if not isinstance(held, dict):
        raise _refused(held, "object")
    return {_text(from_key(key)): _json(member) for key, member in held.items()}


_FORMS: Final[dict[str, Callable[[Any], Any]]] = {
    "array": _array,
    "bool": _of("bool", bool),
    "bytes": _bytes,
    "double": _of("float64", float),
    "float": _float,
    "enum": _whole("enum", int, -(2**31), 2**31 - 1, "integer overflow"),
    "int32": _whole("int32", int, -(2**31), 2**31 - 1, "integer overflow"),
    "int64": _of("int64", int),
    "json": _json,
    "object": _object,
    "string": _text,
    "uint32": _whole("uint32", UInt, 0, 2**32 - 1, "unsigned integer overflow"),
    "uint64": _of("uint64", UInt),
}
"""Form of a field → what makes it of a value."""

# ------------------------------------------------------------------ messages


def _duration(fields: dict[str, Any]) -> Duration:
    """What does not fit into nanoseconds is the longest duration there is."""
    whole = fields.get("seconds", 0) * SECOND
    nanos = whole + fields.get("nanos", 0) if INT_MIN <= whole <= INT_MAX else whole
    return Duration(max(INT_MIN, min(nanos, INT_MAX)))


def _value(fields: dict[str, Any]) -> Any:
    """The field that is set; with several of them, which one it is hangs on Go's order of maps."""
    return None if "null_value" in fields else next(reversed(fields.values()), None)


def _entry(fields: dict[str, Any]) -> Entry:
    """An empty key is as good as none."""
    return Entry({name: value for name, value in fields.items() if (name, value) != ("key", "")})


def _wrapped(default: object) -> Callable[[dict[str, Any]], Any]:
    return lambda fields: fields.get("value", default)


def _unpacked(fields: dict[str, Any]) -> Any:
    name, inner = unpacked(fields.get("type_url", ""), fields.get("value", b""))
    return _MADE[name](inner)


_MADE: Final[dict[str, Callable[[dict[str, Any]], Any]]] = {
    PACKED: _unpacked,
    "google.protobuf.BoolValue": _wrapped(default=False),
    "google.protobuf.BytesValue": _wrapped(b""),
    "google.protobuf.DoubleValue": _wrapped(0.0),
    "google.protobuf.Duration": _duration,
    "google.protobuf.Empty": Empty,
    "google.protobuf.FloatValue": _wrapped(0.0),
    "google.protobuf.Int32Value": _wrapped(0),
    "google.protobuf.Int64Value": _wrapped(0),
    "google.protobuf.ListValue": lambda fields: fields.get("values", ()),
    "google.protobuf.StringValue": _wrapped(""),
    "google.protobuf.Struct": lambda fields: fields.get("fields", {}),
    "google.protobuf.Struct.FieldsEntry": _entry,
    "google.protobuf.Timestamp": lambda fields: moment(fields.get("seconds", 0), fields.get("nanos", 0)),
    "google.protobuf.UInt32Value": _wrapped(UInt(0)),
    "google.protobuf.UInt64Value": _wrapped(UInt(0)),
    "google.protobuf.Value": _value,
}
"""Name of a message → the value that it is, by its fields."""
