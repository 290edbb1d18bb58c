"""One line of a conformance file, whatever it is about: problems of the allocator, CEL, hints on CEL's errors, quantities."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.cel import default_compiler
from tests.oracle.ours import Ours

from . import cel, quantities
from .problems import decode_case
from .running import Tally, Verdict, verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from .problems import Json


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
        """Judge a line; `name` serves lines without an id.

        Raises:
            UnknownCase: it is no case of any kind.
        """
        self.tally.add(raw.get("id", name), self._verdict(name, raw), self._say)

    def _verdict(self, name: str, raw: Json) -> Verdict:
        if "expression" in raw:
            return self._cel(raw)
        if "op" in raw:
            return Verdict(quantities.difference(raw))
        if "want" in raw.get("case", ()):
            return Verdict(cel.hint_difference(raw))
        return verdict(decode_case(raw, name), self._compiler, self._max_steps)

    def _cel(self, raw: Json) -> Verdict:
        judged = list(cel.judge(raw, self._engine))
        wrong = [each.told for each in judged if each.verdict == "WRONG"]
        if wrong:
            return Verdict("; ".join(wrong))
        return Verdict(needs=frozenset(each.told for each in judged if each.verdict == "unsupported"))
