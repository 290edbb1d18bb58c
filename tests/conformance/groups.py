"""Compares whom compatibility groups let on to a counter set with recorded answers of upstream (oracle 1.4): part of `python -m tests.conformance`.

It reads no files.
"""

from __future__ import annotations

from typing import Any

from dra_operator.allocator.groups import NO_GROUPS, Common, admits, groups_of
from dra_operator.model import DeviceCounterConsumption

Json = dict[str, Any]


def accepts(raw: Json) -> bool:
    """Whether a line is a case of this kind."""
    return {"candidate", "intersection"} <= set(raw.get("case", ()))


def difference(raw: Json) -> str:
    """What is wrong with our answer to a case; empty when nothing is."""
    case = raw["case"]
    taken = DeviceCounterConsumption(compatibility_groups=tuple(case["candidate"] or ()))
    ours = admits(_common(case["intersection"]), groups_of(taken))
    return "" if ours == case["want"] else f"upstream {case['want']}, ours {ours}"


def _common(state: Json) -> Common:
    """What the devices on the counter set have in common, in upstream's three fields (alloc M-2)."""
    if not state["hasMembers"]:
        return None
    return NO_GROUPS if state["allEmpty"] else frozenset(state["groups"] or ())
