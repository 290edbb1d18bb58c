"""What a log line names besides its text: the fields that every line may have, those of the pass under way, and what no line may hold.

    logger.info("devices allocated", extra=fields(pod=pod.key, node=plan.node))

`app.logs` writes them; everything else only adds to them. A worker opens a `scope` for each pass; what the pass `note`s is on all lines
that are logged in it, also by code that knows nothing of pods. Reads no clock, does no I/O.
"""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    import logging
    from collections.abc import Iterator

Field: TypeAlias = str | int | float

FIELDS: Final = {
    "controller": "the part of the operator whose pass it was",
    "pod": "namespace/name of the pod",
    "claim": "namespace/name of a ResourceClaim",
    "claims": "namespace/name of several, with commas",
    "policy": "name of the AllocationPolicy",
    "object": "kind and namespace/name of another object",
    "node": "the node that the pod is pinned to",
    "devices": "how many devices the pod got now",
    "reason": "the reason of the event on the pod",
    "decision": "one attempt to serve a pod: the beginning of the pod's uid, and the number of the attempt since the operator started",
    "nodes": "nodes that were considered",
    "steps": "steps of the search for devices",
    "seconds": "how long it took",
    "retry": "seconds until it is tried again",
}
"""Name and meaning, in the order in which they are written. A name must not be an attribute of `logging.LogRecord`."""

HIDDEN: Final = "(hidden)"
"""Written in the place of a secret."""

_scope: ContextVar[dict[str, Field] | None] = ContextVar("log_scope", default=None)

_secrets: deque[str] = deque(maxlen=8)
"""Credentials in use and the last ones before them."""

BEARER: Final = re.compile(r"(?i)\b(bearer\s+)[\w.~+/=-]{8,}|\beyJ[\w-]+\.[\w-]+\.[\w-]+")
"""Tokens that nobody has told us of: those of an `Authorization` header, and JSON web tokens."""

PARAMETERS: Final = re.compile(r'(?s)(\bparameters\b[^{"]*)(?:\{.*\}|"(?:[^"\\]|\\.)*"?)')
"""What a text quotes after that word: a driver's opaque parameters may hold what its users keep to themselves."""

FIGURES: Final = re.compile(r"\d+")

SHORTEST_SECRET: Final = 8
"""Characters; hiding shorter ones would hide half of the log."""


def fields(**values: Field | None) -> dict[str, Field]:
    """The `extra` of a log call. Empty values are left out; 0 is not empty.

    Raises:
        KeyError: a name that is not in `FIELDS`.
    """
    if unknown := values.keys() - FIELDS.keys():
        raise KeyError(f"no log fields: {', '.join(sorted(unknown))}")
    return {name: value for name, value in values.items() if value not in {None, ""}}


@contextmanager
def scope(**values: Field | None) -> Iterator[None]:
    """All lines logged inside have these fields, those of the scope around, and those that are noted inside."""
    token = _scope.set({**(_scope.get() or {}), **fields(**values)})
    try:
        yield
    finally:
        _scope.reset(token)


def note(**values: Field | None) -> None:
    """Add fields to the scope around; outside of any, nothing happens."""
    around = _scope.get()
    if around is not None:
        around.update(fields(**values))


def fields_of(record: logging.LogRecord) -> dict[str, Field]:
    """The fields of a record, in the order of `FIELDS`; what the call names wins over the scope."""
    found = {**(_scope.get() or {}), **record.__dict__}
    return {name: found[name] for name in FIELDS if name in found}


class News:
    """What has been told of whom, so that one happening is one line however often it is tried again.

    Args:
        size: things remembered; those told of longest ago are forgotten first.
    """

    def __init__(self, size: int = 10_000) -> None:
        self._size = size
        self._told: OrderedDict[str, str] = OrderedDict()

    def is_new(self, key: str, text: str) -> bool:
        """Whether the last word about a key was another one; figures in it (versions, delays) do not count. It is the last word now."""
        word = FIGURES.sub("#", text)
        known = self._told.pop(key, None)
        self._told[key] = word
        while len(self._told) > self._size:
            self._told.popitem(last=False)
        return known != word

    def forget(self, key: str) -> bool:
        """All is well with a key. Returns: whether there had been a word about it."""
        return self._told.pop(key, None) is not None


def hide(secret: str) -> None:
    """From now on no line shows it; the eight last ones are kept in mind."""
    if len(secret) >= SHORTEST_SECRET and secret not in _secrets:
        _secrets.append(secret)


def without_secrets(text: str) -> str:
    """A text with every secret in it replaced."""
    for secret in _secrets:
        if secret in text:
            text = text.replace(secret, HIDDEN)
    return BEARER.sub(lambda found: (found[1] or "") + HIDDEN, text)


def fit_to_tell(text: str) -> str:
    """The words of others, an API server's or a webhook's, without what must not get into logs, events and /readyz."""
    return PARAMETERS.sub(rf"\1{HIDDEN}", without_secrets(text))
