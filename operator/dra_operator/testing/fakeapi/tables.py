"""Server-side printing: the Table form that kubectl get asks for.

Called by `http`. Columns of built-in kinds stand in one table here; those of custom kinds come from their definition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from dra_operator.testing.fakeapi.jsonpath import found
from dra_operator.testing.fakeapi.kinds import DRA, Kind
from dra_operator.testing.fakeapi.objects import Obj, dicts, dig, encoded, meta, parsed_time

if TYPE_CHECKING:
    from dra_operator.testing.fakeapi.store import Record
    from dra_operator.testing.fakeapi.watching import WatchEvent

Cell = Callable[[Obj, datetime], Any]
Column = tuple[str, str, int, Cell]
"""Name, type, priority (1 = only with -o wide), value."""

_NONE = "<none>"


def wants_table(accept: str) -> bool:
    """Whether a client prefers a Table."""
    return "as=Table" in accept.partition(",")[0]


def table(
    kind: Kind,
    records: Sequence[Record],
    metadata: Mapping[str, object],
    query: Mapping[str, str],
    now: datetime,
) -> Obj:
    """The Table of some objects."""
    columns = _columns(kind)
    body: Obj = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": dict(metadata)}
    body["columnDefinitions"] = [_definition(column) for column in columns]
    body["rows"] = [_row(columns, record.obj, query, now) for record in records]
    return body


def watch_line(
    kind: Kind, event: WatchEvent, query: Mapping[str, str], now: datetime, *, first: bool
) -> bytes:
    """One watch event whose object is a Table; only the first carries the columns."""
    if event.type in ("ERROR", "BOOKMARK"):
        return event.line()
    columns = _columns(kind)
    version = meta(event.shown).get("resourceVersion", "")
    body: Obj = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": version}}
    body["columnDefinitions"] = [_definition(column) for column in columns] if first else None
    body["rows"] = [_row(columns, event.shown, query, now)]
    return encoded({"type": event.type, "object": body}) + b"\n"


def _definition(column: Column) -> Obj:
    name, of_type, priority, _ = column
    form = "name" if name == "Name" else ""
    return {"name": name, "type": of_type, "format": form, "description": "", "priority": priority}


def _row(columns: Sequence[Column], obj: Obj, query: Mapping[str, str], now: datetime) -> Obj:
    include = query.get("includeObject", "Metadata")
    shown: Obj | None = None
    if include == "Object":
        shown = obj
    elif include == "Metadata":
        shown = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
    return {"cells": [cell(obj, now) for _, _, _, cell in columns], "object": shown}


def _columns(kind: Kind) -> Sequence[Column]:
    if kind.custom:
        return [_NAME, *(_custom(column) for column in kind.columns)] if kind.columns else [_NAME, _AGE]
    return _TABLE.get((kind.group, kind.kind), (_NAME, _AGE))


def _custom(column: Obj) -> Column:
    path, of_type = column["jsonPath"], column.get("type", "string")

    def cell(obj: Obj, now: datetime) -> Any:
        values = found(obj, path)
        if not values:
            return None if of_type != "date" else "<unknown>"
        if of_type == "date":
            return _since(values[0], now)
        return (
            values[0]
            if of_type in ("integer", "number", "boolean")
            else ",".join(_plain(value) for value in values)
        )

    return column["name"], of_type, column.get("priority", 0), cell


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else encoded(value).decode()


def _since(text: Any, now: datetime) -> str:
    """A duration as kubectl prints ages."""
    if not text:
        return "<unknown>"
    seconds = max(int((now - parsed_time(text)).total_seconds()), 0)
    if seconds < 120:
        return f"{seconds}s"
    minutes = seconds // 60
    if minutes < 10:
        return f"{minutes}m{seconds % 60}s" if seconds % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    hours = minutes // 60
    return f"{hours}h" if hours < 48 else f"{hours // 24}d"


def _at(*path: str, default: Any = "") -> Cell:
    def cell(obj: Obj, _now: datetime) -> Any:
        value = dig(obj, *path)
        return default if value is None else value

    return cell


def _age_of(*path: str) -> Cell:
    return lambda obj, now: _since(dig(obj, *path), now)


def _count(field: str) -> Cell:
    return lambda obj, _now: len(obj.get(field) or {})


_NAME: Column = ("Name", "string", 0, _at("metadata", "name"))
_AGE: Column = ("Age", "string", 0, _age_of("metadata", "creationTimestamp"))


def _pod_ready(obj: Obj, _now: datetime) -> str:
    total = len(list(dicts(dig(obj, "spec", "containers"))))
    ready = sum(bool(status.get("ready")) for status in dicts(dig(obj, "status", "containerStatuses")))
    return f"{ready}/{total}"


def _pod_status(obj: Obj, _now: datetime) -> str:
    if "deletionTimestamp" in meta(obj):
        return "Terminating"
    if any(
        condition.get("reason") == "SchedulingGated" for condition in dicts(dig(obj, "status", "conditions"))
    ):
        return "SchedulingGated"
    return str(dig(obj, "status", "reason") or dig(obj, "status", "phase") or "Unknown")


def _pod_restarts(obj: Obj, _now: datetime) -> str:
    return str(
        sum(status.get("restartCount", 0) for status in dicts(dig(obj, "status", "containerStatuses")))
    )


def _claim_state(obj: Obj, _now: datetime) -> str:
    states = []
    if "deletionTimestamp" in meta(obj):
        states.append("deleted")
    if dig(obj, "status", "allocation") is None:
        if "deletionTimestamp" not in meta(obj):
            states.append("pending")
    else:
        states.append("allocated")
        states.append("reserved" if dig(obj, "status", "reservedFor") else "")
    return ",".join(state for state in states if state)


def _node_status(obj: Obj, _now: datetime) -> str:
    ready = [
        item.get("status") for item in dicts(dig(obj, "status", "conditions")) if item.get("type") == "Ready"
    ]
    state = "Unknown" if not ready else "Ready" if ready[0] == "True" else "NotReady"
    return f"{state},SchedulingDisabled" if dig(obj, "spec", "unschedulable") else state


def _event_object(obj: Obj, _now: datetime) -> str:
    about = obj.get("involvedObject") or obj.get("regarding") or {}
    return f"{about.get('kind', '').lower()}/{about.get('name', '')}"


def _event_seen(obj: Obj, now: datetime) -> str:
    series = dig(obj, "series", "lastObservedTime")
    moment = series or obj.get("lastTimestamp") or obj.get("deprecatedLastTimestamp") or obj.get("eventTime")
    return _since(moment or meta(obj).get("creationTimestamp"), now)


def _event_text(obj: Obj, _now: datetime) -> str:
    return str(obj.get("message") or obj.get("note") or "").strip()


_POD = (
    _NAME,
    ("Ready", "string", 0, _pod_ready),
    ("Status", "string", 0, _pod_status),
    ("Restarts", "string", 0, _pod_restarts),
    _AGE,
    ("IP", "string", 1, _at("status", "podIP", default=_NONE)),
    ("Node", "string", 1, _at("spec", "nodeName", default=_NONE)),
    ("Nominated Node", "string", 1, _at("status", "nominatedNodeName", default=_NONE)),
    ("Readiness Gates", "string", 1, _at("none", default=_NONE)),
)
_EVENT = (
    ("Last Seen", "string", 0, _event_seen),
    ("Type", "string", 0, _at("type")),
    ("Reason", "string", 0, _at("reason")),
    ("Object", "string", 0, _event_object),
    ("Message", "string", 0, _event_text),
    ("Name", "string", 1, _at("metadata", "name")),
)
_TABLE: Mapping[tuple[str, str], Sequence[Column]] = {
    ("", "Pod"): _POD,
    ("", "Event"): _EVENT,
    ("events.k8s.io", "Event"): _EVENT,
    ("", "Node"): (
        _NAME,
        ("Status", "string", 0, _node_status),
        ("Roles", "string", 0, _at("none", default=_NONE)),
        _AGE,
        ("Version", "string", 0, _at("status", "nodeInfo", "kubeletVersion")),
    ),
    ("", "Namespace"): (_NAME, ("Status", "string", 0, _at("status", "phase")), _AGE),
    ("", "ConfigMap"): (_NAME, ("Data", "string", 0, _count("data")), _AGE),
    ("", "Secret"): (_NAME, ("Type", "string", 0, _at("type")), ("Data", "string", 0, _count("data")), _AGE),
    (DRA, "ResourceClaim"): (_NAME, ("State", "string", 0, _claim_state), _AGE),
    (DRA, "ResourceSlice"): (
        _NAME,
        ("Node", "string", 0, _at("spec", "nodeName", default="<unset>")),
        ("Driver", "string", 0, _at("spec", "driver")),
        ("Pool", "string", 0, _at("spec", "pool", "name")),
        _AGE,
    ),
    ("coordination.k8s.io", "Lease"): (_NAME, ("Holder", "string", 0, _at("spec", "holderIdentity")), _AGE),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): (
        _NAME,
        ("Created At", "date", 0, _at("metadata", "creationTimestamp")),
    ),
}
