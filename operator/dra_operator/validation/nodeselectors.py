"""Validation of core/v1 node selectors (cp V-56, cp I-26).

Called by the rules of pods, claims and slices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.validation.checks import label_key, required, unsupported, wrong
from dra_operator.validation.objects import Obj, dicts

if TYPE_CHECKING:
    from dra_operator.validation.causes import Cause

_OPERATORS = ("DoesNotExist", "Exists", "Gt", "In", "Lt", "NotIn")


def check_node_selector(selector: Obj, path: str) -> list[Cause]:
    """A NodeSelector with at least one term."""
    terms = list(dicts(selector.get("nodeSelectorTerms")))
    if not terms:
        return [required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")]
    causes: list[Cause] = []
    for index, term in enumerate(terms):
        at = f"{path}.nodeSelectorTerms[{index}]"
        for number, requirement in enumerate(dicts(term.get("matchExpressions"))):
            causes += _check_expression(requirement, f"{at}.matchExpressions[{number}]")
        for number, requirement in enumerate(dicts(term.get("matchFields"))):
            causes += _check_field(requirement, f"{at}.matchFields[{number}]")
    return causes


def _check_expression(requirement: Obj, path: str) -> list[Cause]:
    operator, values = requirement.get("operator"), requirement.get("values") or []
    causes = label_key(f"{path}.key", requirement.get("key", ""))
    if operator not in _OPERATORS:
        causes.append(wrong(f"{path}.operator", operator, "not a valid selector operator"))
    elif operator in ("In", "NotIn") and not values:
        causes.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist") and values:
        causes.append(
            wrong(
                f"{path}.values", values, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            )
        )
    elif operator in ("Gt", "Lt") and len(values) != 1:
        causes.append(
            required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
        )
    return causes


def _check_field(requirement: Obj, path: str) -> list[Cause]:
    key, operator, values = (
        requirement.get("key"),
        requirement.get("operator"),
        requirement.get("values") or [],
    )
    causes: list[Cause] = []
    if operator not in ("In", "NotIn"):
        causes.append(wrong(f"{path}.operator", operator, "not a valid selector operator"))
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        causes.append(required(f"{path}.values", detail))
    if key != "metadata.name":
        causes.append(
            unsupported(f"{path}.key", key, ("metadata.name",)) if not key else _not_a_field(key, path)
        )
    return causes


def _not_a_field(key: str, path: str) -> Cause:
    return wrong(f"{path}.key", key, "not a valid field selector key")
