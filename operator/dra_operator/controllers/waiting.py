"""The pods that cannot be served now, each with its reason, and the claims that wait with them: for waking them, and for the metrics.

Used by `allocation` alone. It must not decide who waits.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from .clock import Clock


@dataclass(frozen=True, slots=True)
class _Waiter:
    """Why a pod waits.

    Attributes:
        reason: one word in CamelCase.
        state: whether there is anything to wait for, and whether the user is told; another one is news.
        claims: keys of its claims that are not allocated.
        since: when it came to wait, in seconds of a clock that only goes on.
        minds_neighbours: whether pods that come to nodes may help it.
    """

    reason: str
    state: str
    claims: tuple[str, ...]
    since: float
    minds_neighbours: bool = False


class Waiting:
    """Waiting pods by key."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pods: dict[str, _Waiter] = {}

    def __len__(self) -> int:
        """How many pods wait."""
        return len(self._pods)

    def __contains__(self, pod_key: str) -> bool:
        """Whether that pod is known to wait."""
        return pod_key in self._pods

    def __iter__(self) -> Iterator[str]:
        """The keys, in the order in which the pods came."""
        return iter(self._pods)

    def put(self, pod_key: str, reason: str, state: str, claims: Iterable[str]) -> bool:
        """Note that a pod waits. Returns: whether that is news, by reason and state."""
        known = self._pods.get(pod_key)
        since = self._clock.monotonic() if known is None else known.since
        self._pods[pod_key] = _Waiter(reason, state, tuple(claims), since)
        return known is None or (known.reason, known.state) != (reason, state)

    def mind_neighbours(self, pod_key: str) -> None:
        """Note that pods which come to nodes may help a pod that waits."""
        self._pods[pod_key] = replace(self._pods[pod_key], minds_neighbours=True)

    def minding_neighbours(self) -> tuple[str, ...]:
        """Keys of the pods that pods which come to nodes may help."""
        return tuple(key for key, waiter in self._pods.items() if waiter.minds_neighbours)

    def drop(self, pod_key: str) -> None:
        """The pod waits no longer; nothing happens if it did not."""
        self._pods.pop(pod_key, None)

    def pods_by_reason(self) -> Mapping[str, int]:
        """How many pods wait for each reason."""
        return Counter(waiter.reason for waiter in self._pods.values())

    def longest_by_reason(self) -> Mapping[str, float]:
        """Seconds since the first of those that wait for each reason came to wait, for whichever reason then."""
        since: dict[str, float] = {}
        for waiter in self._pods.values():
            since[waiter.reason] = min(waiter.since, since.get(waiter.reason, waiter.since))
        now = self._clock.monotonic()
        return {reason: now - first for reason, first in since.items()}

    def claims_by_reason(self) -> Mapping[str, int]:
        """How many unallocated claims wait for each reason; one that several pods share counts once, for the last that came to wait."""
        reasons = {claim: waiter.reason for waiter in self._pods.values() for claim in waiter.claims}
        return Counter(reasons.values())
