"""Validation of named counters, in sets and where devices draw on them (cp V-99, V-100)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dra_operator.validation.checks import dns_label, required, too_many

if TYPE_CHECKING:
    from dra_operator.validation.causes import Cause
    from dra_operator.validation.objects import Obj

MOST: Final = 32


def check_counters(holder: Obj, path: str) -> list[Cause]:
    """1 to 32 counters, each with a DNS label for a name."""
    counters = holder.get("counters") or {}
    if not counters:
        return [required(f"{path}.counters")]
    if len(counters) > MOST:
        return [too_many(f"{path}.counters", len(counters), MOST)]
    return [cause for name in counters for cause in dns_label(f"{path}.counters", name)]
