"""Faults of upstream's that a comparison meets: named, counted, and left out of the differences (oracle 1.2). It asks nobody."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

Json = dict[str, Any]

MIXED: Final = (
    "devices of a counter set that do not go together are allocated: upstream keeps for all nodes what they have in common in the order of the slices "
    "as the first node sees them"
)
"""`compatibilityGroupsBaselineForPool` of 0.37.2: `add` leaves out a device that its state does not admit, so that the order tells, and the baseline is kept by pool,
whichever node asks. Ours begins anew for each node (alloc M-4)."""


def fault_of(problem: Json) -> str | None:
    """The fault that may be behind a difference in answers to this problem, if one is known."""
    is_asked = problem["features"].get("CompatibilityGroups") and len(problem.get("nodes", ())) > 1
    return MIXED if is_asked and _is_mixed(problem) else None


def _is_mixed(problem: Json) -> bool:
    """Whether devices with and without groups are allocated on one counter set."""
    allocated = problem.get("allocated") or {}
    held = {
        (each["driver"], each["pool"], each["device"])
        for each in (*allocated.get("devices", ()), *allocated.get("sharedDeviceIDs", ()))
    }
    kinds: dict[tuple[str, str, str], set[bool]] = defaultdict(set)
    for slice_ in problem["slices"]:
        spec = slice_["spec"]
        pool = spec["driver"], spec["pool"]["name"]
        for device in spec.get("devices") or ():
            if (*pool, device["name"]) in held:
                for taken in device.get("consumesCounters") or ():
                    kinds[*pool, taken["counterSet"]].add(bool(taken.get("compatibilityGroups")))
    return any(len(found) > 1 for found in kinds.values())
