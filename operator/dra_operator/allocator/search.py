"""The search: depth first, in upstream's order, the first complete solution wins (alloc section 5).

Driven by `allocate`, once per node and call. An explicit stack of choices takes the place of upstream's recursion, so that no claim is too
large for the interpreter; every visited position counts one step, exactly as upstream counts invocations (I-7). No clock: steps bound it, and
looks at devices, as one step looks at all that are left.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, NamedTuple

from dra_operator.errors import SearchLimitReached

from .answers import UNASKED
from .capacity import Share
from .pruning import Place, Pruning
from .reporter import SILENT, Rejection, Why
from .state import RESULTS_LIMIT
from .taking import Taking

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from .judge import Judge
    from .pools import View
    from .reporter import Reporter
    from .requests import ClaimRequests, Wanted
    from .state import Options


FEW: Final = 1_000
"""Steps."""

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
    """A choice between devices, and the one taken now.

    Attributes:
        position: where to go on.
        end: behind the last one.
        state: what it began with, for the memory of what failed.
        kinds: devices that nobody can tell from one that has failed here.
    """

    step: Step
    wanted: Wanted
    position: int
    end: int
    state: Hashable = None
    kinds: set[Hashable] = field(default_factory=set)

    @property
    def claim(self) -> int:
        """Index of the claim."""
        return self.step.claim

    @property
    def place(self) -> Place:
        """Where the choice began."""
        step = self.step
        return Place(step.claim, step.request, self.wanted, step.device, step.start)


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
        self._view = view
        self._candidates = view.candidates
        self._claims = claims
        self._judge = judge
        self._options = options
        self._reporter = reporter
        self._listening = reporter is not SILENT
        self._stack: list[Alternatives | Devices] = []
        self._taking = Taking(view, claims, judge, options, in_words=self._listening)
        self._pruning: Pruning | None = None
        self._is_second = False
        self._given_back = 0
        self._too_many_in = -1
        self.taken = self._taking.taken
        self.steps = 0
        self._looks = 0
        self._max_steps = sys.maxsize if options.max_steps is None else options.max_steps

    @property
    def looks(self) -> int:
        """Looks at devices, those at constraints beyond the first and those of bounds included."""
        return self._looks + self._taking.looks + (self._pruning.looks if self._pruning is not None else 0)

    def solve(self) -> bool:
        """Search; True leaves the solution in `taken`.

        Raises:
            SearchLimitReached: after `options.max_steps`, or `options.max_looks`.
            AllConflict: mode All meets a constraint (alloc S-17).
            InvalidClaim: the same in upstream's scope.
            CelError: a selector fails on a device (alloc L-4).
            WorkLimitReached: the decision may do no more work on selectors.
        """
        solved = self._run()
        if solved and self._may_have_missed_a_conflict():
            self._start_over()
            solved = self._run()
        return solved

    def _may_have_missed_a_conflict(self) -> bool:
        """Without a solution, it is all the same whether mode All meets a constraint or there is nothing at all; with one it is not."""
        is_open = not self._is_second and not self._options.past_conflicts
        return is_open and self._pruning is not None and self._pruning.left_out_conflicts

    def _start_over(self) -> None:
        """What was done for a try is work beside the search's steps."""
        for claim in reversed(range(len(self.taken))):
            while self.taken[claim]:
                self._taking.give_back(claim)
        assert self._pruning is not None
        self._looks += self.steps + self._pruning.looks
        self.steps = 0
        self._stack.clear()
        self._pruning, self._is_second, self._too_many_in = None, True, -1

    def _run(self) -> bool:
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
        lists = [at for at in self._stack if isinstance(at, Alternatives)]
        if not lists:
            return [[request.alternatives[0] for request in claim.requests] for claim in self._claims]
        picked = {(at.claim, at.request): at.alternative for at in lists}
        return [
            [
                request.alternatives[picked.get((number, index), 0)]
                for index, request in enumerate(claim.requests)
            ]
            for number, claim in enumerate(self._claims)
        ]

    def _visit(self, step: Step) -> Step | Outcome:
        if self.steps == self._max_steps:
            raise SearchLimitReached(self._max_steps)
        self.steps += 1
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
        state: Hashable = None
        if (pruning := self._pruned()) is not None:
            state = pruning.enter(Place(step.claim, step.request, wanted, step.device, step.start))
            if state is None:
                return Outcome.NONE
        devices = Devices(step, wanted, start, end, state)
        self._stack.append(devices)
        return self._next_device(devices)

    def _pruned(self) -> Pruning | None:
        """What can be left out, once it is worth its cost."""
        if self._pruning is None and self._given_back > self._options.patience:
            self._pruning = Pruning(self._view, self._claims, self._judge, self._taking)
            if self._listening:
                self._tell_all(self._pruning)
        # Within few steps upstream may well come to a conflict, which ends its search sooner than anything that is left out.
        may_look_past = not self._is_second and (self._options.past_conflicts or self.steps > FEW)
        if self._pruning is not None and may_look_past:
            self._pruning.look_past_conflicts()
        return self._pruning

    def _tell_all(self, pruning: Pruning) -> None:
        """Devices that the search may not come to any more are refused for good all the same."""
        for wanted, chances in pruning.outlook.chances.items():
            for position, candidate in enumerate(self._candidates):
                if wanted.members is None and not (chances.usable | chances.broken) >> position & 1:
                    refusal = self._judge.refusal(wanted, position)
                    if refusal is not None:
                        self._reporter.rejected(wanted.report, candidate.id, refusal)

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
        if self._pruning is not None and self._is_lost(choice, self._pruning):
            self._stack.pop()
            return outcome
        return self._next_device(choice)

    def _is_lost(self, choice: Devices, pruning: Pruning) -> bool:
        """Whether no other device would do either. A choice that was made plainly is looked at now: it is as it was when it was made."""
        choice.kinds.add(pruning.kind(choice.position - 1))
        if choice.state is None:
            choice.state = pruning.enter(choice.place)
        return choice.state is None

    def _next_alternative(self, choice: Alternatives) -> Step | Outcome:
        choice.alternative += 1
        if choice.alternative < len(self._claims[choice.claim].requests[choice.request].alternatives):
            return Step(choice.claim, choice.request, choice.alternative)
        self._stack.pop()
        return Outcome.TOO_MANY if choice.only_too_many else Outcome.NONE

    def _next_device(self, choice: Devices) -> Step | Outcome:
        selected, step = choice.wanted.known.selected, choice.step
        for position in range(choice.position, choice.end):
            self._looks += 1
            if self._options.max_looks is not None and self.looks > self._options.max_looks:
                raise SearchLimitReached(self.steps, self._options.max_looks)
            known = selected[position]
            if known is not None and known is not UNASKED and not self._listening:
                continue  # nobody minds which of several reasons it is
            if choice.kinds and self._pruning is not None and self._pruning.kind(position) in choice.kinds:
                continue
            if self._take(choice, position):
                choice.position = position + 1
                start = 0 if choice.wanted.is_all else position + 1
                return Step(step.claim, step.request, step.alternative, step.device + 1, start)
        self._stack.pop()
        if self._pruning is not None and choice.state is not None:
            self._pruning.failed(choice.state)
        return Outcome.NONE

    def _take(self, choice: Devices, position: int) -> bool:
        """Take the device, or leave everything as it was (alloc S-15, S-20)."""
        refusal = self._taking.take(choice.claim, choice.wanted, position)
        if refusal is not None and self._listening:
            self._reporter.rejected(choice.wanted.report, self._candidates[position].id, refusal)
        return refusal is None

    def _give_back(self, choice: Devices) -> None:
        self._given_back += 1
        last = self._taking.give_back(choice.claim)
        if self._listening:
            self._reporter.backtracked(last.wanted.report, last.candidate.id)
