"""Events in the name of controllers, written by `kube.events`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.kube.events import EventWriter, Reference

if TYPE_CHECKING:
    from dra_operator.model import ObjectMeta

    from .parts import Severity


class EventRecorder:
    """Passes on to the event writer."""

    def __init__(self, events: EventWriter) -> None:
        self._events = events

    def record(self, kind: str, about: ObjectMeta, severity: Severity, reason: str, message: str) -> None:
        """Say something about an object."""
        self._events.emit(Reference.to(kind, about), severity, reason, message)
