"""Gives everything back to kube-scheduler, once the operator is stopped (decision record 0009).

The order is what keeps each device with one claim, at every moment and after a crash at any point:

1. attempts left half done end: from then on no write of a dead operator can allocate anything;
2. kube-scheduler gets the time to see all that was allocated;
3. the taint rules go, then our finalizer from the policies: the pools are kube-scheduler's. If a rule comes back, an operator runs that nobody
   saw, and it ends here;
4. our annotations go; 5. pods are released from the gate.

All passes are repeated until one finds nothing to do, at a time when no API server gates pods any more. `removal` says what to write; run by `app`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from dra_operator.errors import (
    ApiConflict,
    ApiError,
    ApiGone,
    ApiNotFound,
    ApiThrottled,
    ApiUnavailable,
    InvalidObject,
)
from dra_operator.kube.timing import Backoff
from dra_operator.model import metadata_of
from dra_operator.model.marks import is_ours

from .commit import CLAIM, POD
from .names import POLICY_LABEL, holds_our_allocation
from .removal import Deed, Edit, claims_in_use, forgotten, let_go, may_be_ours, released, unfinished
from .rules import POLICY, RULE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from dra_operator.model import AllocationPolicy, DeviceTaintRule, Pod, ResourceClaim, Value

    from .access import Reader, Writes

logger = logging.getLogger(__name__)

ATTEMPTS = 8
"""Tries of one object against other writers and a server that does not answer: some seconds in all."""

PASSES = 5
"""Passes at most. The second finds nothing unless something still writes; the last thing found is told then."""

ANSWER_SECONDS = 2.0
"""How soon an operator that runs all the same writes a deleted taint rule anew: it hears by a watch. Arbitrary, some hundred times longer; a shorter
settle time holds for this watch, too."""

HEARD_SECONDS = 1.0
"""How long kube-scheduler may take to hear of our last writes to claims, before it gets their pods. Arbitrary, as above."""

T = TypeVar("T", bound="Value")


class Listed(Protocol):
    """A list of one kind, as `kube.listing` has it."""

    @property
    def objects(self) -> Sequence[Value]:
        """What could be decoded."""
        ...

    @property
    def rejected(self) -> Sequence[Any]:
        """What could not, each with an `error`, and itself as `raw`."""
        ...


@dataclass(slots=True)
class Report:
    """What was done, and what could not be.

    Attributes:
        done: objects by deed; an object that needed it twice is one.
        writes: how often something was written.
        failed: a sentence each.
        orphans: keys of the pods that name the operator as their scheduler and are not bound: nobody else looks at them.
    """

    done: dict[Deed, set[str]] = field(default_factory=lambda: defaultdict(set))
    writes: int = 0
    failed: list[str] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)

    def summary(self) -> str:
        """The counts in a line."""
        counts = [f"{count} {deed.value}" for deed in Deed if (count := len(self.done[deed]))]
        return ", ".join(counts) or "there was nothing of the operator's left"


class Remover:
    """One removal.

    Args:
        reader: single objects afresh.
        writer: guarded patches and deletions.
        list_kind: a consistent list of all objects of a kind; `ApiNotFound` if the kind is not served.
        settle_seconds: how long kube-scheduler is given to see the last allocations, before the taints go.
        backoff: between tries.
    """

    def __init__(
        self,
        reader: Reader,
        writer: Writes,
        list_kind: Callable[[str], Awaitable[Listed]],
        settle_seconds: float,
        backoff: Backoff | None = None,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._list_kind = list_kind
        self._settle_seconds = settle_seconds
        self._backoff = backoff or Backoff(cap=5.0)
        self._has_waited = False
        self._passed_over: set[str] = set()
        self.report = Report()

    async def run(self, *, gate_seconds: float = 0.0) -> Report:
        """Remove all.

        Args:
            gate_seconds: how long from now API servers may put the gate on new pods yet: the last pass comes after that.

        Raises:
            ApiError: a kind cannot be listed.
        """
        clock = asyncio.get_running_loop().time
        ungated, is_last = clock() + gate_seconds, gate_seconds <= 0
        for _ in range(PASSES):
            before = self.report.writes
            await self._pass()
            if self.report.failed:
                return self.report
            if self.report.writes == before:
                if is_last:
                    return self.report
                left = max(0.0, ungated - clock())
                logger.info("waiting %.0f seconds: API servers may put the gate on new pods until then", left)
                await asyncio.sleep(left)
                is_last = True
        self.report.failed.append(
            f"something puts gates, marks or rules back: {PASSES} passes each found some; is an operator running elsewhere?"
        )
        return self.report

    async def _pass(self) -> None:
        claims = cast("list[ResourceClaim]", await self._list(CLAIM))
        pods = cast("list[Pod]", await self._list(POD))
        in_use = claims_in_use(pods, claims)
        await self._all(CLAIM, claims, lambda claim: unfinished(claim, in_use))
        if self.report.failed:
            return  # what failed may hold a device that nobody sees: the taints stay
        # Afresh: an allocation that a dead operator had sent may have come in the meantime, and is the one that nobody has seen yet.
        claims = cast("list[ResourceClaim]", await self._list(CLAIM))
        if not await self._rules(any(holds_our_allocation(claim) for claim in claims)):
            return  # pods that lose the gate while an operator runs would be served by two
        await self._forget()
        pods = cast("list[Pod]", await self._list(POD))
        await self._all(POD, pods, released)
        self.report.orphans = [
            pod.key for pod in pods if pod.names_us and not pod.spec.node_name and not pod.is_done
        ]

    async def _forget(self) -> None:
        """Before the gates open: a write of kube-scheduler that conflicts with one of ours leaves its pod pending for five minutes."""
        before = self.report.writes
        await self._all(CLAIM, cast("list[ResourceClaim]", await self._list(CLAIM)), forgotten)
        if self.report.writes > before:
            await asyncio.sleep(min(self._settle_seconds, HEARD_SECONDS))

    async def _rules(self, has_allocated: bool) -> bool:  # noqa: FBT001 - one fact of one caller
        """Rules and our finalizers go; whether we are alone."""
        rules = [rule for rule in cast("list[DeviceTaintRule]", await self._list(RULE)) if is_ours(rule)]
        if rules and has_allocated:
            await self._wait("kube-scheduler has to see all allocations before it gets the pools")
        kept: set[str] = set()
        for rule in rules:
            if not await self._delete(rule):
                kept.add(rule.metadata.labels.get(POLICY_LABEL, ""))
        policies = cast("list[AllocationPolicy]", await self._list(POLICY))
        # A policy whose rule could not be deleted keeps the finalizer: it is all that tells of the rule.
        free = [policy for policy in policies if policy.metadata.name not in kept]
        if rules and not await self._nobody_answers(kept):
            return False
        await self._all(POLICY, free, let_go)
        return True

    async def _nobody_answers(self, kept: set[str]) -> bool:
        """An operator that was started outside of the cluster has no pod to be seen by; it keeps its taint rules, though."""
        await asyncio.sleep(min(self._settle_seconds, ANSWER_SECONDS))
        rules = cast("list[DeviceTaintRule]", await self._list(RULE))
        # One in deletion is the old one, kept by somebody's finalizer: the next pass tells of that.
        ours = [rule for rule in rules if is_ours(rule) and rule.metadata.deletion_timestamp is None]
        back = [rule for rule in ours if rule.metadata.labels.get(POLICY_LABEL, "") not in kept]
        for rule in back:
            self._fail(
                RULE,
                rule.metadata.key,
                "was deleted and is there again, so an operator still runs, perhaps in a terminal: stop it and run this again. No pod was released",
            )
        return not back

    async def _delete(self, rule: DeviceTaintRule) -> bool:
        """Whether a rule is gone, or will be."""
        meta = rule.metadata
        if meta.deletion_timestamp is not None:
            held = ", ".join(meta.finalizers)
            self._fail(RULE, meta.key, f"is being deleted, and kept by the finalizers {held}: take them off")
            return False
        words = ""
        for failures in range(1, ATTEMPTS + 1):
            try:
                await self._writer.delete(RULE, "", meta.name, uid=meta.uid)
            except ApiNotFound:
                return True
            except (ApiConflict, ApiUnavailable, ApiThrottled) as error:
                words = str(error)
                await asyncio.sleep(self._backoff.delay(failures))
                if await self._fresh(RULE, rule) is None:
                    return True  # gone; a namesake that somebody made since is seen when nobody is to answer
            except ApiError as error:
                self._fail(RULE, meta.key, str(error))
                return False
            else:
                self._did(Deed.RULE, meta.key)
                return True
        self._fail(RULE, meta.key, words)
        return False

    async def _all(self, kind: str, objects: Iterable[T], plan: Callable[[T], Edit | None]) -> None:
        """Bring all objects of a kind where the plan wants them; as many at once as the writer lets through."""
        async with asyncio.TaskGroup() as group:
            for obj in objects:
                if plan(obj) is not None:
                    group.create_task(self._bring(kind, obj, plan))

    async def _bring(self, kind: str, obj: T, plan: Callable[[T], Edit | None]) -> None:
        """Write what the plan says until it says nothing more; read afresh whenever the object is not known for sure."""
        key, words, failures = metadata_of(obj).key, "", 0
        current: T | None = obj
        while current is not None and (edit := plan(current)) is not None:
            if failures >= ATTEMPTS:
                self._fail(kind, key, words)
                return
            try:
                current = cast("T", await self._patch(kind, current, edit))
            except ApiNotFound:
                return
            except (ApiConflict, ApiUnavailable, ApiThrottled) as error:
                failures, words = failures + 1, str(error)
                await asyncio.sleep(self._backoff.delay(failures))
                current = await self._fresh(kind, current)
            except (ApiError, InvalidObject) as error:
                self._fail(kind, key, str(error))
                return
            else:
                self._did(edit.deed, f"{kind} {key}")

    async def _patch(self, kind: str, obj: Any, edit: Edit) -> Value:
        meta = metadata_of(obj)
        guard = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        body = {**edit.body, "metadata": {**edit.body.get("metadata", {}), **guard}}
        return await self._writer.patch(
            kind,
            meta.namespace,
            meta.name,
            body,
            subresource=edit.subresource,
            content_type=edit.content_type,
        )

    async def _fresh(self, kind: str, obj: T) -> T | None:
        """The object as it is now; as it was, if the server does not say: the next write then fails again. None if it is gone."""
        meta = metadata_of(obj)
        try:
            found = await self._reader.get(kind, meta.namespace, meta.name)
        except ApiNotFound:
            return None
        except (ApiError, InvalidObject):
            return obj
        same = metadata_of(found).uid == meta.uid
        return cast("T", found) if same else None

    async def _list(self, kind: str) -> list[Value]:
        """All objects of a kind; none if it is not served, as when our own kind is gone already.

        Raises:
            ApiError: it cannot be listed.
        """
        for failures in range(1, ATTEMPTS + 1):
            try:
                listed = await self._list_kind(kind)
            except ApiNotFound:
                return []
            except (ApiGone, ApiUnavailable, ApiThrottled) as error:
                if failures == ATTEMPTS:
                    raise
                logger.warning("list of %ss: %s; trying again", kind, error)
                await asyncio.sleep(self._backoff.delay(failures))
            else:
                for rejected in listed.rejected:
                    self._reject(kind, rejected)
                return list(listed.objects)
        return []

    def _reject(self, kind: str, rejected: Any) -> None:
        """An object that cannot be read stops the removal only if it may be one of those that have to be changed, or spared."""
        words = str(rejected.error)
        if may_be_ours(rejected.raw):
            self._fail(kind, "", f"cannot be read, look for yourself: {words}")
        elif words not in self._passed_over:
            self._passed_over.add(words)
            logger.warning(
                "left as it is, for it cannot be read and bears nothing of the operator's: %s", words
            )

    async def _wait(self, why: str) -> None:
        if not self._has_waited and self._settle_seconds > 0:
            logger.info("waiting %g seconds: %s", self._settle_seconds, why)
            await asyncio.sleep(self._settle_seconds)
        self._has_waited = True

    def _did(self, deed: Deed, what: str) -> None:
        self.report.done[deed].add(what)
        self.report.writes += 1
        logger.debug("%s: %s", what, deed.value)

    def _fail(self, kind: str, key: str, words: str) -> None:
        self.report.failed.append(f"{kind} {key}: {words}" if key else f"{kind}: {words}")
