"""Validation of one device of a slice (cp V-94 to V-103).

Attributes are checked by `attributes`, what may be asked of a capacity by `policies`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.validation.attributes import check_attributes
from dra_operator.validation.checks import (
    dns_label,
    dns_subdomain,
    each,
    label_key,
    label_value,
    repeated,
    required,
    too_many,
    unsupported,
    wrong,
)
from dra_operator.validation.counters import check_counters
from dra_operator.validation.nodeselectors import check_node_selector
from dra_operator.validation.objects import Obj, dicts
from dra_operator.validation.policies import check_policies

if TYPE_CHECKING:
    from dra_operator.validation.causes import Cause

_EFFECTS = ("NoExecute", "NoSchedule", "None")
_PLACES = ("nodeName", "nodeSelector", "allNodes")
_ENTRIES, _VALUES, _TAINTS, _SETS_DRAWN_ON, _CONDITIONS = 32, 48, 16, 2, 4
_PLACE_NEEDED = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the "
    "ResourceSlice spec"
)
_PLACE_FORBIDDEN = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec"


def check_device(device: Obj, path: str, *, each_has_place: bool) -> list[Cause]:
    """One device; `each_has_place` where the slice leaves to its devices which nodes they are for."""
    causes = dns_label(f"{path}.name", device.get("name"))
    causes += _check_size(device, path)
    causes += check_attributes(device, path)
    causes += check_policies(device, path)
    causes += each(device.get("taints"), f"{path}.taints", _TAINTS, check_taint)
    causes += _check_drawing(device, path)
    causes += _check_place(device, path, each_has_place=each_has_place)
    return [*causes, *check_conditions(device, path)]


def _check_size(device: Obj, path: str) -> list[Cause]:
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    entries = len(attributes) + len(capacity)
    causes = []
    if entries > _ENTRIES:
        detail = f"the total number of attributes and capacities must not exceed {_ENTRIES}"
        causes.append(wrong(path, entries, detail))
    lists = ("ints", "bools", "strings", "versions")
    values = sum(
        sum(len(attribute.get(name) or ()) for name in lists) or 1 for attribute in dicts(attributes.values())
    )
    if values > _VALUES:
        detail = f"the total number of attribute values must not exceed {_VALUES}"
        causes.append(wrong(path, values, detail))
    return causes


def check_taint(taint: Obj, path: str) -> list[Cause]:
    """One device taint (cp V-98)."""
    key, effect = taint.get("key"), taint.get("effect")
    causes = label_key(f"{path}.key", key or "")
    if taint.get("value"):
        causes += label_value(f"{path}.value", taint["value"])
    if not effect:
        causes.append(required(f"{path}.effect"))
    elif effect not in _EFFECTS:
        causes.append(unsupported(f"{path}.effect", effect, _EFFECTS))
    return causes


def _check_drawing(device: Obj, path: str) -> list[Cause]:
    drawn = list(dicts(device.get("consumesCounters")))
    at = f"{path}.consumesCounters"

    def check(one: Obj, place: str) -> list[Cause]:
        return [*dns_label(f"{place}.counterSet", one.get("counterSet")), *check_counters(one, place)]

    causes = each(drawn, at, _SETS_DRAWN_ON, check)
    if len(drawn) > _SETS_DRAWN_ON:
        return causes
    return [*causes, *repeated(at, [one.get("counterSet") for one in drawn])]


def _check_place(device: Obj, path: str, *, each_has_place: bool) -> list[Cause]:
    if not each_has_place:
        given = any(device.get(name) is not None for name in _PLACES)
        return [wrong(path, None, _PLACE_FORBIDDEN)] if given else []
    chosen = [f"`{name}`" for name in _PLACES if device.get(name)]
    causes = _check_values(device, path)
    if not chosen:
        return [*causes, required(path, _PLACE_NEEDED)]
    if len(chosen) > 1:
        return [*causes, wrong(path, f"{{{', '.join(chosen)}}}", _PLACE_NEEDED)]
    return causes


def _check_values(device: Obj, path: str) -> list[Cause]:
    causes: list[Cause] = []
    if device.get("nodeName"):
        causes += dns_subdomain(f"{path}.nodeName", device["nodeName"])
    elif device.get("nodeName") is not None:
        causes.append(wrong(f"{path}.nodeName", "", "must not be empty"))
    if device.get("allNodes") is False:
        causes.append(wrong(f"{path}.allNodes", False, "must be either unset or set to true"))
    if device.get("nodeSelector"):
        causes += check_node_selector(device["nodeSelector"], f"{path}.nodeSelector")
    return causes


def check_conditions(holder: Obj, path: str) -> list[Cause]:
    """Binding conditions and binding failure conditions: 4 of each at most, none in both, neither without the other (cp V-95)."""
    lists = {name: list(holder.get(name) or ()) for name in ("bindingConditions", "bindingFailureConditions")}
    causes: list[Cause] = []
    for name, conditions in lists.items():
        at = f"{path}.{name}"
        if len(conditions) > _CONDITIONS:
            causes.append(too_many(at, len(conditions), _CONDITIONS))
            continue
        for index, condition in enumerate(conditions):
            causes += label_key(f"{at}[{index}]", condition)
        causes += repeated(at, conditions)
    wanted, failures = lists.values()
    both = "bindingFailureConditions must not overlap with bindingConditions"
    causes += [
        wrong(f"{path}.bindingFailureConditions[{index}]", condition, both)
        for index, condition in enumerate(failures)
        if condition in wanted
    ]
    if bool(wanted) != bool(failures):
        there, missing = ("bindingConditions", "bindingFailureConditions")[:: 1 if wanted else -1]
        causes.append(wrong(f"{path}.{missing}", [], f"{missing} are required to use {there}"))
    return causes
