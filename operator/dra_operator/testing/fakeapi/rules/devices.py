"""Validation and defaults of slices, classes and taint rules (cp V-14, V-86, V-90 to V-93, V-98, T-20).

Called through `strategies`. The operator writes taint rules itself; slices come from tests and the demo, which must not
publish what a real server would refuse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi.checks import (
    dns_label,
    driver_name,
    immutable,
    label_key,
    label_value,
    pool_name,
    repeated,
    required,
    too_many,
    unsupported,
    wrong,
)
from dra_operator.testing.fakeapi.objects import Obj, dicts, dig, timestamp
from dra_operator.testing.fakeapi.rules.attributes import check_attributes, drop_lists
from dra_operator.testing.fakeapi.rules.claims import check_config, check_selectors
from dra_operator.testing.fakeapi.rules.nodeselectors import check_node_selector

if TYPE_CHECKING:
    from datetime import datetime

    from dra_operator.testing.fakeapi.failures import Cause

_EFFECTS = ("NoExecute", "NoSchedule", "None")
_PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")


def default_slice(obj: Obj, now: datetime) -> None:
    """Taints of devices get a time (cp V-14), values of gates that are off are dropped, in place."""
    drop_lists(obj.get("spec") or {})
    for device in dicts(dig(obj, "spec", "devices")):
        for taint in dicts(device.get("taints")):
            taint.setdefault("timeAdded", timestamp(now))


def default_rule(obj: Obj, now: datetime) -> None:
    """The taint gets a time (cp V-14), in place."""
    taint = dig(obj, "spec", "taint")
    if isinstance(taint, dict):
        taint.setdefault("timeAdded", timestamp(now))


def renew_rule(new: Obj, old: Obj, now: datetime) -> None:
    """A changed effect starts the taint anew (cp T-20), in place."""
    after, before = dig(new, "spec", "taint") or {}, dig(old, "spec", "taint") or {}
    if after.get("effect") != before.get("effect") and after.get("timeAdded") == before.get("timeAdded"):
        after["timeAdded"] = timestamp(now)


def check_class(obj: Obj) -> list[Cause]:
    """A class, new or changed (cp V-86)."""
    causes = check_selectors(dig(obj, "spec", "selectors"), "spec.selectors")
    for index, config in enumerate(dicts(dig(obj, "spec", "config"))):
        causes += check_config(config, None, f"spec.config[{index}]")
    return causes


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
    return [*causes, *_check_place(spec), *_check_devices(spec)]


def _check_place(spec: Obj) -> list[Cause]:
    chosen = [name for name in _PLACES if spec.get(name)]
    detail = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
    if not chosen:
        return [required("spec", detail)]
    if len(chosen) > 1:
        fields = ", ".join(f"`{name}`" for name in chosen)
        return [wrong("spec", f"{{{fields}}}", f"{detail}, but multiple fields are set")]
    if chosen == ["nodeSelector"]:
        return check_node_selector(spec["nodeSelector"], "spec.nodeSelector")
    return []


def _check_devices(spec: Obj) -> list[Cause]:
    devices = list(dicts(spec.get("devices")))
    limit = 64 if any(device.get("taints") or device.get("consumesCounters") for device in devices) else 128
    if len(devices) > limit:
        return [too_many("spec.devices", len(devices), limit)]
    if devices and spec.get("sharedCounters"):
        return [
            wrong("spec", "{devices, sharedCounters}", "only one of `sharedCounters` or `devices` is allowed")
        ]
    causes: list[Cause] = []
    for index, device in enumerate(devices):
        causes += _check_device(device, f"spec.devices[{index}]")
    return [*causes, *repeated("spec.devices", [device.get("name") for device in devices])]


def _check_device(device: Obj, path: str) -> list[Cause]:
    causes = dns_label(f"{path}.name", device.get("name"))
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    if len(attributes) + len(capacity) > 32:
        causes.append(too_many(path, len(attributes) + len(capacity), 32))
    causes += check_attributes(device, path)
    for index, taint in enumerate(dicts(device.get("taints"))):
        causes += check_taint(taint, f"{path}.taints[{index}]")
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


def check_slice_update(new: Obj, old: Obj) -> list[Cause]:
    """Driver, pool name and node name never change (cp V-90)."""
    fixed = (("driver",), ("pool", "name"), ("nodeName",))
    causes = [
        immutable(f"spec.{'.'.join(path)}", dig(new, "spec", *path))
        for path in fixed
        if dig(new, "spec", *path) != dig(old, "spec", *path)
    ]
    return [*causes, *check_slice(new)]


def check_rule(obj: Obj) -> list[Cause]:
    """A taint rule, new or changed (cp V-120, V-121)."""
    selector = dig(obj, "spec", "deviceSelector") or {}
    causes = driver_name("spec.deviceSelector.driver", selector["driver"]) if selector.get("driver") else []
    if selector.get("pool"):
        causes += pool_name("spec.deviceSelector.pool", selector["pool"])
    if selector.get("device"):
        causes += dns_label("spec.deviceSelector.device", selector["device"])
    return [*causes, *check_taint(dig(obj, "spec", "taint") or {}, "spec.taint")]
