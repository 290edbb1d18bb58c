"""The messages of protocol buffers that every environment of cel-go has: their names, types and fields. Data alone.

The checker reads it, and so does what builds them (`functions/messages.py`). Most of them are values of CEL once they are built: what is
wrapped, a time, a list, a map.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from .kinds import (
    ANY,
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    INT,
    STRING,
    UINT,
    Kind,
    list_of,
    map_of,
    wrapper_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

PACKAGE: Final = "google.protobuf."


class Field(NamedTuple):
    """A field of a message.

    Attributes:
        kind: its type for the checker.
        form: what it is made of: a type of protocol buffers, or `json` for any value that JSON has.
    """

    kind: Kind
    form: str


class Message(NamedTuple):
    """A message.

    Attributes:
        kind: the type of what is built.
        fields: by name, in the order of their numbers.
    """

    kind: Kind
    fields: Mapping[str, Field]


_OBJECT: Final = map_of(STRING, DYN)
_ARRAY: Final = list_of(DYN)

_WRAPPED: Final = {
    "BoolValue": Field(BOOL, "bool"),
    "BytesValue": Field(BYTES, "bytes"),
    "DoubleValue": Field(DOUBLE, "double"),
    "FloatValue": Field(DOUBLE, "float"),
    "Int32Value": Field(INT, "int32"),
    "Int64Value": Field(INT, "int64"),
    "StringValue": Field(STRING, "string"),
    "UInt32Value": Field(UINT, "uint32"),
    "UInt64Value": Field(UINT, "uint64"),
}
"""Wrappers, by the only field that they have."""

_MOMENT: Final = {"seconds": Field(INT, "int64"), "nanos": Field(INT, "int32")}

MESSAGES: Final[dict[str, Message]] = {
    PACKAGE + name: message
    for name, message in {
        **{name: Message(wrapper_of(field.kind), {"value": field}) for name, field in _WRAPPED.items()},
        "Any": Message(ANY, {"type_url": Field(STRING, "string"), "value": Field(BYTES, "bytes")}),
        "Duration": Message(Kind("google.protobuf.Duration"), _MOMENT),
        "Empty": Message(Kind("google.protobuf.Empty"), {}),
        "ListValue": Message(_ARRAY, {"values": Field(_ARRAY, "array")}),
        "Struct": Message(_OBJECT, {"fields": Field(_OBJECT, "object")}),
        "Struct.FieldsEntry": Message(
            Kind("google.protobuf.Struct.FieldsEntry"),
            {"key": Field(STRING, "string"), "value": Field(DYN, "json")},
        ),
        "Timestamp": Message(Kind("google.protobuf.Timestamp"), _MOMENT),
        "Value": Message(
            DYN,
            {
                "null_value": Field(INT, "enum"),
                "number_value": Field(DOUBLE, "double"),
                "string_value": Field(STRING, "string"),
                "bool_value": Field(BOOL, "bool"),
                "struct_value": Field(_OBJECT, "object"),
                "list_value": Field(_ARRAY, "array"),
            },
        ),
    }.items()
}
"""Full name → message."""

RECORDS: Final = {
    name: MESSAGES[name].fields for name in ("google.protobuf.Empty", "google.protobuf.Struct.FieldsEntry")
}
"""Messages that are no other values of CEL → their fields."""

FIELDLESS: Final = frozenset({"bool", "bytes", "double", "int", "string", "uint"})
"""Types that are no messages, but that upstream has declared as if they could have fields."""

ALSO: Final[dict[str, str]] = {
    "duration": "google.protobuf.Duration",
    "list": "google.protobuf.ListValue",
    "null_type": "google.protobuf.NullValue",
    "timestamp": "google.protobuf.Timestamp",
}
"""Names of types that the checker takes for those of messages; nothing can be built of all of them."""
