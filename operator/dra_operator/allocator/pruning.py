"""What a long search can leave out without losing its first solution, nor an error that it would have met.

Driven by `search` once it has taken many steps: choices that bounds refute, devices of a kind of which one has failed, states that have failed. Whether a look at a device may fail, which ends a
search, is known beforehand (`Outlook.horizon`). It must not choose anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from .bounds import Bounds
from .outlook import Outlook

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from .constraints import Constraint
    from .judge import Judge
    from .pools import View
    from .requests import ClaimRequests, Wanted
    from .taking import Taking

REMEMBERED: Final = 20_000
"""Failed states that are kept: a few KiB each, so that a call stays under 100 MiB. Arbitrary beyond that."""


class Place(NamedTuple):
    """Where a search is: at a request of a claim, at an entry of it, with so many devices, from a position on."""

    claim: int
    request: int
    wanted: Wanted
    device: int
    start: int


class Pruning:
    """The pruning of one search.

    Args:
        view: pools and candidates of the node.
        claims: validated.
        judge: what does not change.
        taking: what was taken.

    Attributes:
        outlook: what requests can ever get.
        left_out_conflicts: whether something was left out in which a constraint may have refused one of all devices.

    Raises:
        WorkLimitReached: the decision may do no more work on selectors.
    """

    def __init__(
        self,
        view: View,
        claims: Sequence[ClaimRequests],
        judge: Judge,
        taking: Taking,
    ) -> None:
        self._view = view
        self._taking = taking
        self.outlook = Outlook(view, claims, judge)
        self._bounds = Bounds(self.outlook, taking)
        self._failed: set[Hashable] = set()
        self._looks_past = False
        self.left_out_conflicts = False
        self._coming = self._kinds_by_slot()
        self._has_admin = any(wanted.is_admin for wanted in self.outlook.chances)

    @property
    def looks(self) -> int:
        """Looks at devices and kinds of devices so far."""
        return len(self._view.candidates) * len(self.outlook.chances) + self._bounds.looks

    def _kinds_by_slot(self) -> list[list[int]]:
        """For each slot, the kinds that it or a later one can use."""
        found: list[list[int]] = []
        usable = 0
        for slot in reversed(self.outlook.slots):
            for wanted in slot.request.alternatives:
                usable |= self.outlook.chances[wanted].usable | self.outlook.chances[wanted].broken
            found.append([mask for mask in self.outlook.kinds if mask & usable])
        return found[::-1]

    def look_past_conflicts(self) -> None:
        """See `Outlook`."""
        self._looks_past = True
        self.outlook.look_past_conflicts()

    def enter(self, place: Place) -> Hashable:
        """A name for the state that the search is in, for `failed`; None if it cannot succeed from there."""
        slot = self.outlook.at[place.claim, place.request]
        state = self._entered(slot, place)
        if state is None and self._looks_past and slot <= self.outlook.last_conflict:
            self.left_out_conflicts = True
        return state

    def _entered(self, slot: int, place: Place) -> Hashable:
        may_conflict = place.wanted.is_all and place.wanted.constraints  # which may end the search at once
        may_conclude = (
            slot < self.outlook.horizon and place.claim not in self.outlook.exceeding and not may_conflict
        )
        if may_conclude and self._bounds.is_hopeless(slot, place.wanted, place.device, place.start):
            return None
        state = self._state(slot, place)
        return None if state in self._failed else state

    def failed(self, state: Hashable) -> None:
        """The search has tried all there is from there."""
        if len(self._failed) < REMEMBERED:
            self._failed.add(state)

    def kind(self, position: int) -> Hashable:
        """Equal for devices that no request can tell apart, now."""
        device_id = self._view.candidates[position].id
        claims = self._taking.in_flight.get(device_id)
        return self.outlook.kind_of[position], tuple(claims) if claims else (), self._uses(position)

    def _uses(self, position: int) -> Hashable:
        """What is in flight of a device that several may use."""
        device_id = self._view.candidates[position].id
        if device_id not in self._taking.shares:
            return None
        return tuple(sorted(self._taking.shares.uses(device_id).items()))

    def _state(self, slot: int, place: Place) -> Hashable:
        """All that what follows hangs on; devices that nobody can tell apart count as numbers."""
        free, taking = self._taking.free, self._taking
        counts = tuple((mask & free).bit_count() for mask in self._coming[slot])
        later = tuple(((mask & free) >> place.start).bit_count() for mask in self._coming[slot])
        constraints = tuple(constraint.state() for constraint in self._constraints(slot, place))
        return (
            slot,
            place.wanted.ref,
            place.device,
            counts,
            later,
            constraints,
            taking.counters.state(),
            taking.groups.state() if taking.groups is not None else None,
            len(taking.taken[place.claim]),
            self._shares(place.start),
            self._exactly() if self._has_admin else None,
        )

    def _constraints(self, slot: int, place: Place) -> list[Constraint]:
        """Those of the claim that something falls under that comes."""
        found: list[Constraint] = []
        for at in range(slot, len(self.outlook.slots)):
            if self.outlook.slots[at].claim != place.claim:
                break
            for wanted in self.outlook.slots[at].request.alternatives:
                found.extend(each for each in wanted.constraints if each not in found)
        return found

    def _shares(self, start: int) -> Hashable:
        """Shares in flight, by the kind of their devices and whether these come yet."""
        positions = {
            taken.position for each in self._taking.taken for taken in each if taken.share is not None
        }
        return tuple(sorted((self.outlook.kind_of[at], at >= start, self._uses(at)) for at in positions))

    def _exactly(self) -> Hashable:
        return tuple(sorted((device, tuple(claims)) for device, claims in self._taking.in_flight.items()))
