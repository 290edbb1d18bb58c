"""What an operator does before its first decision: it makes sure that no write of the one before it comes late.

A resourceVersion guards one object, not one device. What our predecessor had sent when it died, was stopped, or lost the Lease may be served
after we have listed everything: a device would go to two claims, a pod to a node where its devices are not, an allocation would be taken from
a pod that we have sent on its way (architecture section 6, "Fencing"). So whatever such a write can be about is touched, and decisions are
made from the touched versions:

* claims that bear our mark or Kubernetes' finalizer, if they are not allocated (a late allocation) or a pod that needs them is not bound yet
  (a late roll-back). The mark is written first, so nothing else can be allocated by a late write;
* pods that wait at our gate, or for our binding, and have a claim that is marked or allocated (a late pin or binding);
* our taint rules (a late deletion, after the policy was changed back).

The cost is what was in flight, not all that waits. Releases of pods need no touch: they take no device, and nothing is taken back from a pod
before it has been fenced. Called once, by `app`, with the model fresh.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import TYPE_CHECKING

from dra_operator.errors import (
    ApiConflict,
    ApiError,
    ApiNotFound,
    ApiThrottled,
    ApiUnavailable,
    InvalidObject,
)
from dra_operator.kube.timing import Backoff
from dra_operator.logfields import News, fields
from dra_operator.model import GATE
from dra_operator.model.marks import EPOCH, has_finalizer, is_marked, is_ours

from .commit import CLAIM, POD
from .rules import RULE

if TYPE_CHECKING:
    from dra_operator.cluster import Cluster
    from dra_operator.logfields import Field
    from dra_operator.model import DeviceTaintRule, Pod, ResourceClaim

    from .access import Access

    Touched = ResourceClaim | Pod | DeviceTaintRule

logger = logging.getLogger(__name__)

REFUSALS = 10
"""Conflicts about an object that has not changed, after which it counts as one that cannot be touched: some 20 seconds."""


class Takeover:
    """Touches what a predecessor may be writing yet.

    Args:
        access: reads and writes.
        cluster: the model, synced.
        backoff: between tries while the server does not answer.
    """

    def __init__(self, access: Access, cluster: Cluster, backoff: Backoff | None = None) -> None:
        self._access = access
        self._cluster = cluster
        self._backoff = backoff or Backoff()
        self._news = News()
        self._refusals: Counter[str] = Counter()

    async def run(self) -> None:
        """Touch all of that; does not end before each object is known to be safe.

        Raises:
            ExceptionGroup: of NotLeading: we lead no longer.
        """
        claims = [claim for claim in self._cluster.claims.values() if self._may_be_written(claim)]
        pods = [pod for pod in self._cluster.pods.values() if self._may_be_sent_on(pod)]
        rules = [rule for rule in self._cluster.taint_rules.values() if is_ours(rule)]
        async with asyncio.TaskGroup() as group:
            for kind, objects in ((CLAIM, claims), (POD, pods), (RULE, rules)):
                for obj in objects:
                    group.create_task(self._touch(kind, obj), name=f"touch-{kind}-{obj.metadata.key}")
        if claims or pods:
            words = "touched %d claims and %d pods that an earlier operator may have been writing"
            logger.info(words, len(claims), len(pods))

    def _may_be_written(self, claim: ResourceClaim) -> bool:
        if not (is_marked(claim) or has_finalizer(claim)):
            return False
        return not claim.is_allocated or any(_is_unbound(pod) for pod in self._pods_of(claim))

    def _pods_of(self, claim: ResourceClaim) -> list[Pod]:
        """Those that name the claim, and those that it is reserved for."""
        consumers = (self._cluster.pod(entry.uid) for entry in claim.status.reserved_for)
        named = self._cluster.pods_of_claim(claim.key)
        return [*named, *(pod for pod in consumers if pod is not None)]

    def _may_be_sent_on(self, pod: Pod) -> bool:
        """Only what waits for us can be pinned or bound by us, and only once all its claims are allocated."""
        waits_for_us = GATE in pod.gate_names or pod.names_us
        if not (waits_for_us and _is_unbound(pod)):
            return False
        claims = (entry.claim for entry in self._cluster.claims_of_pod(pod))
        return any(claim is not None and (is_marked(claim) or claim.is_allocated) for claim in claims)

    async def _touch(self, kind: str, obj: Touched) -> None:
        failures = 0
        while not await self._touched(kind, obj):
            failures += 1
            await asyncio.sleep(self._backoff.delay(failures))

    async def _touched(self, kind: str, obj: Touched) -> bool:
        body = {"metadata": {"annotations": {EPOCH: obj.metadata.resource_version}}}
        try:
            await self._access.patch(kind, obj, body)
        except (ApiConflict, ApiNotFound) as error:
            if await self._is_known(kind, obj):
                return True
            self._refusals[obj.metadata.uid] += 1
            if self._refusals[obj.metadata.uid] < REFUSALS:
                return False
            self._give_up(kind, obj, error)
        except (ApiUnavailable, ApiThrottled) as error:
            is_new = self._news.is_new(f"{kind} {obj.metadata.key}", str(error))
            level = logging.WARNING if is_new else logging.DEBUG
            words = "touching an object before the first decision failed, and will be tried again: %s"
            logger.log(level, words, error, extra=_about(kind, obj))
            return False
        except ApiError as error:
            self._give_up(kind, obj, error)
        return True

    def _give_up(self, kind: str, obj: Touched, error: ApiError) -> None:
        """One object that the server does not want touched must not keep the operator from working."""
        words = "a write of an earlier operator to this object may come late, as it cannot be touched: %s"
        logger.warning(words, error, extra=_about(kind, obj))

    async def _is_known(self, kind: str, obj: Touched) -> bool:
        """It changed since our list, which fails a late write just as well, or was one: the model has to know, if it can be told.

        Not every conflict says so: admission may answer with one, and so may whatever stands between us and the server.
        """
        try:
            current = await self._access.fresh(kind, obj)
        except (ApiUnavailable, ApiThrottled):
            return False
        except (ApiError, InvalidObject) as error:
            words = "an object that changed while it was being touched cannot be read: %s"
            logger.warning(words, error, extra=_about(kind, obj))
            return True
        return current is None or current.metadata.resource_version != obj.metadata.resource_version


def _is_unbound(pod: Pod) -> bool:
    return not pod.is_done and not pod.spec.node_name


def _about(kind: str, obj: Touched) -> dict[str, Field]:
    """The fields of a line of the log."""
    key = obj.metadata.key
    return fields(claim=key) if kind == CLAIM else fields(object=f"{kind} {key}")
