"""Validation and defaults of the spec of claims and templates (cp V-11 to V-13, V-20 to V-40, V-85).

Expressions are judged by who is named as their judge (`expressions`): the embedded API server, where only the operator and its tests write,
has them measured, `dra_operator.lint` has them compiled.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dra_operator.validation.checks import (
    dns_label,
    dns_subdomain,
    driver_name,
    each,
    full_name,
    immutable,
    label_key,
    label_value,
    repeated,
    repeated_names,
    required,
    too_long,
    too_many,
    unsupported,
    wrong,
)
from dra_operator.validation.expressions import measured
from dra_operator.validation.metadata import check_labels
from dra_operator.validation.objects import Obj, dicts, dig

if TYPE_CHECKING:
    from dra_operator.validation.causes import Cause
    from dra_operator.validation.expressions import Judge

_ITEMS, _ALTERNATIVES, _PARAMETERS = 32, 8, 10_240
_MODES = ("All", "ExactCount")
_EFFECTS = ("NoExecute", "NoSchedule", "None")
_BAD_REFERENCE = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)
_ONE_OF = "exactly one of `exactly` or `firstAvailable` is required"


def default_claim_spec(spec: Obj) -> None:
    """Fill in allocationMode, count and toleration operators, in place (cp V-11 to V-13)."""
    for request in dicts(dig(spec, "devices", "requests")):
        for details in (*dicts([request.get("exactly")]), *dicts(request.get("firstAvailable"))):
            mode = details["allocationMode"] = details.get("allocationMode") or "ExactCount"
            if mode == "ExactCount" and not details.get("count"):
                details["count"] = 1
            default_tolerations(details)


def default_tolerations(holder: Obj) -> None:
    """Operators of the tolerations of a request, or of a result that they were copied to, in place (cp V-13)."""
    for toleration in dicts(holder.get("tolerations")):
        toleration["operator"] = toleration.get("operator") or "Equal"


def references(claim: Obj) -> set[str]:
    """The names by which results, constraints and config may call the requests of a claim."""
    found: set[str] = set()
    for request in dicts(dig(claim, "spec", "devices", "requests")):
        name = request.get("name", "")
        found.add(name)
        found |= {f"{name}/{sub.get('name')}" for sub in dicts(request.get("firstAvailable"))}
    return found


def check_claim(claim: Obj, judge: Judge = measured) -> list[Cause]:
    """Validation of a new claim."""
    return check_claim_spec(claim.get("spec") or {}, "spec", judge)


def check_template(template: Obj, judge: Judge = measured) -> list[Cause]:
    """Validation of a new template: the inner spec, and inner metadata of labels and annotations only."""
    inner = dig(template, "spec", "metadata") or {}
    causes = [
        wrong(f"spec.metadata.{field}", inner[field], "must not be set")
        for field in inner
        if field not in ("labels", "annotations", "creationTimestamp")
    ]
    causes += check_labels(inner, "spec.metadata")
    return [*causes, *check_claim_spec(dig(template, "spec", "spec") or {}, "spec.spec", judge)]


def check_spec_unchanged(new: Obj, old: Obj) -> list[Cause]:
    """The spec of claims and templates is immutable (cp V-20, V-85)."""
    return [] if new.get("spec") == old.get("spec") else [immutable("spec", None)]


def check_claim_spec(spec: Obj, path: str, judge: Judge = measured) -> list[Cause]:
    """Requests, constraints and config of one claim spec (cp V-21 to V-38)."""
    devices = spec.get("devices") or {}
    at = f"{path}.devices"
    known = references({"spec": spec})

    def check_request(request: Obj, place: str) -> list[Cause]:
        return _check_request(request, place, judge)

    def check_constraint(constraint: Obj, place: str) -> list[Cause]:
        return _check_constraint(constraint, known, place)

    def check_entry(config: Obj, place: str) -> list[Cause]:
        return check_config(config, known, place)

    causes = each(devices.get("requests"), f"{at}.requests", _ITEMS, check_request)
    if len(causes) != 1 or causes[0].reason != "FieldValueTooMany":
        causes += repeated_names(f"{at}.requests", list(dicts(devices.get("requests"))))
    causes += each(devices.get("constraints"), f"{at}.constraints", _ITEMS, check_constraint)
    return [*causes, *each(devices.get("config"), f"{at}.config", _ITEMS, check_entry)]


def _check_request(request: Obj, path: str, judge: Judge) -> list[Cause]:
    causes = dns_label(f"{path}.name", request.get("name"))
    exactly, alternatives = request.get("exactly"), list(dicts(request.get("firstAvailable")))
    if exactly is not None and alternatives:
        return [*causes, wrong(path, None, f"{_ONE_OF}, but multiple fields are set")]
    if exactly is not None:
        return [*causes, *_check_details(exactly, f"{path}.exactly", judge)]
    if not alternatives:
        return [*causes, required(path, _ONE_OF)]
    if len(alternatives) > _ALTERNATIVES:
        return [*causes, too_many(f"{path}.firstAvailable", len(alternatives), _ALTERNATIVES)]
    for index, sub in enumerate(alternatives):
        causes += dns_label(f"{path}.firstAvailable[{index}].name", sub.get("name"))
        causes += _check_details(sub, f"{path}.firstAvailable[{index}]", judge)
    return [*causes, *repeated_names(f"{path}.firstAvailable", alternatives)]


def _check_details(details: Obj, path: str, judge: Judge) -> list[Cause]:
    causes = dns_subdomain(f"{path}.deviceClassName", details.get("deviceClassName"))
    causes += check_selectors(details.get("selectors"), f"{path}.selectors", judge)
    causes += _check_count(details, path)
    for index, toleration in enumerate(dicts(details.get("tolerations"))):
        causes += check_toleration(toleration, f"{path}.tolerations[{index}]")
    return causes


def _check_count(details: Obj, path: str) -> list[Cause]:
    mode, count = details.get("allocationMode"), details.get("count", 0)
    if mode not in _MODES:
        return [unsupported(f"{path}.allocationMode", mode, _MODES)]
    if mode == "All" and count:
        return [wrong(f"{path}.count", count, "must not be specified when allocationMode is 'All'")]
    if mode == "ExactCount" and count < 1:
        return [wrong(f"{path}.count", count, "must be greater than zero")]
    return []


def check_selectors(selectors: Any, path: str, judge: Judge = measured) -> list[Cause]:
    """At most 32, each with a CEL expression that the judge takes (cp V-25, V-26)."""

    def check(selector: Obj, place: str) -> list[Cause]:
        if selector.get("cel") is None:
            return [required(f"{place}.cel")]
        return judge(f"{place}.cel.expression", dig(selector, "cel", "expression") or "")

    return each(selectors, path, _ITEMS, check)


def check_toleration(toleration: Obj, path: str) -> list[Cause]:
    """Key, operator, value and effect (cp V-40; that an empty key needs Exists is not enforced upstream)."""
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    causes = label_key(f"{path}.key", key) if key else []
    if operator == "Equal":
        causes += label_value(f"{path}.value", toleration.get("value", ""))
    elif operator == "Exists" and toleration.get("value"):
        causes.append(wrong(f"{path}.value", toleration["value"], "must be empty for operator `Exists`"))
    elif operator not in ("Equal", "Exists"):
        causes.append(unsupported(f"{path}.operator", operator, ("Equal", "Exists")))
    if toleration.get("effect") and toleration["effect"] not in _EFFECTS:
        causes.append(unsupported(f"{path}.effect", toleration["effect"], _EFFECTS))
    return causes


def check_references(names: Any, known: set[str], path: str) -> list[Cause]:
    """Request references of a constraint or config entry (cp V-33)."""
    found = list(names or ())
    if len(found) > _ITEMS:
        return [too_many(path, len(found), _ITEMS)]
    causes: list[Cause] = []
    for index, name in enumerate(found):
        causes += check_reference(name, known, f"{path}[{index}]")
    return [*causes, *repeated(path, found)]


def check_reference(name: Any, known: set[str], path: str) -> list[Cause]:
    """One reference to a request, `name` or `name/subrequest` (cp V-33, V-54)."""
    return [] if name in known else [replace(wrong(path, name or "", _BAD_REFERENCE), refers=True)]


def _check_constraint(constraint: Obj, known: set[str], path: str) -> list[Cause]:
    causes = check_references(constraint.get("requests"), known, f"{path}.requests")
    if not constraint.get("matchAttribute") and not constraint.get("distinctAttribute"):
        detail = (
            'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
        )
        causes.append(required(path, detail))
    for field in ("matchAttribute", "distinctAttribute"):
        if constraint.get(field):
            causes += full_name(f"{path}.{field}", constraint[field])
            break
    return causes


def check_config(config: Obj, known: set[str] | None, path: str) -> list[Cause]:
    """One config entry of a claim, class or allocation; without `known` it names no requests (cp V-35 to V-37)."""
    causes = check_references(config.get("requests"), known, f"{path}.requests") if known is not None else []
    opaque = config.get("opaque")
    if opaque is None:
        return [*causes, required(f"{path}.opaque")]
    causes += driver_name(f"{path}.opaque.driver", opaque.get("driver"))
    parameters = opaque.get("parameters")
    if parameters is None:
        causes.append(required(f"{path}.opaque.parameters"))
    elif not isinstance(parameters, dict):
        causes.append(wrong(f"{path}.opaque.parameters", "<value omitted>", "must be a valid JSON object"))
    elif len(json.dumps(parameters)) > _PARAMETERS:
        causes.append(too_long(f"{path}.opaque.parameters", _PARAMETERS))
    return causes
