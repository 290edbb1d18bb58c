"""One line of a conformance file, whatever it is about; what it is about is told by its fields.

Problems of the allocator and CEL have judges of their own. All other kinds are rows of KINDS: each compares our answer to one question with
upstream's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from dra_operator.cel import default_compiler
from tests.oracle.ours import Ours

from . import capacities, cel, claimhelpers, groups, pools, quantities, tracker
from .problems import UnknownCase, decode_case
from .running import Tally, Verdict, verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from .problems import Json


def _is_cel(raw: Json) -> bool:
    return "expression" in raw


def _is_quantity(raw: Json) -> bool:
    return "op" in raw


def _is_hint(raw: Json) -> bool:
    return "want" in raw.get("case", ()) and "err" in raw["case"]


class Kind(NamedTuple):
    """Lines of one kind.

    Attributes:
        about: in words, for docs/features.md.
        accepts: whether a line is of it.
        difference: what is wrong with our answer to it; empty when nothing is.
    """

    about: str
    accepts: Callable[[Json], bool]
    difference: Callable[[Json], str]


KINDS: Final = (
    Kind("quantities", _is_quantity, quantities.difference),
    Kind("hints on errors of CEL", _is_hint, cel.hint_difference),
    Kind("pools as a node sees them", pools.accepts, pools.difference),
    Kind("taints of DeviceTaintRules in slices", tracker.accepts, tracker.difference),
    Kind(
        "claims: owners, consumers, names, config, tolerations",
        claimhelpers.accepts,
        claimhelpers.difference,
    ),
    Kind("capacities: what is consumed, policies, what fits", capacities.accepts, capacities.difference),
    Kind("compatibility groups: who may join", groups.accepts, groups.difference),
)
"""All kinds but problems of the allocator and CEL."""


def kind_of(raw: Json) -> str | None:
    """What a line is about; None for problems of the allocator, and for what is of no kind."""
    if _is_cel(raw):
        return "CEL"
    return next((kind.about for kind in KINDS if kind.accepts(raw)), None)


class Judge:
    """Judges lines and counts them.

    Args:
        say: is told each line that fails.
        max_steps: search steps per problem; None for the product's limit, or what upstream took.
    """

    def __init__(self, say: Callable[[str], object], max_steps: int | None = None) -> None:
        self.tally = Tally()
        self._say = say
        self._max_steps = max_steps
        self._compiler = default_compiler()
        self._engine = Ours()

    def take(self, name: str, raw: Json) -> None:
        """Judge a line; `name` serves lines without an id. One of no known kind fails."""
        self.tally.add(raw.get("id", name), self._verdict(name, raw), self._say)

    def _verdict(self, name: str, raw: Json) -> Verdict:
        if _is_cel(raw):
            return self._cel(raw)
        for kind in KINDS:
            if kind.accepts(raw):
                return Verdict(kind.difference(raw))
        try:
            case = decode_case(raw, name)
        except UnknownCase as error:
            return Verdict(str(error))
        return verdict(case, self._compiler, self._max_steps)

    def _cel(self, raw: Json) -> Verdict:
        judged = list(cel.judge(raw, self._engine))
        wrong = [each.told for each in judged if each.verdict == "WRONG"]
        if wrong:
            return Verdict("; ".join(wrong))
        return Verdict(needs=frozenset(each.told for each in judged if each.verdict == "unsupported"))
