"""The search: depth first, in upstream's order, the first complete solution wins (alloc section 5).

Driven by `allocate`, once per node and call. An explicit stack of choices takes the place of upstream's recursion, so that no claim is too
large for the interpreter; every visited position counts one step, exactly as upstream counts invocations (I-7). No clock: steps bound it, and
looks at devices, as one step looks at all that are left.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from dra_operator.errors import AllConflict, InvalidClaim, SearchLimitReached

from .matcher import not_selectable
from .reporter import SILENT, Rejection, Why
from .requests import claim_label
from .result import Taken
from .state import RESULTS_LIMIT
from .taints import taint_text, untolerated
from .unbuilt import device_needs, gate_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dra_operator.model import DeviceId

    from .pools import Candidate, View
    from .reporter import Reporter
    from .requests import ClaimRequests, Wanted
    from .state import Inputs, Options


_TAKEN: Final = Rejection(Why.TAKEN)


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

    def refusal(self, wanted: Wanted, position: int) -> Rejection | None:
        """Why the device at that position can never serve, or None.

        Raises:
            CelError: a selector fails on it.
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
            refusal = not_selectable(self._inputs.features, self._view, wanted.matcher, position)
            if refusal is not None:
                return refusal
        if refusal := self._tainted(wanted, candidate) or self._gated(candidate, wanted):
            return refusal
        return Rejection(Why.AVOIDED) if candidate.id in self._inputs.avoided else None

    def _gated(self, candidate: Candidate, wanted: Wanted) -> Rejection | None:
        """Features that are off (alloc S-15.2) or not built."""
        features = self._inputs.features
        if gate := device_needs(features, candidate.slice_, candidate.device):
            return Rejection(Why.NOT_BUILT, gate)
        if candidate.device.consumes_counters and not features.partitionable_devices:
            return Rejection(Why.GATE_OFF, gate_of("partitionable_devices"))
        if self._options.upstream_experimental and candidate.slice_.spec.skip_node_operations:
            return Rejection(Why.GATE_OFF, gate_of("optional_node_operations"))
        if features.consumable_capacity and candidate.id in self._shared and not wanted.is_admin:
            return Rejection(Why.IN_USE, "shares of it")
        return None

    @cached_property
    def _shared(self) -> set[DeviceId]:
        """Devices of which shares are in use (alloc Q-8: such a device does not become dedicated under its users)."""
        allocated = self._inputs.allocated
        return {share.device for share in allocated.shared} | set(allocated.capacity)

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
            refusal = self._judge.refusal(wanted, position) or self._constrain(choice, candidate)
        if refusal is not None:
            if self._listening:
                self._reporter.rejected(wanted.report, candidate.id, refusal)
            return False
        self._in_flight.setdefault(candidate.id, []).append(choice.claim)
        self.taken[choice.claim].append(Taken(wanted, candidate))
        return True

    def _is_taken(self, choice: Devices, device: DeviceId) -> bool:
        """Whether this call took the device already: for any claim, but admin access minds its own claim only (alloc S-11, S-12)."""
        claims = self._in_flight.get(device)
        return claims is not None and (not choice.wanted.is_admin or choice.claim in claims)

    def _constrain(self, choice: Devices, candidate: Candidate) -> Rejection | None:
        for index, constraint in enumerate(choice.wanted.constraints):
            refusal = constraint.add(candidate.id.driver, candidate.device)
            self.looks += index > 0
            if refusal is not None:
                for added in reversed(choice.wanted.constraints[:index]):
                    added.remove()
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
        wanted, candidate = self.taken[choice.claim].pop()
        claims = self._in_flight[candidate.id]
        claims.remove(choice.claim)
        if not claims:
            del self._in_flight[candidate.id]
        for constraint in reversed(wanted.constraints):
            constraint.remove()
        if self._listening:
            self._reporter.backtracked(wanted.report, candidate.id)
