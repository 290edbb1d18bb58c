"""What decoding into typed structs and back does to an object: empty fields vanish, times take their form.

Called by `machinery` on whatever a writer sends, built-in kinds only; it is also the copy that the writer may then change. Without
it a list emptied by a patch would stay as `[]`, and fractions of seconds would survive, unlike on a real server.
"""

from __future__ import annotations

import re
from datetime import UTC
from typing import TYPE_CHECKING, Any

from dra_operator.testing.fakeapi.failures import bad_request
from dra_operator.testing.fakeapi.objects import copied, micro_timestamp, parsed_time

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dra_operator.testing.fakeapi.kinds import Kind
    from dra_operator.testing.fakeapi.objects import Obj

_MAPS = frozenset({
    "allocatable", "annotations", "attributes", "binaryData", "capacity", "data", "labels", "limits", "matchLabels",
    "nodeSelector", "stringData",
})  # fmt: skip
"""Maps that are left out when empty; an empty struct of any other name stays (`status: {}`)."""

_NULLABLE = frozenset({"lastProbeTime"})
_KEPT = frozenset({"nodeSelectorTerms"})
"""Lists that say something even when empty."""
_RAW = frozenset({"parameters", "managedFields"})
"""Opaque to the server: kept as they are."""

_SECONDS = frozenset({
    "allocationTimestamp", "creationTimestamp", "deletionTimestamp", "finishedAt", "firstTimestamp", "lastHeartbeatTime",
    "lastProbeTime", "lastTimestamp", "lastTransitionTime", "lastUpdateTime", "startTime", "startedAt", "timeAdded",
})  # fmt: skip
_MICROSECONDS = frozenset({"acquireTime", "eventTime", "lastObservedTime", "renewTime"})

_WHOLE = re.compile(r"(?P<whole>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?P<fraction>\.\d+)?(?P<zone>Z|[+-]\d\d:\d\d)")
_LAYOUTS = {True: "2006-01-02T15:04:05.000000Z07:00", False: "2006-01-02T15:04:05Z07:00"}


def tidied(kind: Kind, obj: Obj) -> Obj:
    """A deep copy of `obj` as the server would write it down again.

    Raises:
        StatusError: 400, a time does not parse.
    """
    if kind.custom:
        return copied(obj)
    return dict(_fields(kind, obj))


def _fields(kind: Kind, obj: Obj) -> Iterator[tuple[str, Any]]:
    for field, value in obj.items():
        if field in _RAW:
            yield field, value
        elif isinstance(value, str):
            yield field, _text(kind, field, value)
        else:
            tidy = _tidy(kind, value)
            if not _vanishes(field, tidy):
                yield field, tidy


def _tidy(kind: Kind, value: Any) -> Any:
    if isinstance(value, dict):
        return dict(_fields(kind, value))
    if isinstance(value, list):
        return [_tidy(kind, item) for item in value]
    return value


def _vanishes(field: str, value: Any) -> bool:
    if value is None:
        return field not in _NULLABLE
    if field in _KEPT:
        return False
    return value == [] or (value == {} and field in _MAPS)


def _text(kind: Kind, field: str, value: str) -> str:
    if field in _SECONDS:
        return _whole_seconds(kind, value)
    return _micro_seconds(kind, value) if field in _MICROSECONDS else value


def _whole_seconds(kind: Kind, value: str) -> str:
    match = _WHOLE.fullmatch(value)
    if match is None:
        raise bad_request(_unparsed(kind, value, micro=False))
    if match["zone"] == "Z":
        return f"{match['whole']}Z"
    return parsed_time(value).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _micro_seconds(kind: Kind, value: str) -> str:
    match = _WHOLE.fullmatch(value)
    if match is None or len(match["fraction"] or "") != len(".000000"):
        raise bad_request(_unparsed(kind, value, micro=True))
    return value if match["zone"] == "Z" else micro_timestamp(parsed_time(value))


def _unparsed(kind: Kind, value: str, *, micro: bool) -> str:
    match = _WHOLE.fullmatch(value)
    at = (value[match.end("whole") :], ".000000") if match else (value, "2006")
    why = f'parsing time "{value}" as "{_LAYOUTS[micro]}": cannot parse "{at[0]}" as "{at[1]}"'
    return f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {why}'
