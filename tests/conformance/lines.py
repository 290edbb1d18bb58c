"""One line of a conformance file, whatever it is about; what it is about is told by its fields.

Problems of the allocator and CEL have judges of their own. All other kinds are rows of KINDS: each compares our answer to one question with
upstream's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dra_operator.cel import default_compiler
from tests.oracle.ours import Ours

from . import cel, claimhelpers, pools, quantities, tracker
from .problems import UnknownCase, decode_case
from .running import Tally, Verdict, verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from .problems import Json


def _is_quantity(raw: Json) -> bool:
    return "op" in raw


def _is_hint(raw: Json) -> bool:
    return "want" in raw.get("case", ()) and "err" in raw["case"]


KINDS: Final[tuple[tuple[Callable[[Json], bool], Callable[[Json], str]], ...]] = (
    (_is_quantity, quantities.difference),
    (_is_hint, cel.hint_difference),
    (pools.accepts, pools.difference),
    (tracker.accepts, tracker.difference),
    (claimhelpers.accepts, claimhelpers.difference),
)
"""Whether a line is of the kind, and what is wrong with our answer to it (empty when nothing is)."""


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
        if "expression" in raw:
            return self._cel(raw)
        for accepts, difference in KINDS:
            if accepts(raw):
                return Verdict(difference(raw))
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
