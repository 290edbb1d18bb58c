"""What people hear of a pod that `allocation` serves or keeps waiting: events, the log, metrics, and the pod's status where we are its scheduler.

Used by `allocation` alone; it must not decide anything.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from dra_operator.cluster import claim_keys
from dra_operator.errors import ApiForbidden, ApiInvalid
from dra_operator.logfields import fields
from dra_operator.metrics import ALLOCATIONS, LATENCY, SERVED
from dra_operator.model import GATE, POD_CLAIM_NAME
from dra_operator.placement import unknown_requests
from dra_operator.words import listed

from .commit import CLAIM, POD
from .podscheduled import PodScheduled

if TYPE_CHECKING:
    from dra_operator.model import Pod
    from dra_operator.placement import Plan, Refuse, Wait

    from .parts import Parts

logger = logging.getLogger(__name__)

UNGATED = "UngatedConsumer"
"""Placement's reason for pods that share a claim with one past our gate."""

NAMED = 8
"""Devices that an event names; the others are counted."""

RELEASED = (
    "left to kube-scheduler: no claim of the pod asks for devices of a pool that an AllocationPolicy owns"
)


class Telling:
    """Tells of pods."""

    def __init__(self, parts: Parts) -> None:
        self._cluster = parts.cluster
        self._clock = parts.clock
        self._metrics = parts.metrics
        self._recorder = parts.recorder
        self._scheduled = PodScheduled(parts.access, parts.clock)
        self._seen: dict[str, float] = {}

    def seen(self, pod: Pod) -> None:
        """The pod needs us: its latency counts from the first time."""
        self._seen.setdefault(pod.uid, self._clock.monotonic())

    def forget(self, pod_uid: str) -> None:
        """The pod is gone or done."""
        self._seen.pop(pod_uid, None)
        self._scheduled.forget(pod_uid)

    def waits(self, pod: Pod, reason: str, message: str, *, news: str) -> None:
        """The pod cannot be served now.

        Args:
            pod: which.
            reason: one word in CamelCase.
            message: for the user; empty if there is nothing to tell.
            news: what to count it as; empty if that was counted and logged before.
        """
        if news:
            self._metrics.count(ALLOCATIONS, news)
        if message and news:
            logger.info("pod waits: %s", message, extra=fields(reason=reason))
        if message:
            self._recorder.record(POD, pod.metadata, reason, message)

    async def show(self, pod: Pod, reason: str, message: str) -> float:
        """Say it in the pod's status, too, where we are the pod's scheduler; at a gate, that is the API server's to say.

        Returns: seconds after which to try again, as it is too early to write that now; else 0.

        Raises:
            ApiError: it could not be written.
        """
        if not message or not pod.names_us or pod.gate_names or pod.spec.node_name:
            return 0.0
        return await self._scheduled.tell(pod, reason, message)

    def claim(self, answer: Wait | Refuse) -> None:
        """Tell the claim that somebody wrote, too; of a generated one, pod and template are what people look at."""
        claim = self._cluster.claims.get(answer.claim)
        if claim is not None and POD_CLAIM_NAME not in claim.metadata.annotations:
            self._recorder.record(CLAIM, claim.metadata, answer.reason, answer.message)

    def ungated(self, pod: Pod) -> None:
        """Tell the pods past our gate that their claim is ours (architecture, section 2): they would wait without a word."""
        for key in claim_keys(pod):
            for other in self._cluster.pods_of_claim(key):
                if other.is_done or other.is_held or other.spec.node_name:
                    continue
                text = (
                    f"spec.schedulingGates lack {GATE}: ResourceClaim {key} is shared with Pod {pod.key}, which waits for "
                    "dra-operator, and its devices are dra-operator's to give: recreate this pod with that gate, or give it a claim of "
                    "its own"
                )
                self._recorder.record(POD, other.metadata, UNGATED, text)

    def refused(self, pod: Pod, error: BaseException) -> None:
        """A write for the pod failed: refusals by the server concern the user, too."""
        if isinstance(error, ApiForbidden | ApiInvalid):
            message = (
                f"the API server refused a write for this pod, which is tried again: {error}. Grant the right, or mend the admission "
                "policy or webhook that these words name"
            )
            self._recorder.record(POD, pod.metadata, "WriteRefused", message)

    def served(self, pod: Pod, plan: Plan) -> None:
        """The pod got its devices and goes to its node."""
        self._metrics.count(SERVED, _way(pod))
        self._log(pod, plan)
        having = f" with {_named(plan)}" if pod.spec.resource_claims else ""
        self._ends(pod, "committed", "Allocated", f"the pod goes to node {plan.node}{having}")
        if pod.is_held and pod.names_us:
            assigned = f"Successfully assigned {pod.key} to {plan.node}"  # in kube-scheduler's words: tools look for them
            self._recorder.record(POD, pod.metadata, "Scheduled", assigned)
        strange = unknown_requests(pod, self._cluster.claims_of_pod(pod))
        if strange:
            self._recorder.record(POD, pod.metadata, "RequestUnknown", strange)

    def released(self, pod: Pod) -> None:
        """The pod is none of ours, and kube-scheduler has it."""
        self._ends(pod, "released", "Released", RELEASED)
        logger.info("pod released to kube-scheduler: no claim of it is ours")

    def _ends(self, pod: Pod, result: str, reason: str, message: str) -> None:
        """The pod waits no longer."""
        self._recorder.relieve(POD, pod.metadata, reason, message)
        self._metrics.count(ALLOCATIONS, result)
        self._scheduled.forget(pod.uid)
        since = self._seen.pop(pod.uid, None)
        if since is not None:
            self._metrics.observe(LATENCY, self._clock.monotonic() - since)

    def _log(self, pod: Pod, plan: Plan) -> None:
        """The one line about a pod that got its devices."""
        devices = _devices(plan)
        claims = [decision.claim.key for decision in plan.ours] + [claim.key for claim in plan.reserve]
        since = self._seen.get(pod.uid)
        facts = fields(
            node=plan.node,
            claims=", ".join(claims),
            devices=len(devices),
            seconds=None if since is None else self._clock.monotonic() - since,
        )
        logger.info("pod has its devices", extra=facts)
        logger.debug("devices allocated: %s", ", ".join(devices) or "none, its claims had them")


def _way(pod: Pod) -> str:
    """By which way a pod came that is served now."""
    if pod.spec.node_name:
        return "bound"
    return "gate" if pod.gate_names else "scheduler"


def _named(plan: Plan) -> str:
    return listed(_devices(plan), NAMED) or "the devices that its claims hold"


def _devices(plan: Plan) -> list[str]:
    results = [result for decision in plan.ours for result in decision.allocation.devices.results]
    return [str(result.device_id) for result in results]
