"""What every controller is given: the model, the way to the API server, time, counters, a voice. Built once, by `app`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from dra_operator.cluster import Cluster
    from dra_operator.features import Features
    from dra_operator.kube.eventlog import Metadata
    from dra_operator.metrics import Metrics

    from .access import Access
    from .clock import Clock


class Recorder(Protocol):
    """Tells users, by Events. Never waits; equal events fold. Reasons are those of `explain.EVENTS`, which knows their severity."""

    def record(self, kind: str, about: Metadata, reason: str, message: str) -> None:
        """Say something about an object."""
        ...

    def relieve(self, kind: str, about: Metadata, reason: str, message: str) -> None:
        """What was said about an object is over: say so if it was a warning, and say nothing any more of what was not written yet."""
        ...


@dataclass(frozen=True, slots=True)
class Parts:
    """The common arguments of controllers."""

    cluster: Cluster
    access: Access
    recorder: Recorder
    metrics: Metrics
    clock: Clock
    features: Features
