"""What cannot be read is told, and is heard all the same: the feed that brings it works."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.cluster import Cluster
from dra_operator.controllers.echoes import OVERDUE_SECONDS, Echoes
from dra_operator.controllers.sink import ModelSink
from dra_operator.errors import InvalidObject
from dra_operator.kube.listing import RawMeta
from dra_operator.metrics import Metrics
from tests.unit.cluster.build import claim, pod

from .clocks import HandClock

if TYPE_CHECKING:
    from dra_operator.kube.eventlog import Metadata

CLAIM = "ResourceClaim"
UNREADABLE = InvalidObject("it", "spec", "Expected `object`, got `int`")


class Told:
    """A recorder that remembers."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []

    def record(self, kind: str, about: Metadata, reason: str, message: str) -> None:
        """One event."""
        self.events.append((kind, about.name, reason))
        assert message

    def relieve(self, kind: str, about: Metadata, reason: str, message: str) -> None:
        """The sink takes nothing back."""
        raise AssertionError(kind, about, reason, message)


class Sink:
    """The sink over a model, and a clock."""

    def __init__(self) -> None:
        self.cluster, self.clock, self.told = Cluster(), HandClock(), Told()
        self.echoes = Echoes(self.cluster, Metrics(), self.clock)
        self.sink = ModelSink(self.cluster, Metrics(), self.echoes, self.told)

    def overdue(self, kind: str) -> float:
        """After the time that a version may take, with a server that answers."""
        self.clock.advance(OVERDUE_SECONDS + 1)
        return self.echoes.overdue(kind, lambda _: self.clock.monotonic())


def raw(version: int) -> dict[str, Any]:
    """A claim as Kopf hands it out, whose spec cannot be read."""
    meta = {"name": "c", "namespace": "ns", "uid": "uid-c", "resourceVersion": str(version)}
    return {"metadata": meta, "spec": 7}


def meta(name: str, version: int) -> RawMeta:
    """Metadata of an object whose rest cannot be read."""
    return RawMeta(name, "ns", f"uid-{name}", str(version))


@pytest.mark.parametrize(("version", "is_awaited"), [(4, True), (5, False), (6, False)])
def test_a_watch_of_kopf_that_brings_an_unreadable_version_owes_it_no_more(
    version: int, *, is_awaited: bool
) -> None:
    here = Sink()
    here.echoes.assume(claim("c", 5))
    here.sink.take(CLAIM, "MODIFIED", raw(version))
    assert here.told.events == [(CLAIM, "c", "Unreadable")]
    assert bool(here.overdue(CLAIM)) is is_awaited


def test_a_feed_of_ours_that_brings_an_unreadable_version_owes_it_no_more() -> None:
    here = Sink()
    here.echoes.assume(pod("p", 5))
    here.sink.reject("Pod", UNREADABLE, meta("p", 6))
    assert here.overdue("Pod") == 0


def test_an_unreadable_object_in_a_list_of_the_guard_pays_nothing_for_kopfs_watch() -> None:
    here = Sink()
    here.echoes.assume(claim("c", 5))
    here.sink.reject(CLAIM, UNREADABLE, meta("c", 6))
    assert here.overdue(CLAIM) > 0
