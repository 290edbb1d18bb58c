"""When the ordinary course of things takes too long to be one.

A claim or template that a pod names and we do not know yet is nothing to tell of: feeds of two kinds overtake each other, and people
apply pods before what they use. If it stays unknown, the pod is told. Placement says how long is too long. Pure but for the clock; used by
`allocation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.placement import Wait

if TYPE_CHECKING:
    from dra_operator.placement import Classification

    from .clock import Clock


MARGIN = 0.05
"""Seconds that a timer may be early. Arbitrary, far more than it is."""


class Patience:
    """Remembers since when pods have been in a state that should not last."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: dict[str, tuple[str, float]] = {}

    def judge(self, pod_uid: str, answer: Classification) -> tuple[Classification, float]:
        """The answer, no longer quiet if that has lasted too long; and in how many seconds to ask again for its sake (0: no more than
        before).
        """
        if not (isinstance(answer, Wait) and answer.quiet and answer.told_after):
            self.forget(pod_uid)
            return answer, 0.0
        now = self._clock.monotonic()
        reason, since = self._since.get(pod_uid, ("", now))
        if reason != answer.reason:
            self._since[pod_uid] = answer.reason, now
            return answer, answer.told_after + MARGIN
        if now - since < answer.told_after:
            return answer, 0.0
        return Wait(answer.reason, answer.message, claim=answer.claim), 0.0

    def forget(self, pod_uid: str) -> None:
        """The pod is in another state, or gone."""
        self._since.pop(pod_uid, None)
