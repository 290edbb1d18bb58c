"""What an operator does before its first decision: it makes sure that no write of the one before it comes late.

A resourceVersion guards one object, not one device. An allocation that our predecessor had sent when it died may be served after we
have listed the claims: then its device would go to two claims (architecture section 6, "Fencing"). So every claim that such a write can
be about, marked and not allocated, is touched, and decisions are made from the touched versions. Releases of pods need no touch: they
take no device, and nothing is taken back from a pod before it has been fenced. Called once, by `app`.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from dra_operator.errors import ApiConflict, ApiError, ApiNotFound, ApiThrottled, ApiUnavailable
from dra_operator.kube.timing import Backoff
from dra_operator.logfields import News, fields

from .commit import CLAIM
from .names import EPOCH, is_marked

if TYPE_CHECKING:
    from dra_operator.cluster import Cluster
    from dra_operator.model import ResourceClaim

    from .access import Access

logger = logging.getLogger(__name__)


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

    async def run(self) -> None:
        """Touch all such claims; does not end before each is known to be safe."""
        claims = [
            claim for claim in self._cluster.claims.values() if is_marked(claim) and not claim.is_allocated
        ]
        async with asyncio.TaskGroup() as group:
            for claim in claims:
                group.create_task(self._touch(claim), name=f"touch-{claim.key}")
        if claims:
            logger.info("touched %d claims that an earlier operator may have been writing", len(claims))

    async def _touch(self, claim: ResourceClaim) -> None:
        failures = 0
        while not await self._touched(claim):
            failures += 1
            await asyncio.sleep(self._backoff.delay(failures))

    async def _touched(self, claim: ResourceClaim) -> bool:
        body = {"metadata": {"annotations": {EPOCH: claim.metadata.resource_version}}}
        try:
            await self._access.patch(CLAIM, claim, body)
        except (ApiConflict, ApiNotFound):
            return await self._is_known(claim)
        except (ApiUnavailable, ApiThrottled) as error:
            level = logging.WARNING if self._news.is_new(claim.key, str(error)) else logging.DEBUG
            words = "touching a claim before the first decision failed, and will be tried again: %s"
            logger.log(level, words, error, extra=fields(claim=claim.key))
            return False
        except ApiError as error:
            # One object that the server does not want touched must not keep the operator from working.
            words = "a write of an earlier operator to this claim may come late, as it cannot be touched: %s"
            logger.warning(words, error, extra=fields(claim=claim.key))
        return True

    async def _is_known(self, claim: ResourceClaim) -> bool:
        """It changed since our list, which fails a late write just as well, or was one: the model has to know."""
        try:
            await self._access.fresh(CLAIM, claim)
        except (ApiUnavailable, ApiThrottled):
            return False
        return True
