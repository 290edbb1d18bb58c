"""When findings are repaired and told: by a clock that the test turns, and with so many looks a round, whatever happens."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from dra_operator.cluster import Cluster
from dra_operator.controllers.driftwatch import AT_ONCE, LOOKS, REMIND, REPAIR_AGAIN, DriftWatch, Pace
from dra_operator.controllers.parts import Parts
from dra_operator.explain.drift import Facts, Subject, findings
from dra_operator.features import DEFAULT_1_37
from dra_operator.metrics import Metrics
from dra_operator.model.marks import MARK
from tests.unit.cluster.build import claim, slice_

from .clocks import HandClock

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dra_operator.kube.eventlog import Metadata
    from dra_operator.model import PoolId, ResourceClaim, Value

REPAIR, REPORT = 30.0, 300.0


class Told:
    """A recorder that remembers."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []

    def record(self, _kind: str, about: Metadata, reason: str, _message: str) -> None:
        self.events.append((reason, about.name))

    def relieve(self, kind: str, about: Metadata, reason: str, message: str) -> None:
        raise AssertionError(kind, about, reason, message)


class Watched:
    """A watch over a model, and what it asked for."""

    def __init__(self, *objects: Value) -> None:
        self.cluster, self.clock, self.told = Cluster(), HandClock(), Told()
        self.ripe: list[str] = []
        for obj in objects:
            self.cluster.apply("ADDED", obj)
        nothing: Any = None
        parts = Parts(self.cluster, nothing, self.told, Metrics(), self.clock, DEFAULT_1_37)
        facts: Any = self.facts
        self.watch = DriftWatch(parts, facts, Pace(REPAIR, REPORT), self.note)
        self.watch.start()
        self.cluster.on_change(self.watch.changed)

    def facts(self, expected: Mapping[PoolId, str], deletion_seconds: float) -> Facts:
        return Facts(self.clock.now(), deletion_seconds, expected=expected)

    def note(self, subject: Subject) -> None:
        self.ripe.append(f"{subject.kind} {subject.key}")

    def pass_time(self, seconds: float) -> None:
        """In steps of a second, as rounds come."""
        for _ in range(int(seconds)):
            self.clock.advance(1.0)


def left(name: str, version: int = 1, uid: str = "") -> ResourceClaim:
    """A claim with a mark that says nothing any more."""
    return claim(name, version, uid=uid, annotations={MARK: "feedface"})


def test_a_finding_is_repaired_after_its_time_and_then_less_and_less_often() -> None:
    here = Watched(left("c"))
    here.pass_time(REPAIR)
    assert here.ripe == []
    here.pass_time(2)
    assert here.ripe == ["ResourceClaim ns/c"]
    moments = []
    for second in range(2000):
        before = len(here.ripe)
        here.pass_time(1)
        moments += [second] if len(here.ripe) > before else []
    pauses = [later - sooner for sooner, later in pairwise(moments)]
    assert pauses[:2] == [120, 240]
    assert set(pauses[2:]) == {int(REPAIR_AGAIN)}


def test_a_finding_is_told_after_its_time_and_again_before_the_event_expires() -> None:
    here = Watched(left("c"))
    here.pass_time(REPORT)
    assert (here.told.events, here.watch.standing()["MarkLeft"]) == ([], 0)
    here.pass_time(2)
    assert (here.told.events, here.watch.standing()["MarkLeft"]) == ([("MarkLeft", "c")], 1)
    here.pass_time(REMIND - 5)
    assert len(here.told.events) == 1
    here.pass_time(10)
    assert len(here.told.events) == 2


def test_what_is_over_is_forgotten_and_begins_anew() -> None:
    here = Watched(left("c"))
    here.pass_time(REPAIR - 2)
    here.cluster.apply("MODIFIED", claim("c", 2))
    here.pass_time(2)
    here.cluster.apply("MODIFIED", left("c", 3))
    here.pass_time(REPAIR - 2)
    assert here.ripe == []
    here.pass_time(4)
    assert len(here.ripe) == 1


def test_a_namesake_has_a_time_of_its_own() -> None:
    here = Watched(left("c"))
    here.pass_time(REPAIR - 2)
    here.cluster.apply("ADDED", left("c", 2, uid="uid-namesake"))
    here.pass_time(REPAIR - 2)
    assert here.ripe == []
    here.pass_time(4)
    subject = Subject("ResourceClaim", "ns/c")
    (finding,) = findings(here.cluster, here.watch.facts)
    assert (here.ripe, here.watch.is_ripe(subject, finding)) == (["ResourceClaim ns/c"], True)


def test_a_device_in_two_claims_is_told_and_handed_on_at_once_also_for_the_claim_that_did_not_change() -> (
    None
):
    here = Watched(slice_("gpus", ("a",), node="n1"), claim("c", devices=["n1/a"]))
    here.pass_time(2)
    here.cluster.apply("ADDED", claim("d", 2, devices=["n1/a"]))
    here.pass_time(1)
    assert sorted(here.told.events) == [("DeviceHeldTwice", "c"), ("DeviceHeldTwice", "d")]
    here.pass_time(AT_ONCE + 1)
    assert sorted(here.ripe) == ["ResourceClaim ns/c", "ResourceClaim ns/d"]


def test_a_round_looks_at_a_bounded_number_of_objects_and_none_is_left_out() -> None:
    many = 2 * LOOKS
    here = Watched(*(left(f"c{number}") for number in range(many)))
    here.pass_time(1)
    assert sum(map(len, here.watch._spells.values())) == LOOKS
    here.pass_time(2)
    assert sum(map(len, here.watch._spells.values())) == many
    here.pass_time(REPAIR + 5)
    assert len(set(here.ripe)) == many


def test_everything_is_looked_at_again_without_a_change() -> None:
    """Time alone makes this one a finding: nothing tells that."""
    gone = "2026-11-01T12:00:00Z"
    here = Watched(claim("c", deletionTimestamp=gone, finalizers=["example.com/mine"]))
    here.pass_time(REPORT - 10)
    assert here.told.events == []
    here.pass_time(REPORT + 10)
    assert here.told.events == [("DeletionStuck", "c")]


def test_without_anything_due_no_round_is_planned() -> None:
    here = Watched(claim("c", devices=["n1/a"]), slice_("gpus", ("a",), node="n1"))
    here.pass_time(3)
    assert [timer.callback.__name__ for timer in here.clock.timers] == ["_look_at_all"]
