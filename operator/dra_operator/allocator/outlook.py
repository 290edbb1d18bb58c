"""What the requests of a call can ever get: the static side of pruning, built once a search turns out to be long.

Positions of devices are bits of integers. Devices that no request and no constraint can tell apart are of one kind. Used by `bounds` and `pruning`. It must
not know what the call has taken.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dra_operator.cel.vectors import places
from dra_operator.errors import CelError, InvalidInput

from .constraints import UnclearError
from .counters import draws
from .state import RESULTS_LIMIT

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from .constraints import Constraint, Values
    from .judge import Judge
    from .pools import View
    from .requests import ClaimRequests, Request, Wanted


@dataclass(slots=True)
class Chances:
    """What one request, or alternative, can get.

    Attributes:
        usable: devices that nothing speaks against but what is taken.
        broken: devices at which a look fails, which would end the search.
        values: by constraint that applies, the devices by the values that they are compared by.
    """

    usable: int = 0
    broken: int = 0
    values: dict[Constraint, dict[Values, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Slot:
    """A request, in the order of the search.

    Attributes:
        claim: index of its claim.
        request: the request.
    """

    claim: int
    request: Request


class Outlook:
    """The chances of all requests of a call.

    Args:
        view: pools and candidates of the node.
        claims: validated.
        judge: what does not change.

    Attributes:
        slots: all requests.
        at: where the slot of a claim's request is, by both their indices.
        horizon: slots before the first at which the search may end with an error: nothing may be concluded beyond.
        last_conflict: the last slot at which a constraint may refuse one of all devices, -1 if there is none.
        exceeding: claims that may have more devices than they can hold.
        chances: by request or alternative.
        kind_of: by position, the number of its kind; -1 if no request can use it.
        kinds: by kind, its devices.
        shareable: devices that several may use.
        drawing: other devices that draw on counters.

    Raises:
        WorkLimitReached: the decision may do no more work on selectors.
    """

    def __init__(self, view: View, claims: Sequence[ClaimRequests], judge: Judge) -> None:
        self.view = view
        self.judge = judge
        self.slots = [
            Slot(number, request) for number, claim in enumerate(claims) for request in claim.requests
        ]
        self.at: dict[tuple[int, int], int] = {}
        for number, claim in enumerate(claims):
            for index in range(len(claim.requests)):
                self.at[number, index] = len(self.at)
        self.chances = {wanted: self._chances(wanted) for wanted in self._all_wanted()}
        conflicts = [at for at, slot in enumerate(self.slots) if _may_conflict(slot)]
        self.last_conflict = max(conflicts, default=-1)
        self._error = next(
            (at for at, slot in enumerate(self.slots) if self._is_broken(slot)), len(self.slots)
        )
        self.horizon = min([self._error, *conflicts])
        self.exceeding = frozenset(slot.claim for slot in self.slots if self._may_exceed(slot))
        self.shareable = sum(
            1 << position
            for position, candidate in enumerate(view.candidates)
            if judge.is_shareable(candidate.device)
        )
        self.drawing = sum(
            1 << position
            for position, candidate in enumerate(view.candidates)
            if judge.minds_counters
            and candidate.device.consumes_counters
            and not self.shareable >> position & 1
        )
        self.kind_of = [-1] * len(view.candidates)
        self.kinds: list[int] = []
        self._sort()

    def look_past_conflicts(self) -> None:
        """Conclude something also beyond requests for all devices that a constraint may refuse one of, which ends a search (alloc S-17)."""
        self.horizon = self._error

    def _all_wanted(self) -> Iterator[Wanted]:
        return (wanted for slot in self.slots for wanted in slot.request.alternatives)

    def _is_broken(self, slot: Slot) -> bool:
        """Whether a look at some device fails."""
        return any(self.chances[wanted].broken for wanted in slot.request.alternatives)

    def _may_exceed(self, slot: Slot) -> bool:
        """Whether the claim may have more devices than it can hold, for which there is a way back that is shorter than any pruning (alloc S-8)."""
        most = (
            max(wanted.number for wanted in other.request.alternatives)
            for other in self.slots
            if other.claim == slot.claim
        )
        return sum(most) > RESULTS_LIMIT

    def _chances(self, wanted: Wanted) -> Chances:
        found = Chances()
        positions = range(len(self.view.candidates)) if wanted.members is None else wanted.members
        for position in positions:
            try:
                if self.judge.refusal(wanted, position) is None and self._compare(wanted, position, found):
                    found.usable |= 1 << position
            except (CelError, InvalidInput, UnclearError):
                found.broken |= 1 << position
        return found

    def _compare(self, wanted: Wanted, position: int, found: Chances) -> bool:
        """Note the values of a device; whether it meets all constraints, alone."""
        candidate = self.view.candidates[position]
        values = [constraint.value(wanted, candidate) for constraint in wanted.constraints]
        if None in values:
            return False
        for constraint, value in zip(wanted.constraints, values, strict=True):
            assert value is not None
            masks = found.values.setdefault(constraint, {})
            masks[value] = masks.get(value, 0) | 1 << position
        return True

    # --- kinds

    def _sort(self) -> None:
        """Number the kinds of devices."""
        marks: dict[int, list[Hashable]] = {}
        for number, (wanted, found) in enumerate(self.chances.items()):
            for position in places(found.usable):
                marks.setdefault(position, []).append((number, self._amounts(wanted, position)))
            for position in places(found.broken):
                marks.setdefault(position, []).append((number,))
            for index, masks in enumerate(found.values.values()):
                for value, mask in masks.items():
                    for position in places(mask):
                        marks.setdefault(position, []).append((number, index, value))
        numbers: dict[Hashable, int] = {}
        for position, mark in marks.items():
            key = (tuple(mark), self._drawn(position), self._use(position))
            number = numbers.setdefault(key, len(numbers))
            if number == len(self.kinds):
                self.kinds.append(0)
            self.kinds[number] |= 1 << position
            self.kind_of[position] = number

    def _amounts(self, wanted: Wanted, position: int) -> Hashable:
        if not self.shareable >> position & 1:
            return None
        amounts = self.judge.share(wanted, position).amounts
        return tuple(sorted((name, amount.nano) for name, amount in amounts.items()))

    def _drawn(self, position: int) -> Hashable:
        candidate = self.view.candidates[position]
        if not candidate.device.consumes_counters:
            return None
        taken = candidate.device.consumes_counters
        groups = tuple((each.counter_set, tuple(sorted(each.compatibility_groups))) for each in taken)
        return candidate.pool_id, tuple(sorted(draws(taken))), groups

    def _use(self, position: int) -> Hashable:
        """What there is of a device that several may use."""
        if not self.shareable >> position & 1:
            return None
        candidate = self.view.candidates[position]
        capacity = candidate.device.capacity
        left = tuple((name, self.judge.left(position, name)) for name in sorted(capacity))
        return left, self.judge.is_shared(candidate.id)


def _may_conflict(slot: Slot) -> bool:
    """Whether a constraint may refuse one of all devices (alloc S-17)."""
    return any(wanted.is_all and wanted.constraints for wanted in slot.request.alternatives)
