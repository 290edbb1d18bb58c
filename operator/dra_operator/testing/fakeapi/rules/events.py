"""Validation of events in both groups.

Called through `strategies`. An event in the new API has an eventTime, and then everything else is required, too; once written,
nothing of it changes but the series.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dra_operator.testing.fakeapi.objects import dig, meta
from dra_operator.validation.checks import immutable, label_key, required, wrong

if TYPE_CHECKING:
    from dra_operator.testing.fakeapi.objects import Obj
    from dra_operator.validation.causes import Cause

_CLUSTER_NAMESPACES = ("default", "kube-system")
"""Where events about cluster-scoped objects live."""

_CORE_NAMES = {"regarding": "involvedObject", "note": "message", "reportingController": "reportingComponent"}


def _field(event: Obj, core: str) -> tuple[str, Any]:
    """Name and value of a field that has two names; errors name the core one."""
    new = next((new for new, old in _CORE_NAMES.items() if old == core), core)
    return core, event.get(core, event.get(new))


def check_new_event(event: Obj) -> list[Cause]:
    """A new event of events.k8s.io."""
    causes = _check_namespace(event, exact=False)
    if not event.get("eventTime"):
        return [*causes, required("eventTime")]
    return [*causes, *_check_modern(event, "reportingController")]


def check_core_event(event: Obj) -> list[Cause]:
    """A new event of the core group; the strict rules hold only with an eventTime."""
    modern = bool(event.get("eventTime"))
    causes = _check_namespace(event, exact=not modern)
    return [*causes, *_check_modern(event, "reportingComponent")] if modern else causes


def check_event_update(new: Obj, old: Obj) -> list[Cause]:
    """Events with an eventTime are written once."""
    if not old.get("eventTime"):
        return []
    fixed = (
        "involvedObject",
        "reason",
        "message",
        "reportingComponent",
        "reportingInstance",
        "action",
        "type",
    )
    causes = []
    for core in fixed:
        name, value = _field(new, core)
        if value != _field(old, core)[1]:
            causes.append(immutable(name, value))
    return [*causes, *_check_series(new)]


def _check_namespace(event: Obj, *, exact: bool) -> list[Cause]:
    mine, theirs = (
        meta(event).get("namespace"),
        (_field(event, "involvedObject")[1] or {}).get("namespace", ""),
    )
    if not theirs and mine in _CLUSTER_NAMESPACES:
        return []
    if theirs == mine or (theirs and not exact):
        return []
    return [wrong("involvedObject.namespace", theirs, "does not match event.namespace")]


def _check_modern(event: Obj, shown: str) -> list[Cause]:
    _, controller = _field(event, "reportingComponent")
    causes = [required(shown)] if not controller else []
    causes += label_key(shown, controller or "")
    for field in ("reportingInstance", "action", "reason"):
        causes += _check_text(field, event.get(field))
    name, note = _field(event, "message")
    if len(note or "") > 1024:
        causes.append(wrong(name, "", "can have at most 1024 characters"))
    if event.get("type") not in ("Normal", "Warning"):
        causes.append(wrong("type", "", f"has invalid value: {event.get('type', '')}"))
    return [*causes, *_check_series(event)]


def _check_text(field: str, value: str | None) -> list[Cause]:
    if not value:
        return [required(field)]
    return [wrong(field, "", "can have at most 128 characters")] if len(value) > 128 else []


def _check_series(event: Obj) -> list[Cause]:
    if event.get("series") is None:
        return []
    causes = []
    if (dig(event, "series", "count") or 0) < 2:
        causes.append(wrong("series.count", "", "should be at least 2"))
    if not dig(event, "series", "lastObservedTime"):
        causes.append(required("series.lastObservedTime"))
    return causes
