"""Finds drift continuously: looks at what changed and, in turn, at everything; knows for how long each finding has stood; tells people.

`explain.drift` says how an object looks. What has looked wrong for long enough to be no work under way is handed to the sweeper, if
anything can be done about it, and told by an event on the object, the log and the gauge `drift`. Work comes in rounds, so many looks
each, whatever happens: no event of a feed costs more than noting a name. Writes nothing but events.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from dra_operator.cluster import claim_keys
from dra_operator.errors import WorkLimitReached
from dra_operator.explain.drift import KINDS, Facts, Subject, look, subjects
from dra_operator.explain.driftkinds import CLAIM, POD, POLICY, POOL, RULE
from dra_operator.kube.listing import RawMeta
from dra_operator.logfields import fields
from dra_operator.model import (
    AllocationPolicy,
    DeviceTaintRule,
    Node,
    Pod,
    PoolId,
    ResourceClaim,
    ResourceSlice,
)
from dra_operator.placement import Release

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from dra_operator.cluster import Change
    from dra_operator.explain.drift import Finding
    from dra_operator.placement import Placer

    from .allocation import AllocationController
    from .parts import Parts

logger = logging.getLogger(__name__)

LOOKS: Final = 300
"""Objects that one round looks at: some milliseconds. Arbitrary; 10,000 claims and 5,000 pods take a minute."""

ROUND: Final = 1.0
"""Seconds between two rounds, less where the waiting times are set shorter than that. Arbitrary."""

EVERYTHING: Final = 300.0
"""Seconds after which everything is looked at again, changed or not. Arbitrary; as the sync guard."""

AT_ONCE: Final = 1.0
"""Seconds after which a finding that is told at once is repaired, where the others wait longer: each moment may start a pod on it."""

REMIND: Final = 1200.0
"""Seconds after which a finding is told again: the API server forgets events after an hour."""

REPAIR_AGAIN: Final = 300.0
"""Longest time between two repairs of one finding; it doubles from the first one on."""

REMEMBERED: Final = 86_400.0
"""Seconds for which slices that went are missed."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How long a finding must have stood.

    Attributes:
        repair: seconds until something is done about it.
        report: seconds until it is told.
    """

    repair: float
    report: float

    @property
    def round(self) -> float:
        """Seconds between two rounds."""
        return max(0.02, min(ROUND, self.repair / 4, self.report / 4))


@dataclass(slots=True)
class _Spell:
    """One finding about one object, for as long as it stands.

    Attributes:
        uid: of the object.
        since: monotonic time of the first look that found it.
        told: monotonic time of the last event; None before the first.
        next_repair: monotonic time from which on something is done about it.
        pause: seconds until the repair after that.
    """

    uid: str
    since: float
    next_repair: float
    pause: float
    told: float | None = None


class DriftFacts:
    """What the model does not tell, as the running operator knows it."""

    def __init__(
        self, allocation: AllocationController, placer: Placer, parts: Parts, *, rules_served: bool
    ) -> None:
        self._allocation = allocation
        self._placer = placer
        self._clock = parts.clock
        self._features = parts.features
        self._rules_served = rules_served

    def __call__(self, expected: Mapping[PoolId, str], deletion_seconds: float) -> Facts:
        """The facts of now."""
        return Facts(
            now=self._clock.now(),
            deletion_seconds=deletion_seconds,
            works_on=self._allocation.works_on,
            is_idle=self._is_idle,
            expected=expected,
            rules_served=self._rules_served,
            features=self._features,
        )

    def _is_idle(self, pod: Pod) -> bool:
        """Whether a pod has nothing to wait for, as far as is known: a round looks at many pods in one go."""
        try:
            return isinstance(self._placer.classify(pod, thorough=False), Release)
        except WorkLimitReached:
            return False


class DriftWatch:
    """Follows the model.

    Args:
        parts: the model, the voice and the time.
        facts: what the model does not tell.
        pace: waiting times.
        ripe: called, perhaps repeatedly, with what something is to be done about.
    """

    def __init__(
        self,
        parts: Parts,
        facts: DriftFacts,
        pace: Pace,
        ripe: Callable[[Subject], None],
    ) -> None:
        self._cluster = parts.cluster
        self._recorder = parts.recorder
        self._clock = parts.clock
        self._make_facts = facts
        self._pace = pace
        self._ripe = ripe
        self._due: dict[Subject, None] = {}
        """What the next rounds look at, in that order."""
        self._spells: dict[Subject, dict[str, _Spell]] = {}
        self._gone: dict[PoolId, tuple[str, float]] = {}
        """Pools whose slices went: the node that they named, and when."""
        self._has_timer = False

    # --- what others ask

    @property
    def facts(self) -> Facts:
        """What the model does not tell, now."""
        expected = {pool_id: node for pool_id, (node, _) in self._gone.items()}
        return self._make_facts(expected, self._pace.report)

    def standing(self) -> Mapping[str, int]:
        """How many findings of each kind have been told, and stand; kinds without any are 0."""
        told = Counter(
            name
            for spells in self._spells.values()
            for name, spell in spells.items()
            if spell.told is not None
        )
        return {name: told[name] for name in KINDS}

    def is_ripe(self, subject: Subject, finding: Finding) -> bool:
        """Whether the finding has stood for long enough that something may be done about it."""
        spell = self._spells.get(subject, {}).get(finding.finding)
        patience = self._patience(finding)
        return (
            spell is not None
            and spell.uid == finding.uid
            and self._clock.monotonic() - spell.since >= patience
        )

    # --- what happens

    def start(self) -> None:
        """The model is synced: look at everything, and once in a while again."""
        for policy in self._cluster.policies.values():
            for pool in policy.status.owned_pools:  # as an operator before us saw it
                self._miss(PoolId(pool.driver, pool.name), pool.name)
        self._look_at_all()

    def changed(self, change: Change) -> None:
        """Note what a change concerns."""
        subject = change.new or change.old
        match subject:
            case ResourceClaim():
                self._note(self._claims(subject))
            case Pod():
                self._note([Subject(POD, subject.key)])
                if change.new is None or subject.is_done:
                    owned = (claim.key for claim in self._cluster.claims_owned_by(subject))
                    self._note(Subject(CLAIM, key) for key in {*claim_keys(subject), *owned})
            case ResourceSlice():
                self._slice_changed(change)
            case Node():
                self._node_changed(change, subject)
            case DeviceTaintRule():
                owner = subject.metadata.controller
                self._note([Subject(RULE, subject.metadata.key)])
                self._note([Subject(POLICY, owner.name)] if owner else ())
            case AllocationPolicy():
                self._note([Subject(POLICY, subject.metadata.key)])
                if change.new is None:
                    self._note(Subject(RULE, name) for name in self._cluster.taint_rules)

    def _claims(self, claim: ResourceClaim) -> Iterator[Subject]:
        """The claim, and those that hold a device of others as well: a double may have begun or ended."""
        yield Subject(CLAIM, claim.key)
        for holders in self._cluster.doubles().values():
            yield from (Subject(CLAIM, key) for key in holders)

    def _slice_changed(self, change: Change) -> None:
        for side in (change.old, change.new):
            if isinstance(side, ResourceSlice):
                self._note([Subject(POOL, str(side.pool_id))])
        old = change.old
        if isinstance(old, ResourceSlice) and not self._cluster.slices.of_pool(old.pool_id):
            self._miss(old.pool_id, old.spec.node_name or "")
        if isinstance(change.new, ResourceSlice):
            self._gone.pop(change.new.pool_id, None)

    def _node_changed(self, change: Change, node: Node) -> None:
        if change.old is None or change.new is None:
            self._note(
                Subject(POOL, str(pool)) for pool, (name, _) in self._gone.items() if name == node.name
            )

    def _miss(self, pool_id: PoolId, node: str) -> None:
        if node and not self._cluster.slices.of_pool(pool_id):
            self._gone[pool_id] = (node, self._clock.monotonic())
            self._note([Subject(POOL, str(pool_id))])

    def _note(self, found: Iterable[Subject]) -> None:
        self._due.update(dict.fromkeys(found))
        if self._due and not self._has_timer:
            self._has_timer = True
            self._clock.call_later(self._pace.round, self._round)

    def _look_at_all(self) -> None:
        overdue = self._clock.monotonic() - REMEMBERED
        self._gone = {pool_id: item for pool_id, item in self._gone.items() if item[1] > overdue}
        self._note([*subjects(self._cluster, self.facts), *self._spells])
        self._clock.call_later(min(EVERYTHING, max(self._pace.report, ROUND)), self._look_at_all)

    # --- rounds

    def _round(self) -> None:
        """Look at some of what is due; what has something wrong is due again."""
        facts, again = self.facts, []
        for subject in list(islice(self._due, LOOKS)):
            del self._due[subject]
            if self._look(subject, facts):
                again.append(subject)
        self._has_timer = False
        self._note(again)
        self._note(())

    def _look(self, subject: Subject, facts: Facts) -> bool:
        """Look at one object. Returns: whether anything is wrong with it."""
        now = self._clock.monotonic()
        found = {item.finding: item for item in look(self._cluster, facts, subject)}
        before = self._spells.pop(subject, {})
        spells = {name: self._spell(item, before.get(name), now) for name, item in found.items()}
        if spells:
            self._spells[subject] = spells
        for name, spell in spells.items():
            self._act(subject, spell, now, has_repair=bool(KINDS[name].repair))
            self._tell(found[name], spell, now)
        return bool(spells)

    def _spell(self, finding: Finding, before: _Spell | None, now: float) -> _Spell:
        if before is not None and before.uid == finding.uid:
            return before
        patience = self._patience(finding)
        return _Spell(finding.uid, now, now + patience, patience)

    def _patience(self, finding: Finding) -> float:
        return min(AT_ONCE, self._pace.repair) if KINDS[finding.finding].at_once else self._pace.repair

    def _act(self, subject: Subject, spell: _Spell, now: float, *, has_repair: bool) -> None:
        if has_repair and now >= spell.next_repair:
            spell.pause = min(REPAIR_AGAIN, 2 * spell.pause)
            spell.next_repair = now + spell.pause
            self._ripe(subject)

    def _tell(self, finding: Finding, spell: _Spell, now: float) -> None:
        row = KINDS[finding.finding]
        if not row.at_once and now - spell.since < self._pace.report:
            return
        if spell.told is not None and now - spell.told < REMIND:
            return
        if spell.told is None:
            level = logging.ERROR if finding.finding == "DeviceHeldTwice" else logging.WARNING
            logger.log(level, "%s", finding.message, extra=fields(object=f"{finding.kind} {finding.key}"))
        spell.told = now
        for kind, about in self._concerned(finding):
            # On a pod, the path alone would be read as the pod's.
            text = (
                finding.message
                if kind == finding.kind
                else f"{finding.kind} {finding.key}: {finding.message}"
            )
            self._recorder.record(kind, about, finding.finding, text)

    def _concerned(self, finding: Finding) -> Iterator[tuple[str, RawMeta]]:
        """The objects that get the event. Of what cannot be read, the feeds tell already."""
        if finding.finding == "Unreadable":
            return
        yield finding.kind, RawMeta(finding.name, finding.namespace, finding.uid)
        if finding.finding == "DeviceHeldTwice":
            for pod in self._cluster.pods_of_claim(finding.key):
                if not pod.is_done:
                    yield POD, RawMeta(pod.metadata.name, pod.metadata.namespace, pod.uid)
