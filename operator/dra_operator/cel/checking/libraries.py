"""Which function and macro exists at which version of Kubernetes: one table.

The rows are those of the API server's base environment (apiserver/pkg/cel/environment/base.go, 1.37) and of the DRA environment on top
(dynamic-resource-allocation/cel/compile.go). What Kubernetes 1.31, the first with selectors, had already is in rows of its own all the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from dra_operator.cel.functions.authorizer import AUTHORIZER, SELECTORS
from dra_operator.cel.functions.conversions import CONVERSIONS
from dra_operator.cel.functions.formats import FORMATS
from dra_operator.cel.functions.formatting import FORMATTING
from dra_operator.cel.functions.kubernetes import QUANTITIES, SEMVERS
from dra_operator.cel.functions.lists import INCLUDES, KUBERNETES_LISTS, LISTS, SETS
from dra_operator.cel.functions.network import CIDRS, IPS, URLS
from dra_operator.cel.functions.optionals import OPTIONALS
from dra_operator.cel.functions.registry import Table
from dra_operator.cel.functions.standard import STANDARD
from dra_operator.cel.functions.strings import STRINGS
from dra_operator.cel.functions.times import TIMES
from dra_operator.cel.parsing import macros

from .validators import constant_arguments, formats, homogeneous_literals

if TYPE_CHECKING:
    from dra_operator.cel.parsing.macros import Macros

    from .validators import Validator

Version = tuple[int, int]

NEWEST: Final = (1, 37)
"""The Kubernetes whose code this follows."""


@dataclass(frozen=True, slots=True, eq=False)
class Library:
    """One row.

    Attributes:
        name: as upstream's libraries are called.
        since: the first version that new expressions may use it at.
        until: the first version that it is gone from; what is gone is in no environment of the newest version either.
        gate: a switch of `Features`; where it is on, new expressions have the library at any version, where it is off at none.
            Stored expressions have it in any case.
    """

    name: str
    since: Version
    functions: Table = field(default_factory=Table)
    macros: Macros = field(default_factory=dict)
    validators: tuple[Validator, ...] = ()
    until: Version | None = None
    gate: str = ""

    def is_at(self, version: Version) -> bool:
        """Whether the version has it, gates aside."""
        return self.since <= version and (self.until is None or version < self.until)


LIBRARIES: Final = (
    Library("standard", (1, 0), STANDARD.merged(CONVERSIONS), macros.STANDARD),
    Library("times", (1, 0), TIMES),
    Library("kubernetes.urls", (1, 0), URLS),
    Library("kubernetes.lists 0", (1, 0), KUBERNETES_LISTS, until=(1, 37)),
    Library("kubernetes.authz", (1, 27), AUTHORIZER),
    Library("optional", (1, 28), OPTIONALS, macros.OPTIONALS),
    Library("kubernetes.quantity", (1, 28), QUANTITIES),
    Library("validators", (1, 29), validators=(constant_arguments, homogeneous_literals)),
    # With regular expressions, which are older. Until 1.28 version 0 was in its place, without `format` and `quote`.
    Library("strings 2", (1, 29), STRINGS.merged(FORMATTING), validators=(formats,)),
    Library("sets", (1, 29), SETS),
    Library("kubernetes.net.ip", (1, 30), IPS),
    Library("kubernetes.net.cidr", (1, 30), CIDRS),
    Library("kubernetes.format", (1, 31), FORMATS),
    Library("kubernetes.authz selectors", (1, 31), SELECTORS),
    Library("two-variable comprehensions", (1, 32), macros=macros.TWO_VARIABLES),
    Library("kubernetes.semver 1", (1, 33), SEMVERS),
    Library("lists 3", (1, 34), LISTS, macros.LISTS),
    Library("kubernetes.lists 1", (1, 37), KUBERNETES_LISTS.merged(INCLUDES)),
    Library("bindings 0", (1, 31), macros=macros.BINDINGS),
    Library("dra includes", (1, 36), INCLUDES, gate="list_type_attributes"),
)
"""In upstream's order, which decides about overloads and about faults at one place."""
