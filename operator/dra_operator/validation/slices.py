"""Validation of ResourceSlices (cp V-90 to V-103): where they are, what they hold, and how it adds up.

Devices are checked by `devices`. Updates, which must not change driver, pool and node, are for the embedded API server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.validation.checks import (
    dns_label,
    dns_subdomain,
    driver_name,
    each,
    pool_name,
    repeated,
    required,
    too_many,
    wrong,
)
from dra_operator.validation.counters import check_counters
from dra_operator.validation.devices import check_device
from dra_operator.validation.nodeselectors import check_node_selector
from dra_operator.validation.objects import Obj, dicts, dig

if TYPE_CHECKING:
    from dra_operator.validation.causes import Cause

_PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_DEVICES, _DEVICES_WITH_MORE, _COUNTER_SETS = 128, 64, 8


def check_slice(obj: Obj) -> list[Cause]:
    """A slice, new or changed."""
    spec = obj.get("spec") or {}
    pool = spec.get("pool") or {}
    causes = driver_name("spec.driver", spec.get("driver"))
    causes += pool_name("spec.pool.name", pool.get("name"))
    if pool.get("resourceSliceCount", 0) < 1:
        count = pool.get("resourceSliceCount", 0)
        causes.append(wrong("spec.pool.resourceSliceCount", count, "must be greater than zero"))
    if pool.get("generation", 0) < 0:
        causes.append(
            wrong("spec.pool.generation", pool["generation"], "must be greater than or equal to zero")
        )
    return [*causes, *_check_place(spec), *_check_devices(spec), *_check_counters(spec)]


def _check_place(spec: Obj) -> list[Cause]:
    chosen = [name for name in _PLACES if spec.get(name)]
    causes = _check_values(spec)
    detail = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
    if not chosen:
        return [*causes, required("spec", detail)]
    if len(chosen) > 1:
        fields = ", ".join(f"`{name}`" for name in chosen)
        return [*causes, wrong("spec", f"{{{fields}}}", f"{detail}, but multiple fields are set")]
    return causes


def _check_values(spec: Obj) -> list[Cause]:
    causes: list[Cause] = []
    if spec.get("nodeName"):
        causes += dns_subdomain("spec.nodeName", spec["nodeName"])
    elif spec.get("nodeName") is not None:
        causes.append(wrong("spec.nodeName", "", "must be either unset or set to a non-empty string"))
    causes += [
        wrong(f"spec.{name}", False, "must be either unset or set to true")
        for name in ("allNodes", "perDeviceNodeSelection")
        if spec.get(name) is False
    ]
    if spec.get("nodeSelector"):
        causes += check_node_selector(spec["nodeSelector"], "spec.nodeSelector")
        terms = dig(spec, "nodeSelector", "nodeSelectorTerms") or []
        if len(terms) != 1:
            path = "spec.nodeSelector.nodeSelectorTerms"
            causes.append(wrong(path, terms, "must have exactly one node selector term"))
    return causes


def _is_advanced(device: Obj) -> bool:
    lists = ("ints", "bools", "strings", "versions")
    attributes = dicts((device.get("attributes") or {}).values())
    return bool(
        device.get("taints")
        or device.get("consumesCounters")
        or any(attribute.get(name) is not None for attribute in attributes for name in lists)
    )


def _check_devices(spec: Obj) -> list[Cause]:
    devices = list(dicts(spec.get("devices")))
    limit = _DEVICES_WITH_MORE if any(map(_is_advanced, devices)) else _DEVICES
    if len(devices) > limit:
        return [too_many("spec.devices", len(devices), limit)]
    causes: list[Cause] = []
    if spec.get("devices") and spec.get("sharedCounters"):
        detail = "only one of `sharedCounters` or `devices` is allowed"
        causes.append(wrong("spec", "{devices, sharedCounters}", detail))
    for index, device in enumerate(devices):
        causes += check_device(
            device, f"spec.devices[{index}]", each_has_place=spec.get("perDeviceNodeSelection") is True
        )
    return [*causes, *repeated("spec.devices", [device.get("name") for device in devices])]


def _check_counters(spec: Obj) -> list[Cause]:
    sets = list(dicts(spec.get("sharedCounters")))

    def check(counters: Obj, path: str) -> list[Cause]:
        return [*dns_label(f"{path}.name", counters.get("name")), *check_counters(counters, path)]

    causes = each(sets, "spec.sharedCounters", _COUNTER_SETS, check)
    if len(sets) > _COUNTER_SETS:
        return causes
    return [*causes, *repeated("spec.sharedCounters", [counters.get("name") for counters in sets])]
