"""What names an expression may use: the DRA environment (alloc L-6, cel.md section 3), made of the table in `libraries.py`.

Upstream has two: new expressions honour feature gates, stored ones know everything that is not removed. The scheduler
compiles in the stored one whatever the gates say, and so does our compiler; the other one is for checks of new objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from dra_operator.cel.functions.registry import Table
from dra_operator.cel.parsing.syntax import dotted
from dra_operator.cel.types.kinds import ANY, BOOL, DYN, QUANTITY, STRING, Kind, map_of

from .libraries import LIBRARIES, NEWEST

if TYPE_CHECKING:
    from collections.abc import Container

    from dra_operator.cel.parsing.macros import Macros
    from dra_operator.cel.parsing.syntax import Node
    from dra_operator.features import Features

    from .libraries import Library, Version
    from .validators import Validator

TYPE_IDENTIFIERS: Final = frozenset(
    {
        "bool",
        "bytes",
        "double",
        "google.protobuf.Duration",
        "google.protobuf.Empty",
        "google.protobuf.Struct.FieldsEntry",
        "google.protobuf.Timestamp",
        "int",
        "list",
        "map",
        "net.CIDR",
        "net.IP",
        "null_type",
        "optional_type",
        "string",
        "type",
        "uint",
    }
)
"""Names of types, which are values of type `type`."""

DECLARED_TYPES: Final = frozenset(
    {
        "duration", "google.protobuf.Any", "google.protobuf.BoolValue", "google.protobuf.BytesValue",
        "google.protobuf.DoubleValue", "google.protobuf.FloatValue", "google.protobuf.Int32Value",
        "google.protobuf.Int64Value", "google.protobuf.ListValue", "google.protobuf.StringValue", "google.protobuf.Struct",
        "google.protobuf.UInt32Value", "google.protobuf.UInt64Value", "google.protobuf.Value", "kubernetes.DRADevice",
        "timestamp",
    }
)  # fmt: skip
"""Names of types that pass the type check, but are values nowhere: upstream then fails to make the program."""

NULL_VALUE: Final = "google.protobuf.NullValue.NULL_VALUE"
"""The one constant of an enumeration: 0."""


def type_identifier(node: Node, scope: Container[str]) -> str:
    """The name of the type that the expression is, unless a variable has the first part of the name."""
    spelt = dotted(node)
    name = spelt.removeprefix(".")
    is_type = name in TYPE_IDENTIFIERS or name in DECLARED_TYPES
    # With a leading point, no variable is meant: then the first part is empty, and in no scope.
    return name if is_type and spelt.partition(".")[0] not in scope else ""


@dataclass(frozen=True, slots=True, eq=False)
class Environment:
    """Declarations for one kind of expression."""

    attribute: Kind
    fields: dict[str, Kind]
    functions: Table
    macros: Macros
    validators: tuple[Validator, ...]

    @property
    def lists(self) -> bool:
        """Whether attributes may be lists, so that expressions may give lists, too (alloc D-4)."""
        return self.attribute == DYN


@cache
def _environment(libraries: tuple[Library, ...], *, multiple: bool, lists: bool) -> Environment:
    attribute = DYN if lists else ANY
    fields = {
        "driver": STRING,
        "attributes": map_of(STRING, map_of(STRING, attribute)),
        "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
    }
    if multiple:
        fields["allowMultipleAllocations"] = BOOL
    return Environment(
        attribute,
        fields,
        Table().merged(*(library.functions for library in libraries)),
        {key: macro for library in libraries for key, macro in library.macros.items()},
        tuple(validator for library in libraries for validator in library.validators),
    )


@cache
def stored_expressions() -> Environment:
    """The environment of stored expressions: all that the newest version knows, gates or not."""
    known = tuple(library for library in LIBRARIES if library.until is None)
    return _environment(known, multiple=True, lists=True)


def new_expressions(features: Features, server: Version = NEWEST) -> Environment:
    """The environment of new expressions, which honours gates.

    A new object must be understood by the API server one version older, should the newer one be rolled back (the API server's minimal
    compatibility version). So what a version brings is for expressions of the next one.

    Args:
        features: the gates that are on.
        server: the version of the API server, as if it were of the newest code otherwise.
    """
    major, minor = server
    known = tuple(
        library
        for library in LIBRARIES
        if (getattr(features, library.gate) if library.gate else library.is_at((major, minor - 1)))
    )
    return _environment(known, multiple=features.consumable_capacity, lists=features.list_type_attributes)
