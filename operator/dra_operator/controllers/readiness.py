"""Whether the devices of a pod's claims have been made ready to be used, by the conditions that their drivers report (cp S-60…S-68, I-7).

A device may declare conditions that have to be true before a pod is bound to its node, such as being attached to it, and others that say
that this failed. The allocator copies both into the allocation; drivers report in `status.devices` of the claim. Judges claims, remembers for a
while which devices failed, and says all that in words. Used by `allocation`, which has the pod wait, or has other devices chosen. It must not
write to objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING, Final

from dra_operator.metrics import BINDING_WAIT, BINDINGS
from dra_operator.words import listed

from .clock import from_rfc3339, to_rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

    from dra_operator.metrics import Metrics
    from dra_operator.model import Condition, DeviceId, DeviceRequestAllocationResult, ResourceClaim

    from .clock import Clock

AVOIDED: Final = 120.0
"""Seconds for which a claim does not get a device again that could not be made ready for it. Arbitrary: long enough for the claim to be
served by another one if there is any, short enough for a fault that somebody mends."""

NAMED: Final = 4
"""Conditions that a message names: as many as a device may have (cp V-95)."""

PENDING_REASON: Final = "BindingConditionsPending"
FAILED_REASON: Final = "DeviceBindingFailed"
TIMEOUT_REASON: Final = "DeviceBindingTimeout"


class State(Enum):
    """How far the devices of some claims are."""

    READY = "success"
    PENDING = "pending"
    FAILED = "failed"
    TIMED_OUT = "timeout"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement of claims: that of the worst among them.

    Args:
        state: how far they are.
        claim: the claim to blame; None if all is ready.
        devices: those of its devices that failed, or are not ready yet.
        text: what is the matter; upstream's words where it has any (cp S-64).
        deadline: when the devices are given up; None if they are not.
    """

    state: State
    claim: ResourceClaim | None = None
    devices: tuple[DeviceId, ...] = ()
    text: str = ""
    deadline: datetime | None = None

    @property
    def reason(self) -> str:
        """The reason of the event that tells of it."""
        return FAILED_REASON if self.state is State.FAILED else TIMEOUT_REASON

    @property
    def is_lost(self) -> bool:
        """Whether nothing is to be hoped for from these devices any more."""
        return self.state in {State.FAILED, State.TIMED_OUT}


READY: Final = Verdict(State.READY)

_ORDER: Final = (State.FAILED, State.TIMED_OUT, State.PENDING)


def has_conditions(claim: ResourceClaim) -> bool:
    """Whether some device of the claim has to be made ready before a pod is bound."""
    allocation = claim.status.allocation
    return allocation is not None and any(result.binding_conditions for result in allocation.devices.results)


def judge(claim: ResourceClaim, timeout: float, now: datetime) -> Verdict:
    """How far one claim is (cp S-62, S-66).

    Failures of all its devices are looked at before readiness of any: upstream stops at the first device that is not ready, and learns of the
    failure of a later one only by the time-out.

    Args:
        claim: any claim; one that is not allocated, or whose devices declare nothing, is ready.
        timeout: seconds that its devices have from the allocation on.
        now: wall time.
    """
    allocation = claim.status.allocation
    if allocation is None or not has_conditions(claim):
        return READY
    results = [result for result in allocation.devices.results if result.binding_conditions]
    reported = {result.device_id: _conditions(claim, result.device_id) for result in results}
    for result in results:
        failure = _failure(result, reported[result.device_id])
        if failure is not None:
            return Verdict(State.FAILED, claim, (result.device_id,), _failed_text(claim, failure, result))
    waiting = {result.device_id: _missing(result, reported[result.device_id]) for result in results}
    waiting = {device: missing for device, missing in waiting.items() if missing}
    if not waiting:
        return READY
    devices, text = tuple(waiting), _waiting_text(claim, waiting)
    deadline = _deadline(allocation.allocation_timestamp, timeout)
    if deadline is not None and deadline < now:
        name = claim.metadata.name
        return Verdict(
            State.TIMED_OUT, claim, devices, f"device binding timeout: claim={name}: {text}", deadline
        )
    return Verdict(State.PENDING, claim, devices, text, deadline)


class Readiness:
    """Judges the claims of pods, and remembers devices that failed.

    Args:
        clock: wall time for deadlines, which stand in objects; monotonic time for what is remembered.
        timeout: seconds that devices have to become ready, from the allocation of their claim on (cp S-67).
        metrics: counters.
    """

    def __init__(self, clock: Clock, timeout: float, metrics: Metrics) -> None:
        self._clock = clock
        self._timeout = timeout
        self._metrics = metrics
        self._failed: dict[str, dict[DeviceId, float]] = {}
        self._counted: dict[str, str | None] = {}
        self._reminded: dict[str, datetime] = {}

    def judge(self, claims: Iterable[ResourceClaim]) -> Verdict:
        """How far the claims of a pod are together: one that failed tells more than one that waits."""
        now = self._clock.now()
        found = [judge(claim, self._timeout, now) for claim in claims]
        for state in _ORDER:
            verdicts = [verdict for verdict in found if verdict.state is state]
            if verdicts:
                return min(verdicts, key=lambda verdict: verdict.deadline or _never(now))
        return READY

    def pending_text(self, verdict: Verdict, node: str) -> str:
        """What a pod that waits is told: upstream's words first (cp S-63)."""
        end = (
            f". If it is not ready at {to_rfc3339(verdict.deadline)}, {self._timeout:g} s after its allocation, other devices are chosen"
            if verdict.deadline is not None
            else ""
        )
        return f"waiting for binding conditions for device on node {node}: {verdict.text}{end}"

    def remind(self, pod_uid: str, verdict: Verdict, again: Callable[[], None]) -> None:
        """Call back at the deadline of what a pod waits for: one timer a pod, however often it is looked at."""
        if self._reminded.get(pod_uid) == verdict.deadline or verdict.deadline is None:
            return
        self._reminded[pod_uid] = verdict.deadline
        left = (verdict.deadline - self._clock.now()).total_seconds()
        self._clock.call_later(max(0.0, left) + MARGIN, lambda: self._remind(pod_uid, again))

    def count(self, claims: Iterable[ResourceClaim], state: State) -> None:
        """Count how the waiting for claims ended, once an allocation: several pods may share it."""
        for claim in filter(has_conditions, claims):
            allocation = claim.status.allocation
            assert allocation is not None
            stamp = allocation.allocation_timestamp
            if self._counted.get(claim.metadata.uid, "") == stamp:
                continue
            self._counted[claim.metadata.uid] = stamp
            self._metrics.count(BINDINGS, state.value)
            if stamp is not None:
                waited = (self._clock.now() - from_rfc3339(stamp)).total_seconds()
                self._metrics.observe(BINDING_WAIT, max(0.0, waited), state.value)

    def avoid(self, verdict: Verdict, again: Callable[[], None]) -> None:
        """Keep the devices that failed from their claim for a while; then call back, as they may serve it again."""
        if verdict.claim is None:
            return
        if self.avoided([verdict.claim]) >= set(verdict.devices):
            return
        until = self._clock.monotonic() + AVOIDED
        failed = self._failed.setdefault(verdict.claim.metadata.uid, {})
        failed.update(dict.fromkeys(verdict.devices, until))
        self._clock.call_later(AVOIDED + MARGIN, again)

    def avoided(self, claims: Iterable[ResourceClaim]) -> frozenset[DeviceId]:
        """Devices that have failed one of these claims lately."""
        now = self._clock.monotonic()
        found: set[DeviceId] = set()
        for claim in claims:
            failed = self._failed.get(claim.metadata.uid, {})
            found.update(device for device, until in failed.items() if until > now)
        return frozenset(found)

    def _remind(self, pod_uid: str, again: Callable[[], None]) -> None:
        self._reminded.pop(pod_uid, None)  # after a step of the wall clock the deadline may still be ahead
        again()

    def forget_pod(self, pod_uid: str) -> None:
        """The pod is gone or done."""
        self._reminded.pop(pod_uid, None)

    def forget(self, claim_uid: str) -> None:
        """The claim is gone."""
        self._failed.pop(claim_uid, None)
        self._counted.pop(claim_uid, None)


MARGIN: Final = 0.05
"""Seconds that a timer may be early. Arbitrary, far more than it is."""


def lost_text(verdict: Verdict) -> str:
    """What a pod is told whose devices are given back."""
    return (
        f"{verdict.text}. The pod's devices are given back and chosen anew; this claim does not get {_names(verdict.devices)} for {AVOIDED:g} s: "
        "see the driver and the conditions of the device in status.devices of the claim"
    )


def bound_text(verdict: Verdict, node: str) -> str:
    """What a pod is told that is on its node already: no time-out helps it."""
    return (
        f"{verdict.text}. The pod is bound to node {node} already: it starts when its driver has the device ready; if that does not come, see the "
        "driver and the conditions of the device in status.devices of the claim, or delete the pod, and its claim"
    )


def stuck_text(verdict: Verdict, *, is_ours: bool) -> str:
    """What a pod is told whose claim has lost its devices, and cannot be given others."""
    assert verdict.claim is not None
    why = (
        "pods that run or are on their way use the claim"
        if is_ours
        else "it was allocated by somebody else, kube-scheduler as a rule"
    )
    return (
        f"{verdict.text}. ResourceClaim {verdict.claim.key} keeps its devices, as {why}: mend the device, or end the other pods of the claim, "
        "or recreate this pod with a claim of its own"
    )


def _conditions(claim: ResourceClaim, device: DeviceId) -> dict[str, Condition] | None:
    """What its driver reports of a device, whichever share of it; None if nothing (cp S-61)."""
    for entry in claim.status.devices:
        if (entry.driver, entry.pool, entry.device) == tuple(device):
            return {condition.type: condition for condition in entry.conditions}
    return None


def _failure(
    result: DeviceRequestAllocationResult, reported: Mapping[str, Condition] | None
) -> Condition | None:
    known = reported or {}
    found = (known.get(kind) for kind in result.binding_failure_conditions)
    return next((condition for condition in found if condition and condition.status == "True"), None)


def _missing(
    result: DeviceRequestAllocationResult, reported: Mapping[str, Condition] | None
) -> tuple[str, ...]:
    """Conditions that are not true yet; all of them while nothing is reported."""
    known = reported or {}
    return tuple(
        kind for kind in result.binding_conditions if kind not in known or known[kind].status != "True"
    )


def _deadline(stamp: str | None, timeout: float) -> datetime | None:
    """None without a time, or with one that cannot be read or reckoned with: such a claim never times out (cp S-66)."""
    try:
        return None if stamp is None else from_rfc3339(stamp) + timedelta(seconds=timeout)
    except (ValueError, OverflowError):
        return None


def _failed_text(claim: ResourceClaim, condition: Condition, result: DeviceRequestAllocationResult) -> str:
    return (
        f'device binding failed: claim={claim.metadata.name}, reason={condition.reason}, message="{condition.message}": device '
        f"{result.device_id} has the condition {condition.type}"
    )


def _waiting_text(claim: ResourceClaim, waiting: Mapping[DeviceId, tuple[str, ...]]) -> str:
    parts = [f"device {device} lacks {listed(missing, NAMED)}" for device, missing in waiting.items()]
    return f"ResourceClaim {claim.key}: {listed(parts, NAMED)}"


def _names(devices: Iterable[DeviceId]) -> str:
    return listed([str(device) for device in devices], NAMED)


def _never(now: datetime) -> datetime:
    """Later than any deadline that matters."""
    return now + timedelta(days=36_500)
