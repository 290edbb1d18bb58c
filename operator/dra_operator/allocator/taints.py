"""Device taints and the tolerations of requests (alloc section 9).

Called by `search` for each candidate and by taint eviction (a later controller). Time plays no role here (T-4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dra_operator.model import Device, DeviceTaint, DeviceToleration

REFUSING_EFFECTS: Final = frozenset({"NoSchedule", "NoExecute"})
"""Effects that keep a device from being allocated; None and unknown ones never matter (alloc T-2)."""


def tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    """Whether the toleration covers the taint (alloc T-3)."""
    if toleration.effect not in {"", taint.effect} or toleration.key not in {"", taint.key}:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in {"", "Equal"} and toleration.value == taint.value


def untolerated(
    device: Device, tolerations: Iterable[DeviceToleration], ignored: frozenset[str] = frozenset()
) -> DeviceTaint | None:
    """The first taint that keeps the device from being allocated, if any (alloc T-2, T-5).

    Args:
        device: with its driver's taints and those of DeviceTaintRules.
        tolerations: of the request or sub-request (alloc T-8).
        ignored: keys that do not matter to this allocator.
    """
    for taint in device.taints:
        if taint.effect not in REFUSING_EFFECTS or taint.key in ignored:
            continue
        if not any(tolerates(toleration, taint) for toleration in tolerations):
            return taint
    return None


def taint_text(taint: DeviceTaint) -> str:
    """`key=value:effect`, as kubectl prints taints."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"
