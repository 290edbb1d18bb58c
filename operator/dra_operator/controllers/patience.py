"""When the ordinary course of things takes too long to be one.

A generated claim that its pod knows and we do not yet is nothing to tell of: feeds of two kinds overtake each other. If it stays
unknown, somebody has deleted it, and kube-controller-manager makes no other before it has another reason to look at the pod. Pure but
for the clock; used by `allocation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.placement import CLAIM_MISSING, Wait

if TYPE_CHECKING:
    from dra_operator.placement import Classification

    from .clock import Clock

LAG = 5.0
"""Seconds for which a claim may be unknown without a word. Arbitrary: feeds are apart by less than one."""


class Patience:
    """Remembers since when pods have been in a state that should not last."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: dict[str, float] = {}

    def judge(self, pod_uid: str, answer: Classification) -> tuple[Classification, float]:
        """The answer, no longer quiet if that has lasted too long; and in how many seconds to ask again for its sake (0: never)."""
        if not (isinstance(answer, Wait) and answer.reason == CLAIM_MISSING):
            self.forget(pod_uid)
            return answer, 0.0
        now = self._clock.monotonic()
        left = self._since.setdefault(pod_uid, now) + LAG - now
        if left > 0:
            return answer, left
        return Wait(answer.reason, answer.message), 0.0

    def forget(self, pod_uid: str) -> None:
        """The pod is in another state, or gone."""
        self._since.pop(pod_uid, None)
