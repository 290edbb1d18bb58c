"""Defaults of slices and taint rules, and what updates must not change (cp V-14, V-90, T-20).

Called through `strategies`. The operator writes taint rules itself; slices come from tests and the demo.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi.objects import Obj, dicts, dig, timestamp
from dra_operator.validation.attributes import drop_lists
from dra_operator.validation.checks import immutable
from dra_operator.validation.slices import check_slice

if TYPE_CHECKING:
    from datetime import datetime

    from dra_operator.validation.causes import Cause


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


def check_slice_update(new: Obj, old: Obj) -> list[Cause]:
    """Driver, pool name and node name never change (cp V-90)."""
    fixed = (("driver",), ("pool", "name"), ("nodeName",))
    causes = [
        immutable(f"spec.{'.'.join(path)}", dig(new, "spec", *path))
        for path in fixed
        if dig(new, "spec", *path) != dig(old, "spec", *path)
    ]
    return [*causes, *check_slice(new)]
