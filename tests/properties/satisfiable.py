"""Whether a problem has a solution at all, where there is too much to try: OR-Tools' CP-SAT solves a model of it (`modelled`).

No search of ours or of upstream's is asked. As the model says no more than the rules do, there is no solution if the model has none. Each solution of the model is
put to the verifier; one that it refuses is forbidden, and the model is solved again. Like trying everything, it relies on a rule staying broken whatever is added
(alloc C-4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .assignments import Part
from .modelled import RULES, Model

if TYPE_CHECKING:
    from collections.abc import Callable

    from ortools.sat.python.cp_model import IntVar

    from .assignments import Call

WORK: Final = 10.0
"""CP-SAT's deterministic time for a solution: about so many seconds, and the same work on each machine."""


class UndecidedError(Exception):
    """With the work that may be done, neither a solution was found nor that there is none."""


class Satisfiable:
    """A model of a call.

    Args:
        call: what is asked for, and the rules.
        without: rules that the model leaves to the verifier, besides those that the call ignores.
        attempts: solutions of the model that are put to the verifier.

    Attributes:
        refused: solutions of the model that the verifier did not take.
    """

    def __init__(self, call: Call, without: frozenset[str] = frozenset(), attempts: int = 40) -> None:
        from ortools.sat.python.cp_model import CpModel  # which takes a second, as it brings pandas

        self.refused = 0
        self._attempts = attempts
        self._call = call
        self._model = Model(call, CpModel())
        for rule, says in RULES.items():
            if rule not in call.ignored | without:
                says(self._model)

    def solution(self) -> list[Part] | None:
        """An assignment that breaks no rule, or None if there is none.

        Raises:
            UndecidedError: the work did not suffice.
        """
        while self.refused < self._attempts:
            is_true = self._solved()
            if is_true is None:
                return None
            parts = [
                Part(
                    option.claim,
                    option.wanted,
                    tuple(take.known.id for take in option.takes if is_true(take.is_taken)),
                )
                for option in self._model.options
                if is_true(option.is_used)
            ]
            if not self._call.broken(parts):
                return parts
            self._forbid(is_true)
        raise UndecidedError

    def _solved(self) -> Callable[[IntVar], bool] | None:
        """Which variables are true in a solution of the model; None if it has none."""
        from ortools.sat.python import cp_model

        solver = cp_model.CpSolver()
        solver.parameters.max_deterministic_time = WORK
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = 1
        solver.parameters.linearization_level = 2
        status = solver.solve(self._model.cp)
        if status == cp_model.INFEASIBLE:
            return None
        if status not in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
            raise UndecidedError
        return solver.boolean_value

    def _forbid(self, is_true: Callable[[IntVar], bool]) -> None:
        """That assignment, and no other."""
        self.refused += 1
        variables = [take.is_taken for take in self._model.takes]
        variables += [option.is_used for option in self._model.options]
        self._model.cp.add_bool_or([~each if is_true(each) else each for each in variables])
