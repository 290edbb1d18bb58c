"""What is legal and wrong all the same in slices, taint rules and namespaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.model import PoolId
from dra_operator.validation.objects import dicts, dig
from dra_operator.words import akin, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dra_operator.validation.objects import Obj

    from .known import Known
    from .objects import Item
    from .places import Path


def slice_(item: Item, known: Known) -> None:
    """A ResourceSlice."""
    driver = dig(item.obj, "spec", "driver")
    if isinstance(driver, str) and driver != driver.lower():
        item.tell("UpperCaseDriver", ("spec", "driver"), f"driver {driver} has upper-case letters")
    metadata = item.obj.get("metadata") or {}
    is_dump = bool(metadata.get("uid") or metadata.get("creationTimestamp"))
    if any(owner.get("uid") for owner in dicts(metadata.get("ownerReferences"))) and not is_dump:
        message = "has an owner by uid: where no object of that uid is, the garbage collector deletes the slice at once"
        item.tell("OwnedElsewhere", ("metadata", "ownerReferences"), message, at_key=True)
    _counters(item, known)


def _counters(item: Item, known: Known) -> None:
    spec = item.obj.get("spec") or {}
    pool = spec.get("pool") or {}
    whole = known.pool(PoolId(str(spec.get("driver")), str(pool.get("name"))), pool.get("generation") or 0)
    if whole is None:
        return
    sets = {one.name: set(one.counters) for part in whole for one in part.spec.shared_counters}
    for path, name, counters in _drawn(spec):
        if name not in sets:
            near = akin(name, sets)
            remedy = f"did you mean `{near}`?" if near else ""
            item.tell(
                "UnknownCounter", (*path, "counterSet"), f"the pool has no counter set {name}", remedy=remedy
            )
            continue
        for counter in counters:
            if counter not in sets[name]:
                near = akin(counter, sets[name])
                remedy = f"did you mean `{near}`?" if near else ""
                message = f"counter set {name} has no counter {counter}"
                item.tell("UnknownCounter", (*path, "counters", counter), message, remedy=remedy, at_key=True)


def _drawn(spec: Obj) -> Iterator[tuple[Path, str, list[str]]]:
    for index, device in enumerate(dicts(spec.get("devices"))):
        for number, drawn in enumerate(dicts(device.get("consumesCounters"))):
            path = ("spec", "devices", index, "consumesCounters", number)
            yield path, str(drawn.get("counterSet") or ""), list(drawn.get("counters") or {})


def rule(item: Item, known: Known) -> None:
    """A DeviceTaintRule."""
    if item.is_told_below(("spec", "deviceSelector")) or item.is_told(("spec", "deviceSelector")):
        return
    selector = dig(item.obj, "spec", "deviceSelector")
    effect = dig(item.obj, "spec", "taint", "effect")
    if selector is None:
        item.tell(
            "SelectsNothing", ("spec", "deviceSelector"), "without deviceSelector the rule selects no device"
        )
        return
    chosen = {name: selector[name] for name in ("driver", "pool", "device") if selector.get(name)}
    if not chosen and effect in {"NoSchedule", "NoExecute"}:
        consequence = (
            "evicts every pod that has a device"
            if effect == "NoExecute"
            else "keeps all new claims off every device"
        )
        message = f"an empty deviceSelector selects all devices of the cluster: {effect} {consequence}"
        item.tell("SelectsAllDevices", ("spec", "deviceSelector"), message, at_key=True)
        return
    if chosen:
        _chosen(item, chosen, known)


def _chosen(item: Item, chosen: dict[str, str], known: Known) -> None:
    devices = [
        {"driver": part.spec.driver, "pool": part.spec.pool.name, "device": device.name}
        for part, device in known.devices()
    ]
    for name, value in chosen.items():
        left = [one for one in devices if one[name] == value]
        if not left and devices:
            names = {one[name] for one in devices}
            near = nearest(value, names)
            if near or "ResourceSlice" in known.whole:
                remedy = f"did you mean `{near}`?" if near else ""
                message = f"no published device has the {name} {value}"
                item.tell("SelectsNothing", ("spec", "deviceSelector", name), message, remedy=remedy)
            return
        devices = left


def admin_access(item: Item, path: Path, known: Known) -> None:
    """Requests for admin access in a namespace that is known not to allow it (cp V-70)."""
    namespace = known.namespaces.get(item.namespace or known.namespace)
    if namespace is None or namespace.allows_admin_access:
        return
    for index, request in enumerate(dicts(dig(item.obj, *map(str, path), "devices", "requests"))):
        if dig(request, "exactly", "adminAccess") is True:
            here = (*path, "devices", "requests", index, "exactly", "adminAccess")
            message = "admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace"
            item.tell("AdminAccessNotAllowed", here, message)
