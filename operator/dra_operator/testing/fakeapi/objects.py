"""The vocabulary of the embedded API server: raw objects and the few questions everybody asks of them.

Called by all modules of `fakeapi`. Objects are plain JSON dictionaries, and whatever is in the store is never changed in
place: a writer builds a new dictionary (`copied`, `with_metadata`). This module knows neither store nor HTTP.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NewType

import msgspec

from dra_operator.validation.objects import Obj, dicts, dig

__all__ = [
    "Clock", "Key", "Obj", "Raw", "Resource", "controller_of", "copied", "decoded", "dicts", "dig", "encoded", "key_of", "meta",
    "micro_timestamp", "parsed_time", "timestamp", "utc_now", "with_metadata",
]  # fmt: skip

Resource = tuple[str, str]
"""Group and plural: where objects are stored, whatever version they are written in."""

Key = tuple[str, str]
"""Namespace (empty for cluster-scoped) and name."""

Clock = Callable[[], datetime]

Raw = NewType("Raw", bytes)
"""An object as JSON text."""

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()


def encoded(value: object) -> Raw:
    """The JSON text of `value`."""
    return Raw(_encoder.encode(value))


def decoded(raw: bytes) -> Any:
    """The value of a JSON text.

    Raises:
        msgspec.DecodeError: the text is no JSON.
    """
    return _decoder.decode(raw)


def copied(obj: Obj) -> Obj:
    """A deep copy, several times cheaper than `copy.deepcopy` on JSON-like values."""
    result = _copy(obj)
    assert isinstance(result, dict)
    return result


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value


def meta(obj: Obj) -> Obj:
    """The metadata of `obj`; an empty dictionary if it has none."""
    found = obj.get("metadata")
    return found if isinstance(found, dict) else {}


def key_of(obj: Obj) -> Key:
    """Namespace and name of `obj`."""
    metadata = meta(obj)
    return metadata.get("namespace") or "", metadata.get("name") or ""


def with_metadata(obj: Obj, **changes: Any) -> Obj:
    """A shallow copy of `obj` whose metadata has `changes`; a value of None removes the field."""
    metadata = {**meta(obj), **changes}
    return {**obj, "metadata": {name: value for name, value in metadata.items() if value is not None}}


def controller_of(obj: Obj) -> Obj | None:
    """The owner reference with `controller: true`, if there is one."""
    for reference in meta(obj).get("ownerReferences") or ():
        if reference.get("controller"):
            return dict(reference)
    return None


def timestamp(moment: datetime) -> str:
    """RFC 3339 in whole seconds, as metav1.Time prints it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp(moment: datetime) -> str:
    """RFC 3339 in microseconds, as metav1.MicroTime prints it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parsed_time(text: str) -> datetime:
    """The moment that `timestamp` or `micro_timestamp` printed."""
    return datetime.fromisoformat(text)


def utc_now() -> datetime:
    """The clock that a server uses if it is given no other."""
    return datetime.now(UTC)
