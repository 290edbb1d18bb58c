"""Validation of PodGroups, as far as claims go (cp C-75): entries, their statuses, and that the spec's entries never change.

Called through `strategies`. Scheduling policies and constraints are accepted as they come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi.objects import dicts, dig
from dra_operator.validation.checks import dns_label, immutable, required, too_many, wrong

if TYPE_CHECKING:
    from dra_operator.testing.fakeapi.objects import Obj
    from dra_operator.validation.causes import Cause

MAX_CLAIMS = 4
_UNMATCHED = "must match the name of an entry in `spec.resourceClaims`"
_POLICY = "must specify one of: `basic`, `gang`"
_ONE_OF = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"


def check_group(obj: Obj) -> list[Cause]:
    """A new group."""
    entries = list(dicts(dig(obj, "spec", "resourceClaims")))
    path = "spec.resourceClaims"
    if len(entries) > MAX_CLAIMS:
        return [too_many(path, len(entries), MAX_CLAIMS)]
    causes = [] if dig(obj, "spec", "schedulingPolicy") else [wrong("spec.schedulingPolicy", "", _POLICY)]
    for index, entry in enumerate(entries):
        name = entry.get("name")
        causes += dns_label(f"{path}[{index}].name", name) if name else [required(f"{path}[{index}].name")]
        if not (entry.get("resourceClaimName") or entry.get("resourceClaimTemplateName")):
            causes.append(wrong(f"{path}[{index}]", "", _ONE_OF))
    return causes


def check_group_update(new: Obj, old: Obj) -> list[Cause]:
    """Claims cannot be changed once the group is there."""
    wanted = dig(new, "spec", "resourceClaims")
    if wanted == dig(old, "spec", "resourceClaims"):
        return []
    return [immutable("spec.resourceClaims", wanted)]


def check_group_status(new: Obj, old: Obj) -> list[Cause]:
    """Statuses are those of entries."""
    names = {entry.get("name") for entry in dicts(dig(old, "spec", "resourceClaims"))}
    return [
        wrong(f"status.resourceClaimStatuses[{index}].name", status.get("name"), _UNMATCHED)
        for index, status in enumerate(dicts(dig(new, "status", "resourceClaimStatuses")))
        if status.get("name") not in names
    ]
