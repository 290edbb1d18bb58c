"""Whether a small problem has a solution at all, by trying every assignment: no search of ours or of upstream's is asked.

Rules are judged by the verifier. Each of them stays broken whatever is added (alloc C-4), so an assignment is left as soon as a part of it breaks one.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from .assignments import Part

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .assignments import Call


class TooManyError(Exception):
    """There are more assignments than may be tried."""


class Exhaustive:
    """Tries all assignments of the claims of a call.

    Args:
        call: what is asked for, and the rules.
        most: devices that are judged, in all assignments and parts of them.
    """

    def __init__(self, call: Call, most: int = 5_000) -> None:
        self._call = call
        self._left = most

    def solution(self) -> list[Part] | None:
        """An assignment that breaks no rule, or None if there is none.

        Raises:
            TooManyError: not all could be tried.
        """
        return next(self._solutions([], 0, 0), None)

    def _solutions(self, parts: list[Part], claim: int, request: int) -> Iterator[list[Part]]:
        if claim == len(self._call.claims):
            self._spend(parts)
            if not self._call.broken(parts):
                yield parts
            return
        requests = self._call.claims[claim].spec.devices.requests
        if request == len(requests):
            yield from self._solutions(parts, claim + 1, 0)
            return
        for part in self._parts(claim, request):
            more = [*parts, part]
            if self._may_go_on(more):
                yield from self._solutions(more, claim, request + 1)

    def _parts(self, claim: int, request: int) -> Iterator[Part]:
        for wanted in self._call.wanted(claim):
            if wanted.index != request:
                continue
            usable = [each for each in self._call.devices if self._may_go_on([Part(claim, wanted, (each,))])]
            if wanted.entry.allocation_mode == "All":
                yield Part(claim, wanted, tuple(usable))
            else:
                for devices in combinations(usable, wanted.entry.count):
                    yield Part(claim, wanted, devices)

    def _may_go_on(self, parts: Sequence[Part]) -> bool:
        self._spend(parts)
        return self._call.may_go_on(parts)

    def _spend(self, parts: Sequence[Part]) -> None:
        self._left -= 1 + sum(len(part.devices) for part in parts)
        if self._left < 0:
            raise TooManyError
