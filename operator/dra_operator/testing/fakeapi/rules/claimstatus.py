"""Validation of a claim's status (cp V-50 to V-58).

Called through `strategies` on updates of `resourceclaims/status`. As on a real server, nothing here protects a device from
being given out twice (cp V-54).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi.objects import Obj, dicts, dig, meta
from dra_operator.validation.checks import (
    dns_label,
    dns_subdomain,
    driver_name,
    duplicate,
    forbidden,
    pool_name,
    required,
    too_many,
    unsupported,
    wrong,
)
from dra_operator.validation.claims import check_config, check_reference, references
from dra_operator.validation.nodeselectors import check_node_selector

if TYPE_CHECKING:
    from dra_operator.validation.causes import Cause

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_RESERVED = "status.reservedFor"
_ALLOCATION = "status.allocation"


def drop_freed_devices(new: Obj, old: Obj) -> Obj:
    """`new` without the device statuses of devices that it no longer holds and `old` held (cp V-61)."""
    devices = dig(new, "status", "devices")
    if not devices:
        return new
    freed = _identities(old) - _identities(new)
    kept = [device for device in devices if _identity(device) not in freed]
    status = {**new["status"], "devices": kept}
    if not kept:
        del status["devices"]
    return {**new, "status": status}


def _identity(result: Obj) -> tuple[str, str, str, str]:
    return (
        str(result.get("driver")),
        str(result.get("pool")),
        str(result.get("device")),
        str(result.get("shareID") or ""),
    )


def _identities(claim: Obj) -> set[tuple[str, str, str, str]]:
    return {_identity(result) for result in dicts(dig(claim, "status", "allocation", "devices", "results"))}


def check_claim_status(new: Obj, old: Obj) -> list[Cause]:
    """A status update from `old` to `new`."""
    causes = _check_reserved_for(new, old)
    allocation, before = dig(new, "status", "allocation"), dig(old, "status", "allocation")
    if before is not None and allocation is not None and allocation != before:
        causes.append(wrong(_ALLOCATION, None, "field cannot be modified once set"))
    elif before is None and allocation is not None:
        causes += _check_allocation(new, allocation)
    return [*causes, *_check_devices(new)]


def _check_reserved_for(new: Obj, old: Obj) -> list[Cause]:
    consumers = list(dicts(dig(new, "status", "reservedFor")))
    causes: list[Cause] = []
    if len(consumers) > 256:
        causes.append(too_many(_RESERVED, len(consumers), 256))
    else:
        causes += _check_consumers(consumers)
    if consumers and dig(new, "status", "allocation") is None:
        causes.append(forbidden(_RESERVED, "may not be specified when `allocated` is not set"))
    if "deletionTimestamp" in meta(old):
        before = {consumer.get("uid") for consumer in dicts(dig(old, "status", "reservedFor"))}
        if {consumer.get("uid") for consumer in consumers} - before:
            causes.append(
                forbidden(
                    _RESERVED,
                    "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set",
                )
            )
    return causes


def _check_consumers(consumers: list[Obj]) -> list[Cause]:
    causes: list[Cause] = []
    seen: set[str] = set()
    for index, consumer in enumerate(consumers):
        path = f"{_RESERVED}[{index}]"
        causes += [
            required(f"{path}.{name}") for name in ("resource", "name", "uid") if not consumer.get(name)
        ]
        if consumer.get("apiGroup"):
            causes += dns_subdomain(f"{path}.apiGroup", consumer["apiGroup"])
        uid = str(consumer.get("uid"))
        if uid in seen:
            causes.append(duplicate(path, consumer))
        seen.add(uid)
    return causes


def _check_allocation(claim: Obj, allocation: Obj) -> list[Cause]:
    known = references(claim)
    path = f"{_ALLOCATION}.devices"
    results = list(dicts(dig(allocation, "devices", "results")))
    config = list(dicts(dig(allocation, "devices", "config")))
    causes: list[Cause] = []
    if len(results) > 32:
        causes.append(too_many(f"{path}.results", len(results), 32))
    else:
        for index, result in enumerate(results):
            causes += _check_result(result, known, f"{path}.results[{index}]")
    if len(config) > 64:
        causes.append(too_many(f"{path}.config", len(config), 64))
    else:
        for index, entry in enumerate(config):
            causes += _check_allocated_config(entry, known, f"{path}.config[{index}]")
    if allocation.get("nodeSelector") is not None:
        causes += check_node_selector(allocation["nodeSelector"], f"{_ALLOCATION}.nodeSelector")
    return causes


def _check_result(result: Obj, known: set[str], path: str) -> list[Cause]:
    causes = check_reference(result.get("request"), known, f"{path}.request")
    causes += driver_name(f"{path}.driver", result.get("driver"))
    causes += pool_name(f"{path}.pool", result.get("pool"))
    causes += dns_label(f"{path}.device", result.get("device"))
    share = result.get("shareID")
    if share is not None and not _UUID.fullmatch(share):
        causes.append(wrong(f"{path}.shareID", share, "must be a lowercase UUID in RFC 4122 form"))
    return causes


def _check_allocated_config(entry: Obj, known: set[str], path: str) -> list[Cause]:
    source = entry.get("source")
    causes = check_config(entry, known, path)
    if not source:
        causes.append(required(f"{path}.source"))
    elif source not in ("FromClaim", "FromClass"):
        causes.append(unsupported(f"{path}.source", source, ("FromClaim", "FromClass")))
    return causes


def _check_devices(claim: Obj) -> list[Cause]:
    held = _identities(claim)
    return [
        wrong(f"status.devices[{index}]", device, "must be an allocated device in the claim")
        for index, device in enumerate(dicts(dig(claim, "status", "devices")))
        if _identity(device) not in held
    ]
