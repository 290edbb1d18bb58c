"""What names an expression may use: the DRA environment of Kubernetes 1.37 (alloc L-6, cel.md section 3).

Upstream has two: new expressions honour feature gates, stored ones know everything that is not removed. The scheduler
compiles in the stored one whatever the gates say, and so does our compiler; the other one is for checks of new objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from .functions import INCLUDES, STANDARD
from .kinds import ANY, BOOL, DYN, QUANTITY, STRING, Kind, map_of
from .kubernetes import KUBERNETES
from .lists import LISTS
from .strings import STRINGS

if TYPE_CHECKING:
    from dra_operator.features import Features

    from .registry import Table

TYPE_IDENTIFIERS: Final = frozenset(
    {
        "bool",
        "bytes",
        "double",
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

NOT_BUILT: Final = frozenset(
    {
        "addDays", "cidr", "containsCIDR", "containsIP", "distinct", "duration", "encode", "family", "flatten",
        "format", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getEscapedPath", "getFullYear",
        "getHost", "getHostname", "getHours", "getMilliseconds", "getMinutes", "getMonth", "getPort", "getQuery",
        "getScheme", "getSeconds", "ip", "isCIDR", "isCanonical", "isGlobalUnicast", "isIP", "isLinkLocalMulticast",
        "isLinkLocalUnicast", "isLoopback", "isSorted", "isURL", "isUnspecified", "masked", "max", "min",
        "prefixLength", "quote", "range", "reverse", "slice", "sort", "sum", "timestamp", "unwrap", "unwrapOpt", "url", "validate",
    }
)  # fmt: skip
"""Functions that upstream's environment has and this engine has not: refused as unsupported, not as undeclared."""

NAMESPACES_NOT_BUILT: Final = frozenset(
    {"dyn", "format", "google", "kubernetes", "lists", "net", "sets", "strings"}
)


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
    libraries = (STRINGS, LISTS, KUBERNETES, *((INCLUDES,) if includes else ()))
    return Environment(attribute, fields, STANDARD.merged(*libraries))


def stored_expressions() -> Environment:
    """The environment of stored expressions: all that 1.37 knows, gates or not."""
    return _environment(DYN, multiple=True, includes=True)


def new_expressions(features: Features) -> Environment:
    """The environment of new expressions, which honours the gates."""
    lists = features.list_type_attributes
    return _environment(DYN if lists else ANY, multiple=features.consumable_capacity, includes=lists)
