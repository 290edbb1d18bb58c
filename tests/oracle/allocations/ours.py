"""Asks our allocator what `upstream` asks upstream's, and answers in the same form: the fields of README.md.

What upstream has no word for: outcome `gave up` (the step limit), `not built` (the answer hangs on a feature that is not built yet), and `crash` (an
exception that nobody may see).
"""

from __future__ import annotations

import traceback
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from dra_operator.cel import default_compiler
from dra_operator.model import to_object
from tests.conformance.problems import decode_problem
from tests.conformance.running import ask, options_for

if TYPE_CHECKING:
    from tests.conformance.problems import Problem

Json = dict[str, Any]

MAX_STEPS: Final = 500_000
"""Search steps for a problem, unless upstream took more."""


class Ours:
    """Our allocator; one compiler for all problems.

    Args:
        pruned: whether the search leaves out from its first step on what it need not try; else as the product does, after some.
    """

    def __init__(self, *, pruned: bool = False) -> None:
        self._compiler = default_compiler()
        self._pruned = pruned

    def answer(self, raw: Json, max_steps: int = MAX_STEPS) -> Json:
        """Our answer, in upstream's way (`Options.upstream_0_37`)."""
        try:
            problem = decode_problem(raw)
            before = problem.fingerprint()
            said = self._asked(problem, max_steps)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
            where = traceback.extract_tb(error.__traceback__)[-1]
            return {"outcome": "crash", "error": f"{error!r} in {where.name}"}
        if problem.fingerprint() != before:
            return {"outcome": "crash", "error": "the allocator changed its inputs"}
        return said

    def _asked(self, problem: Problem, max_steps: int) -> Json:
        options = options_for(problem, max_steps)
        if self._pruned:
            options = replace(options, patience=-1)
        said = ask(problem, self._compiler, options)
        if said.needs:
            return {"outcome": "not built", "error": ", ".join(sorted(said.needs))}
        return {
            "outcome": said.outcome,
            "results": [to_object(each) for each in said.results],
            "error": said.error,
            "perNode": said.per_node,
            "allocateOneInvocations": said.steps,
        }
