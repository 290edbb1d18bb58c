"""What the API server would refuse, told with its place; `validation` knows the rules."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from dra_operator.cel.costs.estimate import TOO_COMPLEX
from dra_operator.errors import CelCompileError
from dra_operator.validation.claims import check_claim, check_template, references
from dra_operator.validation.classes import check_class, check_rule
from dra_operator.validation.expressions import compiled
from dra_operator.validation.metadata import check_metadata
from dra_operator.validation.objects import dig
from dra_operator.validation.podclaims import check_pod_claims
from dra_operator.validation.slices import check_slice
from dra_operator.words import akin

from .costly import explained
from .findings import CODES, REASONS
from .gates import features
from .misplaced import meant_at
from .objects import steps, written
from .shape import claim_path

if TYPE_CHECKING:
    from dra_operator.validation.causes import Cause
    from dra_operator.validation.expressions import Judge
    from dra_operator.validation.objects import Obj

    from .objects import Item
    from .places import Path

_FOLLOWS: Final = frozenset({"FieldValueRequired", "FieldValueInvalid"})
"""Reasons that something may be missing for, because what is there does not fit and is told already."""

_TOKEN: Final = re.compile(
    r"\.\??\s*\w+|[A-Za-z_]\w*|\d+(?:\.\d+)?|\"[^\"\n]*\"|'[^'\n]*'|&&|\|\||[=!<>]=|\S"
)


@lru_cache(maxsize=16)
def _judge(gates: frozenset[str]) -> Judge:
    return compiled(features(gates))


def refused(item: Item) -> None:
    """Tell what the API server would refuse about an object in its v1 form."""
    causes = [*check_metadata(dig(item.obj, "metadata") or {}), *_checked(item)]
    for cause in causes:
        _tell(item, cause)


def _checked(item: Item) -> list[Cause]:
    judge = _judge(item.gates)
    match item.kind:
        case "ResourceClaim":
            return check_claim(item.obj, judge)
        case "ResourceClaimTemplate":
            return check_template(item.obj, judge)
        case "DeviceClass":
            return check_class(item.obj, judge)
        case "DeviceTaintRule":
            return check_rule(item.obj)
    return check_slice(item.obj)


def pod_refused(item: Item, path: Path, spec: Obj) -> None:
    """Tell what the API server would refuse about the claims of a pod."""
    for cause in check_pod_claims(spec, written(path)):
        _tell(item, cause)


def _tell(item: Item, cause: Cause) -> None:
    path = steps(cause.path)
    if item.is_told(path) or (cause.reason in _FOLLOWS and item.is_told_below(path)):
        return
    if isinstance(cause.error, CelCompileError):
        _tell_faults(item, path, cause.error)
        return
    code, remedy, part = REASONS[cause.reason], "", None
    if cause.refers and code == "InvalidValue":
        code = "UnknownRequest"
        remedy = _meant(item, path)
    message = cause.message
    if "ownerReferences" in path:
        remedy = CODES["OwnedElsewhere"].remedy
    if TOO_COMPLEX in message:
        code = "CelTooCostly"
        remedy, part = explained(str(dig_path(item.obj, path) or ""), item.gates)
    item.tell(code, path, message, remedy=remedy, part=part)


def _meant(item: Item, path: Path) -> str:
    claim = {"spec": dig(item.obj, *map(str, claim_path(item.kind))) or {}}
    wanted = dig_path(item.obj, path)
    known = references(claim)
    found = akin(str(wanted), known)
    if found:
        return f"did you mean `{found}`?"
    return f"there are: {', '.join(sorted(known))}" if known else ""


def dig_path(obj: object, path: Path) -> object:
    """The value at a path through objects and lists."""
    for step in path:
        if isinstance(obj, dict):
            obj = obj.get(step)
        elif isinstance(obj, list) and isinstance(step, int) and step < len(obj):
            obj = obj[step]
        else:
            return None
    return obj


def _tell_faults(item: Item, path: Path, error: CelCompileError) -> None:
    """Each fault of an expression at its place in it."""
    expression = str(dig_path(item.obj, path) or "")
    if not error.faults:
        message, _, hint = str(error).partition("\nhint: ")
        item.tell("CelInvalid", path, " ".join(message.split()), remedy=hint)
    for fault in error.faults:
        message = " ".join(fault.message.split())
        part = None
        if fault.offset >= 0:
            token = _TOKEN.match(expression, fault.offset)
            part = (fault.offset, len(token[0]) if token else 1)
        remedy = meant_at(expression, fault.offset) or fault.hint
        item.tell("CelInvalid", path, message, remedy=remedy, part=part)
