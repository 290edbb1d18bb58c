"""What every controller is given: the model, the way to the API server, time, counters, a voice. Built once, by `app`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol

if TYPE_CHECKING:
    from dra_operator.cluster import Cluster
    from dra_operator.features import Features
    from dra_operator.metrics import Metrics
    from dra_operator.model import ObjectMeta

    from .access import Access
    from .clock import Clock

Severity = Literal["Normal", "Warning"]

NORMAL: Final = "Normal"
WARNING: Final = "Warning"


class Recorder(Protocol):
    """Tells users, by Events. Never waits and never fails; equal events fold."""

    def record(self, kind: str, about: ObjectMeta, severity: Severity, reason: str, message: str) -> None:
        """Say something about an object."""
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
