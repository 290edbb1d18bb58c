"""The condition `PodScheduled` of pods that name us as their scheduler: it says why they wait, as every scheduler says it.

`kubectl describe`, cluster autoscalers and people read it. Written only when it changes, and no more often than events: figures that change
are no news. The binding itself sets it to True, which the API server does. Used by `allocation` alone; it must not decide who waits.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from .access import STRATEGIC
from .clock import to_rfc3339

if TYPE_CHECKING:
    from dra_operator.model import Condition, Pod

    from .access import Access
    from .clock import Clock

POD: Final = "Pod"
TYPE: Final = "PodScheduled"

UNSCHEDULABLE: Final = "Unschedulable"
"""No node can take the pod now. Cluster autoscalers look for this word: a new node may help."""

SCHEDULER_ERROR: Final = "SchedulerError"
"""The pod or a claim of it cannot be served as it is written: no node helps."""

FIGURES_SECONDS: Final = 30.0
"""How often changed figures are written at most; as for events."""

WORDS_SECONDS: Final = 2.0
"""How often anything is written at most for one pod. Arbitrary: people do not read faster, and what comes and goes need not be shown."""

_FIGURES: Final = re.compile(r"\d+")


class PodScheduled:
    """Writes the condition."""

    def __init__(self, access: Access, clock: Clock) -> None:
        self._access = access
        self._clock = clock
        self._written: dict[str, float] = {}

    async def tell(self, pod: Pod, reason: str, message: str) -> float:
        """Say why a pod waits, if that is not what it says already.

        Args:
            pod: as the model knows it; not bound, not gated.
            reason: `UNSCHEDULABLE` or `SCHEDULER_ERROR`.
            message: as in the event.

        Returns: seconds after which to try again, as it is too early to write that now; else 0.

        Raises:
            ApiError: it could not be written.
        """
        known = condition_of(pod)
        if known is not None and (known.status, known.reason, known.message) == ("False", reason, message):
            return 0.0
        now = self._clock.monotonic()
        left = self._written.get(pod.uid, -FIGURES_SECONDS) + _pause(known, reason, message) - now
        if left > 0:
            return left
        body = {"status": {"conditions": [self._condition(known, reason, message)]}}
        await self._access.patch(POD, pod, body, subresource="status", content_type=STRATEGIC)
        self._written[pod.uid] = now
        return 0.0

    def forget(self, pod_uid: str) -> None:
        """The pod is gone, done or bound."""
        self._written.pop(pod_uid, None)

    def _condition(self, known: Condition | None, reason: str, message: str) -> dict[str, Any]:
        """The time is that of the last change of the status, which stays False."""
        since = known.last_transition_time if known is not None and known.status == "False" else None
        return {
            "type": TYPE,
            "status": "False",
            "reason": reason,
            "message": message,
            "lastTransitionTime": since or to_rfc3339(self._clock.now()),
        }


def condition_of(pod: Pod) -> Condition | None:
    """What the pod says of its scheduling so far."""
    return next((found for found in pod.status.conditions if found.type == TYPE), None)


def _pause(known: Condition | None, reason: str, message: str) -> float:
    """Seconds that have to be between the last write and one of these words."""
    if known is None or known.reason != reason:
        return WORDS_SECONDS
    same = _FIGURES.sub("0", known.message) == _FIGURES.sub("0", message)
    return FIGURES_SECONDS if same else WORDS_SECONDS
