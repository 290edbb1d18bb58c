"""As much of an object as can be told although it cannot be decoded: which devices a claim holds. Pure.

A claim that this release cannot read holds its devices all the same (alloc A-3). Only what says who holds which device is read here;
everything else of the object is as unknown as before, and nobody may act on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .claims import AllocationResult, DeviceAllocationResult, DeviceRequestAllocationResult


def held_allocation(raw: object) -> AllocationResult | None:
    """The allocation of a claim as far as its devices; None if it holds none.

    A share of a device counts as the whole device: how much of it is consumed may be what cannot be read. Entries whose driver, pool
    and device are not all text are left out: no API server stores such (cp V-50).

    Args:
        raw: the claim as parsed JSON, whatever it looks like.
    """
    results = _list(_member(raw, "status", "allocation", "devices", "results"))
    held = tuple(found for entry in results if (found := _result(entry)) is not None)
    return AllocationResult(DeviceAllocationResult(held)) if held else None


def _result(entry: object) -> DeviceRequestAllocationResult | None:
    names = [_member(entry, name) for name in ("driver", "pool", "device")]
    texts = [name for name in names if isinstance(name, str) and name]
    if len(texts) < len(names):
        return None
    driver, pool, device = texts
    only_looks = _member(entry, "adminAccess") is True
    return DeviceRequestAllocationResult(driver=driver, pool=pool, device=device, admin_access=only_looks)


def _member(raw: object, *path: str) -> object:
    for name in path:
        raw = raw.get(name) if isinstance(raw, Mapping) else None
    return raw


def _list(raw: object) -> list[Any]:
    return raw if isinstance(raw, list) else []
