"""What one call of the allocator has taken so far, and taking and giving back one device (alloc S-15, S-20).

Driven by `search`, looked at by `bounds`: devices in flight, shares, counters, groups, constraints. Every take is undone whole, in the reverse order.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

from dra_operator.errors import AllConflict, InvalidClaim

from .capacity import InFlight
from .counters import Counters
from .groups import Groups
from .reporter import Rejection, Why
from .requests import claim_label
from .result import Taken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dra_operator.model import DeviceId

    from .capacity import Share
    from .constraints import Constraint
    from .judge import Judge
    from .pools import Candidate, View
    from .requests import ClaimRequests, Wanted
    from .state import Options

TAKEN: Final = Rejection(Why.TAKEN)


class Taking:
    """The state of one call.

    Args:
        view: pools and candidates of the node.
        claims: validated.
        judge: what does not change.
        options: scopes of errors.
        in_words: whether somebody reads why a device is refused.

    Attributes:
        taken: by claim, in the order of taking.
        free: positions of devices that are not in flight, as bits; of those that several may use, all.
        in_flight: devices that nobody else may have, with the claims that took them: several with admin access.
        shares: shares in flight.
        looks: looks at constraints beyond the first.
    """

    def __init__(
        self, view: View, claims: Sequence[ClaimRequests], judge: Judge, options: Options, *, in_words: bool
    ) -> None:
        self._view = view
        self._candidates = view.candidates
        self._claims = claims
        self._judge = judge
        self._options = options
        self._in_words = in_words
        self.taken: list[list[Taken]] = [[] for _ in claims]
        self.free = (1 << len(view.candidates)) - 1
        self.in_flight: dict[DeviceId, list[int]] = {}
        self.shares = InFlight()
        self.looks = 0

    @cached_property
    def counters(self) -> Counters:
        """Of the pools, with what is in flight."""
        return Counters(self._view, self._judge.is_allocated)

    @cached_property
    def groups(self) -> Groups | None:
        """The same of compatibility groups; None without the feature."""
        return Groups(self._view, self._judge.is_allocated) if self._judge.minds_groups else None

    def take(self, claim: int, wanted: Wanted, position: int) -> Rejection | None:
        """Take the device, or say why not and leave everything as it was. In upstream's order, as some of it may be fatal.

        Raises:
            AllConflict: mode All meets a constraint (alloc S-17).
            InvalidClaim: the same in upstream's scope.
            CelError: a selector, or a derived attribute, fails on the device (alloc L-4, D-4).
        """
        candidate = self._candidates[position]
        if self.in_flight and self._is_taken(claim, wanted, candidate.id):
            return TAKEN
        return self._judge.refusal(wanted, position) or self._take(claim, wanted, candidate, position)

    def give_back(self, claim: int) -> Taken:
        """Undo what was taken last for the claim."""
        last = self.taken[claim].pop()
        device_id = last.candidate.id
        if last.share is not None:
            self.shares.remove(device_id, last.share)
        else:
            claims = self.in_flight[device_id]
            claims.remove(claim)
            if not claims:
                del self.in_flight[device_id]
                self.free |= 1 << last.position
        self._release(last.wanted.constraints)
        if last.drew:
            self._draw_back(last.candidate)
        return last

    def draws(self, wanted: Wanted, candidate: Candidate) -> bool:
        """Whether the device has to be paid for with counters: not by further shares of it (alloc K-8), nor by who only looks at it (alloc BUG-9)."""
        if not candidate.device.consumes_counters:
            return False
        if wanted.is_admin and not self._options.upstream_0_37:
            return False
        return not (self._judge.is_shareable(candidate.device) and self._is_shared(candidate.id))

    def outrun(self, position: int, share: Share) -> str:
        """The capacity of the device that too little is left of, in words; empty if there is enough (alloc Q-1)."""
        if not share.amounts:
            return ""
        device_id = self._candidates[position].id
        return self._judge.lack(position, share, self.shares.uses(device_id), in_words=self._in_words)

    def _take(self, claim: int, wanted: Wanted, candidate: Candidate, position: int) -> Rejection | None:
        share = self._judge.share(wanted, position)
        if not wanted.is_all and (lacking := self.outrun(position, share)):
            return Rejection(Why.CAPACITY, lacking)
        draws = self.draws(wanted, candidate)
        if draws and (refusal := self._draw(candidate)):
            return refusal
        refusal = self._constrain(claim, wanted, candidate) if wanted.constraints else None
        if refusal is None and wanted.is_all and (lacking := self.outrun(position, share)):
            self._release(wanted.constraints)
            refusal = Rejection(Why.CAPACITY, lacking)
        if refusal is not None:
            if draws:
                self._draw_back(candidate)
            return refusal
        is_shareable = self._judge.is_shareable(candidate.device)
        if is_shareable:
            self.shares.add(candidate.id, share)
        else:
            self.in_flight.setdefault(candidate.id, []).append(claim)
            self.free &= ~(1 << position)
        self.taken[claim].append(Taken(wanted, candidate, share if is_shareable else None, draws, position))
        return None

    def _is_shared(self, device_id: DeviceId) -> bool:
        """Whether a share of the device is in use, which pays for its counters (alloc K-8)."""
        return device_id in self.shares or self._judge.is_shared(device_id)

    def _is_taken(self, claim: int, wanted: Wanted, device_id: DeviceId) -> bool:
        """Whether this call took the device already: for any claim, but admin access minds its own claim only (alloc S-11, S-12)."""
        claims = self.in_flight.get(device_id)
        return claims is not None and (not wanted.is_admin or claim in claims)

    def _draw(self, candidate: Candidate) -> Rejection | None:
        """Draw from the pool's counters, or say why not (alloc sections 7 and 10)."""
        pool_id, device = candidate.pool_id, candidate.device
        if self.groups is not None and (counter_set := self.groups.of(pool_id).take(device)):
            return Rejection(Why.GROUPS, counter_set)
        shortage = self.counters.of(pool_id).take(device)
        if shortage is None:
            return None
        if self.groups is not None:
            self.groups.of(pool_id).give_back()
        return Rejection(Why.COUNTERS, str(shortage) if self._in_words else "")

    def _draw_back(self, candidate: Candidate) -> None:
        self.counters.of(candidate.pool_id).give_back(candidate.device)
        if self.groups is not None:
            self.groups.of(candidate.pool_id).give_back()

    def _release(self, constraints: Sequence[Constraint]) -> None:
        for constraint in reversed(constraints):
            constraint.remove()

    def _constrain(self, claim: int, wanted: Wanted, candidate: Candidate) -> Rejection | None:
        for index, constraint in enumerate(wanted.constraints):
            refusal = constraint.add(wanted, candidate)
            self.looks += index > 0
            if refusal is not None:
                self._release(wanted.constraints[:index])
                is_conflict = wanted.is_all and refusal.why is Why.CONSTRAINT
                if is_conflict and not self._options.past_conflicts:
                    self._fail_all(claim, wanted, candidate)
                return refusal
        return None

    def _fail_all(self, claim: int, wanted: Wanted, candidate: Candidate) -> None:
        """A constraint refuses a member of mode All (alloc S-17, E-11)."""
        name = wanted.ref.rpartition("/")[2]
        label = claim_label(self._claims[claim].claim)
        text = f"{label}, request {name}: cannot add device {candidate.id} because a claim constraint would not be satisfied"
        if self._options.upstream_0_37:
            raise InvalidClaim(wanted.spot.path.rpartition(".exactly")[0] or wanted.spot.path, text)
        raise AllConflict(text)
