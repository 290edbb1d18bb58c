"""Who judges the CEL expressions of classes and claims: the engine, as the API server has it, or nothing but a measure (cp V-26, V-27).

It compiles new expressions, with the feature gates that it is told. It must not say what else could be wrong with them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from dra_operator.cel.checking.checks import check_selector
from dra_operator.cel.checking.environment import new_expressions
from dra_operator.cel.costs.estimate import TOO_COMPLEX, estimate, is_too_complex
from dra_operator.errors import CelCompileError, CelUnsupported
from dra_operator.validation.causes import Cause
from dra_operator.validation.checks import forbidden, too_long, wrong

if TYPE_CHECKING:
    from dra_operator.features import Features

MAX_LENGTH: Final = 10_240
"""Bytes of an expression."""

NOT_CHECKED: Final = "NotChecked"
"""Reason of a cause that is no refusal: nothing is known of the expression."""

Judge = Callable[[str, str], list[Cause]]
"""From the path and the text of an expression to what is wrong with it."""


def measured(path: str, expression: str) -> list[Cause]:
    """Whether there is an expression, and no longer than it may be."""
    if not expression:
        return [wrong(path, "", "compilation failed: nothing to parse")]
    return [too_long(path, MAX_LENGTH)] if len(expression.encode()) > MAX_LENGTH else []


def compiled(features: Features) -> Judge:
    """A judge that compiles, and estimates the costs. What the engine cannot compile though it may be valid has a reason of its own."""
    environment = new_expressions(features)

    def judge(path: str, expression: str) -> list[Cause]:
        causes = measured(path, expression)
        if causes:
            return causes
        try:
            checked = check_selector(expression, environment)
            costs = estimate(checked)
        except CelCompileError as error:
            return [replace(wrong(path, expression, str(error)), error=error)]
        except CelUnsupported as error:
            return [Cause(path, NOT_CHECKED, str(error), error=error)]
        return [forbidden(path, TOO_COMPLEX)] if is_too_complex(costs) else []

    return judge
