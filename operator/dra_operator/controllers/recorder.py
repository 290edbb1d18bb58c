"""Events in the name of controllers, written by `kube.events`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.explain import severity_of
from dra_operator.kube.events import EventWriter, Reference

if TYPE_CHECKING:
    from dra_operator.kube.eventlog import Metadata


class EventRecorder:
    """Passes on to the event writer."""

    def __init__(self, events: EventWriter) -> None:
        self._events = events

    def record(self, kind: str, about: Metadata, reason: str, message: str) -> None:
        """Say something about an object."""
        self._events.emit(Reference.to(kind, about), severity_of(reason), reason, message)

    def relieve(self, kind: str, about: Metadata, reason: str, message: str) -> None:
        """What was said about an object is over: see `Recorder`."""
        reference = Reference.to(kind, about)
        if self._events.over(reference):
            self._events.emit(reference, severity_of(reason), reason, message)
