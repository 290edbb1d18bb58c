"""The search: depth first, in upstream's order, the first complete solution wins (alloc section 5).

Driven by `allocate`, once per node and call. An explicit stack of choices takes the place of upstream's recursion, so that no claim is too
large for the interpreter; every visited position counts one step, exactly as upstream counts invocations (I-7). No clock: steps bound it, and
looks at devices, as one step looks at all that are left.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, NamedTuple

from dra_operator.errors import AllConflict, InvalidCapacity, InvalidClaim, SearchLimitReached

from .capacity import InFlight, Rules, Share, lack, share_of
from .counters import Counters
from .groups import Groups
from .matcher import not_selectable
from .reporter import SILENT, Rejection, Why
from .requests import claim_label
from .result import Taken
from .state import RESULTS_LIMIT
from .taints import taint_text, untolerated
from .unbuilt import device_needs, gate_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dra_operator.model import Device, DeviceId
    from dra_operator.quantity import Quantity

    from .constraints import Constraint
    from .pools import Candidate, View
    from .reporter import Reporter
    from .requests import ClaimRequests, Wanted
    from .state import Inputs, Options


_TAKEN: Final = Rejection(Why.TAKEN)
_NOTHING: Final = Share({})


class Step(NamedTuple):
    """A position to visit (alloc S-1). `alternative` is None until one of the request's entries is chosen."""

    claim: int
    request: int
    alternative: int | None = None
    device: int = 0
    start: int = 0


class Outcome(Enum):
    """How a position ended."""

    SOLVED = auto()
    NONE = auto()
    TOO_MANY = auto()  # more than a claim may hold, whatever the devices (alloc S-8)


@dataclass(slots=True)
class Alternatives:
    """A choice between the alternatives of a prioritized list (alloc S-4)."""

    claim: int
    request: int
    alternative: int = -1
    only_too_many: bool = True


@dataclass(slots=True)
class Devices:
    """A choice between devices, and the one taken now."""

    step: Step
    wanted: Wanted
    position: int
    end: int

    @property
    def claim(self) -> int:
        """Index of the claim."""
        return self.step.claim


class Judge:
    """What does not change during a search: whether a device can serve a request at all. Answers are kept.

    The order of tests is alloc S-11, L-1, S-15: a device in use is not shown to CEL (L-4).
    """

    def __init__(self, inputs: Inputs, options: Options, view: View) -> None:
        self._inputs = inputs
        self._options = options
        self._view = view
        self._answers: dict[Wanted, list[Rejection | bool | None]] = {}
        self._shares: dict[tuple[Wanted, int], Share] = {}

    def refusal(self, wanted: Wanted, position: int) -> Rejection | None:
        """Why the device at that position can never serve, or None.

        Raises:
            CelError: a selector fails on it.
            InvalidClaim: with `upstream_0_37`, if an amount cannot be counted.
        """
        answers = self._answers.get(wanted)
        if answers is None:
            answers = self._answers[wanted] = [False] * len(self._view.candidates)
        known = answers[position]
        if isinstance(known, bool):
            known = answers[position] = self._judge(wanted, position)
        return known

    def _judge(self, wanted: Wanted, position: int) -> Rejection | None:
        candidate = self._view.candidates[position]
        if candidate.id in self._inputs.allocated.devices and not wanted.is_admin:
            return Rejection(Why.IN_USE)
        if not wanted.is_all:
            refusal = not_selectable(
                self._inputs.features, self._view, wanted.matcher, position
            ) or self._too_small(wanted, position)
            if refusal is not None:
                return refusal
        if refusal := self._gated(candidate, wanted) or self._tainted(wanted, candidate):
            return refusal
        return Rejection(Why.AVOIDED) if candidate.id in self._inputs.avoided else None

    def is_shareable(self, device: Device) -> bool:
        """Whether several may use the device."""
        return self._inputs.features.consumable_capacity and bool(device.allow_multiple_allocations)

    def share(self, wanted: Wanted, position: int) -> Share:
        """What the request takes of the device; nothing without the feature.

        Raises:
            InvalidClaim: with `upstream_0_37`, if an amount cannot be counted: fatal there (alloc Q-4b).
        """
        key = wanted, position
        known = self._shares.get(key)
        if known is None:
            known = self._shares[key] = self._share(wanted, position)
        return known

    def _share(self, wanted: Wanted, position: int) -> Share:
        features, candidate = self._inputs.features, self._view.candidates[position]
        if not features.consumable_capacity:
            return _NOTHING
        rules = Rules(features.fractional_capacity_range, self._options.upstream_0_37)
        try:
            return share_of(candidate.device, wanted.entry.capacity, rules)
        except InvalidCapacity as error:
            if not self._options.upstream_0_37:
                return Share({}, str(error))
            text = f"claim {wanted.report.claim}, request {wanted.ref.rpartition('/')[2]}: checking capacity for device {candidate.id}: {error}"
            raise InvalidClaim(f"{wanted.spot.path}capacity", text) from error

    def _too_small(self, wanted: Wanted, position: int) -> Rejection | None:
        """Whether the device has less than is asked for, after what claims take of it (alloc Q-1)."""
        share = self.share(wanted, position)
        lacking = share.refusal or self.lack(position, share)
        return Rejection(Why.CAPACITY, lacking) if lacking else None

    def lack(self, position: int, share: Share, in_flight: Sequence[Mapping[str, Quantity]] = ()) -> str:
        """What there is too little left of, beside what claims and this call take; empty if nothing."""
        candidate = self._view.candidates[position]
        used = self._inputs.allocated.capacity.get(candidate.id)
        if not used and not in_flight:
            return ""  # `Share.refusal` has told
        return lack(candidate.device, share, used or {}, *in_flight)

    def _gated(self, candidate: Candidate, wanted: Wanted) -> Rejection | None:
        """Features that are off, that the node has not (alloc S-15.2), or that are not built."""
        features, device = self._inputs.features, candidate.device
        if gate := device_needs(device):
            return Rejection(Why.NOT_BUILT, gate)
        if device.consumes_counters and not features.partitionable_devices:
            return Rejection(Why.GATE_OFF, gate_of("partitionable_devices"))
        if candidate.slice_.spec.skip_node_operations:
            gate = gate_of("optional_node_operations")
            if self._options.upstream_experimental and not features.optional_node_operations:
                return Rejection(Why.GATE_OFF, gate)
            if features.optional_node_operations and gate not in self._view.node.status.declared_features:
                return Rejection(Why.NODE_FEATURE, gate)
        is_ours = self.is_shareable(device) or wanted.is_admin or self._options.upstream_0_37
        if not is_ours and self._inputs.allocated.is_shared(candidate.id):
            return Rejection(Why.IN_USE, "shares of it")  # alloc Q-8: it became dedicated under its users
        return None

    @property
    def minds_groups(self) -> bool:
        """Whether compatibility groups are looked at."""
        return self._inputs.features.compatibility_groups

    def is_allocated(self, device_id: DeviceId) -> bool:
        """Whether a claim holds the device or a share of it."""
        return self._inputs.allocated.is_allocated(device_id)

    def is_shared(self, device_id: DeviceId) -> bool:
        """Whether a claim holds a share of the device."""
        return self._inputs.allocated.is_shared(device_id)

    def _tainted(self, wanted: Wanted, candidate: Candidate) -> Rejection | None:
        if not self._inputs.features.device_taints or not candidate.device.taints:
            return None
        taint = untolerated(candidate.device, wanted.tolerations, self._options.ignored_taints)
        return None if taint is None else Rejection(Why.TAINT, taint_text(taint))


class Search:
    """One search for all claims of a call on one node.

    Args:
        view: pools and candidates of the node.
        claims: validated.
        judge: what does not change.
        options: step limit, scopes of errors.
        reporter: who listens.
    """

    def __init__(
        self, view: View, claims: Sequence[ClaimRequests], judge: Judge, options: Options, reporter: Reporter
    ) -> None:
        self._candidates = view.candidates
        self._claims = claims
        self._judge = judge
        self._options = options
        self._reporter = reporter
        self._listening = reporter is not SILENT
        self._stack: list[Alternatives | Devices] = []
        self._in_flight: dict[DeviceId, list[int]] = {}  # the claims of this call that took it
        self._in_shares = InFlight()
        self._counters = Counters(view.pools, judge.is_allocated)
        self._groups = Groups(view.pools, judge.is_allocated) if judge.minds_groups else None
        self._too_many_in = -1
        self.taken: list[list[Taken]] = [[] for _ in claims]
        self.steps = 0
        self.looks = 0
        self._max_looks = sys.maxsize if options.max_looks is None else options.max_looks

    def solve(self) -> bool:
        """Search; True leaves the solution in `taken`.

        Raises:
            SearchLimitReached: after `options.max_steps`, or `options.max_looks`.
            AllConflict: mode All meets a constraint (alloc S-17).
            InvalidClaim: the same in upstream's scope.
            CelError: a selector fails on a device (alloc L-4).
        """
        at: Step | Outcome = Step(0, 0)
        while at is not Outcome.SOLVED:
            if isinstance(at, Step):
                at = self._visit(at)
            elif self._stack:
                at = self._go_back(at)
            else:
                return False
        return True

    def chosen(self) -> list[list[Wanted]]:
        """Per claim and request the entry that was satisfied; only after success (alloc S-21)."""
        picked = {
            (at.claim, at.request): at.alternative for at in self._stack if isinstance(at, Alternatives)
        }
        return [
            [
                request.alternatives[picked.get((number, index), 0)]
                for index, request in enumerate(claim.requests)
            ]
            for number, claim in enumerate(self._claims)
        ]

    def _visit(self, step: Step) -> Step | Outcome:
        self._count()
        if step.claim == len(self._claims):
            return Outcome.SOLVED
        requests = self._claims[step.claim].requests
        if step.request == len(requests):
            return Step(step.claim + 1, 0)
        request = requests[step.request]
        if step.alternative is None and request.is_list:
            alternatives = Alternatives(step.claim, step.request)
            self._stack.append(alternatives)
            return self._next_alternative(alternatives)
        return self._want(step, request.alternatives[step.alternative or 0])

    def _count(self) -> None:
        self.steps += 1
        if self._options.max_steps is not None and self.steps > self._options.max_steps:
            raise SearchLimitReached(self._options.max_steps)

    def _want(self, step: Step, wanted: Wanted) -> Step | Outcome:
        """Go on with a chosen entry (alloc S-6…S-9, S-16)."""
        if wanted.is_all and not wanted.members:
            return self._fail(wanted, Rejection(Why.NO_MEMBERS))
        if step.device >= wanted.number:
            return Step(step.claim, step.request + 1)
        if len(self.taken[step.claim]) + wanted.number - step.device > RESULTS_LIMIT:
            self._too_many_in = step.claim
            self._fail(wanted, Rejection(Why.TOO_MANY, str(RESULTS_LIMIT)))
            return Outcome.TOO_MANY
        start, end = step.start, len(self._candidates)
        if wanted.members is not None:
            start = wanted.members[step.device]
            end = start + 1
        devices = Devices(step, wanted, start, end)
        self._stack.append(devices)
        return self._next_device(devices)

    def _fail(self, wanted: Wanted, rejection: Rejection) -> Outcome:
        if self._listening:
            self._reporter.failed(wanted.report, rejection)
        return Outcome.NONE

    def _go_back(self, outcome: Outcome) -> Step | Outcome:
        """Let the innermost choice go on after what followed it ended so."""
        choice = self._stack[-1]
        if choice.claim != self._too_many_in and outcome is Outcome.TOO_MANY:
            outcome = Outcome.NONE  # the signal never crosses a claim boundary (alloc S-3)
        if isinstance(choice, Alternatives):
            choice.only_too_many = choice.only_too_many and outcome is Outcome.TOO_MANY
            return self._next_alternative(choice)
        self._give_back(choice)
        if outcome is Outcome.TOO_MANY:
            self._stack.pop()
            return outcome
        return self._next_device(choice)

    def _next_alternative(self, choice: Alternatives) -> Step | Outcome:
        choice.alternative += 1
        if choice.alternative < len(self._claims[choice.claim].requests[choice.request].alternatives):
            return Step(choice.claim, choice.request, choice.alternative)
        self._stack.pop()
        return Outcome.TOO_MANY if choice.only_too_many else Outcome.NONE

    def _next_device(self, choice: Devices) -> Step | Outcome:
        for position in range(choice.position, choice.end):
            self.looks += 1
            if self.looks > self._max_looks:
                raise SearchLimitReached(self.steps, self._max_looks)
            if self._take(choice, position):
                choice.position = position + 1
                start = 0 if choice.wanted.is_all else position + 1
                return choice.step._replace(device=choice.step.device + 1, start=start)
        self._stack.pop()
        return Outcome.NONE

    def _take(self, choice: Devices, position: int) -> bool:
        """Take the device, or leave everything as it was (alloc S-15, S-20)."""
        wanted, candidate = choice.wanted, self._candidates[position]
        refusal: Rejection | None
        if self._is_taken(choice, candidate.id):
            refusal = _TAKEN
        else:
            refusal = self._judge.refusal(wanted, position) or self._take_free(choice, position)
        if refusal is not None:
            if self._listening:
                self._reporter.rejected(wanted.report, candidate.id, refusal)
            return False
        return True

    def _take_free(self, choice: Devices, position: int) -> Rejection | None:
        """Take a device that nothing speaks against but, maybe, what this call has taken before; in upstream's order, as some of it may be fatal."""
        wanted, candidate = choice.wanted, self._candidates[position]
        device, share = candidate.device, self._judge.share(wanted, position)
        is_shareable = self._judge.is_shareable(device)
        if not wanted.is_all and (refusal := self._outrun(position, share)):
            return refusal
        draws = self._draws(wanted, candidate)
        if draws and (refusal := self._draw(candidate)):
            return refusal
        refusal = self._constrain(choice, candidate)
        if refusal is None and wanted.is_all and (refusal := self._outrun(position, share)):
            self._release(wanted.constraints)
        if refusal is not None:
            if draws:
                self._draw_back(candidate)
            return refusal
        if is_shareable:
            self._in_shares.add(candidate.id, share)
        else:
            self._in_flight.setdefault(candidate.id, []).append(choice.claim)
        self.taken[choice.claim].append(Taken(wanted, candidate, share if is_shareable else None, draws))
        return None

    def _draws(self, wanted: Wanted, candidate: Candidate) -> bool:
        """Whether the device has to be paid for with counters: not by further shares of it (alloc K-8), nor by who only looks at it (alloc BUG-9)."""
        if not candidate.device.consumes_counters:
            return False
        if wanted.is_admin and not self._options.upstream_0_37:
            return False
        return not (self._judge.is_shareable(candidate.device) and self._is_shared(candidate.id))

    def _is_shared(self, device_id: DeviceId) -> bool:
        """Whether a share of the device is in use, which pays for its counters (alloc K-8)."""
        return device_id in self._in_shares or self._judge.is_shared(device_id)

    def _outrun(self, position: int, share: Share) -> Rejection | None:
        """Whether too little is left of the device's capacities (alloc Q-1)."""
        device_id = self._candidates[position].id
        in_flight = self._in_shares.uses(device_id) if device_id in self._in_shares else ()
        lacking = self._judge.lack(position, share, in_flight)
        return Rejection(Why.CAPACITY, lacking) if lacking else None

    def _draw(self, candidate: Candidate) -> Rejection | None:
        """Draw from the pool's counters, or say why not (alloc sections 7 and 10)."""
        pool_id, device = candidate.id.pool_id, candidate.device
        if self._groups is not None and (counter_set := self._groups.of(pool_id).take(device)):
            return Rejection(Why.GROUPS, counter_set)
        shortage = self._counters.of(pool_id).take(device)
        if shortage is None:
            return None
        if self._groups is not None:
            self._groups.of(pool_id).give_back()
        return Rejection(Why.COUNTERS, str(shortage) if self._listening else "")

    def _draw_back(self, candidate: Candidate) -> None:
        self._counters.of(candidate.id.pool_id).give_back(candidate.device)
        if self._groups is not None:
            self._groups.of(candidate.id.pool_id).give_back()

    def _release(self, constraints: Sequence[Constraint]) -> None:
        for constraint in reversed(constraints):
            constraint.remove()

    def _is_taken(self, choice: Devices, device: DeviceId) -> bool:
        """Whether this call took the device already: for any claim, but admin access minds its own claim only (alloc S-11, S-12)."""
        claims = self._in_flight.get(device)
        return claims is not None and (not choice.wanted.is_admin or choice.claim in claims)

    def _constrain(self, choice: Devices, candidate: Candidate) -> Rejection | None:
        for index, constraint in enumerate(choice.wanted.constraints):
            refusal = constraint.add(choice.wanted, candidate)
            self.looks += index > 0
            if refusal is not None:
                self._release(choice.wanted.constraints[:index])
                is_conflict = choice.wanted.is_all and refusal.why is Why.CONSTRAINT
                if is_conflict and not self._options.past_conflicts:
                    self._fail_all(choice, candidate)
                return refusal
        return None

    def _fail_all(self, choice: Devices, candidate: Candidate) -> None:
        """A constraint refuses a member of mode All (alloc S-17, E-11)."""
        claim, wanted = self._claims[choice.claim].claim, choice.wanted
        name = wanted.ref.rpartition("/")[2]
        text = f"{claim_label(claim)}, request {name}: cannot add device {candidate.id} because a claim constraint would not be satisfied"
        if self._options.upstream_0_37:
            raise InvalidClaim(f"spec.devices.requests[{choice.step.request}]", text)
        raise AllConflict(text)

    def _give_back(self, choice: Devices) -> None:
        wanted, candidate, share, drew = self.taken[choice.claim].pop()
        if share is not None:
            self._in_shares.remove(candidate.id)
        else:
            claims = self._in_flight[candidate.id]
            claims.remove(choice.claim)
            if not claims:
                del self._in_flight[candidate.id]
        self._release(wanted.constraints)
        if drew:
            self._draw_back(candidate)
        if self._listening:
            self._reporter.backtracked(wanted.report, candidate.id)
