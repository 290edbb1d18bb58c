"""What names an expression may use: the DRA environment of Kubernetes 1.37 (alloc L-6, cel.md section 3).

Upstream has two: new expressions honour feature gates, stored ones know everything that is not removed. The scheduler
compiles in the stored one whatever the gates say, and so does our compiler; the other one is for checks of new objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from .formatting import FORMATTING
from .functions import INCLUDES, STANDARD
from .kinds import ANY, BOOL, DYN, QUANTITY, STRING, Kind, map_of
from .kubernetes import KUBERNETES
from .lists import LISTS
from .strings import STRINGS
from .syntax import dotted
from .times import TIMES

if TYPE_CHECKING:
    from collections.abc import Container

    from dra_operator.features import Features

    from .registry import Table
    from .syntax import Node

TYPE_IDENTIFIERS: Final = frozenset(
    {
        "bool",
        "bytes",
        "double",
        "google.protobuf.Duration",
        "google.protobuf.Empty",
        "google.protobuf.Timestamp",
        "int",
        "list",
        "map",
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


NOT_BUILT: Final = frozenset(
    {
        "cidr", "containsCIDR", "containsIP", "distinct", "family", "flatten", "getEscapedPath", "getHost",
        "getHostname", "getPort", "getQuery", "getScheme", "ip", "isCIDR", "isCanonical", "isGlobalUnicast", "isIP", "isLinkLocalMulticast",
        "isLinkLocalUnicast", "isLoopback", "isSorted", "isURL", "isUnspecified", "masked", "max", "min",
        "prefixLength", "range", "reverse", "slice", "sort", "sum", "unwrap", "unwrapOpt", "url", "validate",
    }
)  # fmt: skip
"""Functions that upstream's environment has and this engine has not: refused as unsupported, not as undeclared."""

NAMESPACES_NOT_BUILT: Final = frozenset({"format", "lists", "net", "sets"})


@dataclass(frozen=True, slots=True, eq=False)
class Environment:
    """Declarations for one kind of expression."""

    attribute: Kind
    fields: dict[str, Kind]
    functions: Table

    @property
    def lists(self) -> bool:
        """Whether attributes may be lists, so that expressions may give lists, too (alloc D-4)."""
        return self.attribute == DYN


@cache
def _environment(attribute: Kind, *, multiple: bool, includes: bool) -> Environment:
    fields = {
        "driver": STRING,
        "attributes": map_of(STRING, map_of(STRING, attribute)),
        "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
    }
    if multiple:
        fields["allowMultipleAllocations"] = BOOL
    libraries = (TIMES, STRINGS, FORMATTING, LISTS, KUBERNETES, *((INCLUDES,) if includes else ()))
    return Environment(attribute, fields, STANDARD.merged(*libraries))


def stored_expressions() -> Environment:
    """The environment of stored expressions: all that 1.37 knows, gates or not."""
    return _environment(DYN, multiple=True, includes=True)


def new_expressions(features: Features) -> Environment:
    """The environment of new expressions, which honours the gates."""
    lists = features.list_type_attributes
    return _environment(DYN if lists else ANY, multiple=features.consumable_capacity, includes=lists)
