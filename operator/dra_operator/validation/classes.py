"""Validation of DeviceClasses and DeviceTaintRules (cp V-86, V-87, V-120, V-121)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.validation.checks import dns_label, driver_name, each, label_key, pool_name, wrong
from dra_operator.validation.claims import check_config, check_selectors
from dra_operator.validation.devices import check_taint
from dra_operator.validation.expressions import measured
from dra_operator.validation.objects import Obj, dig

if TYPE_CHECKING:
    from dra_operator.validation.causes import Cause
    from dra_operator.validation.expressions import Judge

_CONFIG = 32
_QUOTA = "requests."


def check_class(obj: Obj, judge: Judge = measured) -> list[Cause]:
    """A class, new or changed."""
    causes = check_selectors(dig(obj, "spec", "selectors"), "spec.selectors", judge)

    def check(config: Obj, path: str) -> list[Cause]:
        return check_config(config, None, path)

    causes += each(dig(obj, "spec", "config"), "spec.config", _CONFIG, check)
    name = dig(obj, "spec", "extendedResourceName")
    if name is not None and not is_extended_resource(name):
        path = "spec.extendedResourceName"
        causes.append(wrong(path, name, "must be a valid extended resource name"))
    return causes


def is_extended_resource(name: str) -> bool:
    """Whether pods may ask for it beside cpu and memory, as `example.com/gpu`."""
    if "/" not in name or "kubernetes.io/" in name or name.startswith(_QUOTA):
        return False
    return not label_key("", _QUOTA + name)


def check_rule(obj: Obj) -> list[Cause]:
    """A taint rule, new or changed."""
    selector = dig(obj, "spec", "deviceSelector") or {}
    causes = [
        cause
        for field, check in (("driver", driver_name), ("pool", pool_name), ("device", dns_label))
        if selector.get(field) is not None
        for cause in check(f"spec.deviceSelector.{field}", selector[field])
    ]
    return [*causes, *check_taint(dig(obj, "spec", "taint") or {}, "spec.taint")]
