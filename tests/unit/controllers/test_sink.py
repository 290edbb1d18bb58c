"""What cannot be read is told, and is heard all the same: the feed that brings it works."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from dra_operator.cluster import Cluster
from dra_operator.controllers.echoes import OVERDUE_SECONDS, Echoes
from dra_operator.controllers.sink import ModelSink
from dra_operator.errors import InvalidObject
from dra_operator.kube.listing import RawMeta
from dra_operator.metrics import Metrics
from dra_operator.model import DeviceId
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


DEVICE = DeviceId("gpu.example.com", "n1", "dev-0")


def holding(version: int, *results: Any, uid: str = "uid-c") -> dict[str, Any]:
    """A claim as Kopf hands it out, whose spec cannot be read, with an allocation."""
    found = raw(version)
    found["metadata"]["uid"] = uid
    entry = {"request": "r", "driver": "gpu.example.com", "pool": "n1", "device": "dev-0"}
    return {**found, "status": {"allocation": {"devices": {"results": list(results) or [entry]}}}}


def is_taken(here: Sink) -> bool:
    assert bool(here.cluster.holders(DEVICE)) is (DEVICE in here.cluster.allocated_state().devices)
    return bool(here.cluster.holders(DEVICE))


def test_a_claim_that_never_could_be_read_holds_its_devices_until_it_goes_a3() -> None:
    here = Sink()
    freed: list[str] = []
    here.sink.freed = lambda: freed.append("freed")
    here.sink.take(CLAIM, None, holding(5))
    assert is_taken(here)
    assert (here.cluster.unreadable["ns/c"].uid, freed) == ("uid-c", [])

    here.sink.take(CLAIM, "DELETED", holding(6))
    assert not is_taken(here)
    assert (dict(here.cluster.unreadable), freed) == ({}, ["freed"])


def test_the_devices_are_those_of_the_unreadable_version_not_of_the_last_good_one() -> None:
    here = Sink()
    here.cluster.apply("ADDED", claim("c", 4, uid="uid-c"))
    here.sink.take(CLAIM, "MODIFIED", holding(5))
    assert is_taken(here)

    here.sink.take(CLAIM, "MODIFIED", holding(4, {"driver": 7}))  # late
    here.cluster.apply("MODIFIED", claim("c", 4, uid="uid-c"))
    assert is_taken(here)

    freed: list[str] = []
    here.sink.freed = lambda: freed.append("freed")
    here.sink.apply("MODIFIED", claim("c", 6, uid="uid-c"))
    assert not is_taken(here)
    assert (dict(here.cluster.unreadable), freed) == ({}, ["freed"])


def test_a_list_without_an_unreadable_claim_frees_its_devices_and_one_with_it_does_not() -> None:
    here = Sink()
    everything = msgspec.json.encode(holding(5))
    here.sink.reject(CLAIM, UNREADABLE, meta("c", 5), everything)
    here.sink.replace(CLAIM, [], "7")
    assert is_taken(here)

    here.sink.replace(CLAIM, [], "9")
    assert not is_taken(here)


def test_what_is_told_late_of_a_namesake_frees_nothing() -> None:
    here = Sink()
    former = claim("c", 4, uid="uid-former")
    here.cluster.apply("ADDED", former)
    here.sink.take(CLAIM, "ADDED", holding(6))
    here.cluster.apply("DELETED", former)
    assert is_taken(here)

    here.sink.take(CLAIM, "DELETED", holding(7, uid="uid-former"))
    assert is_taken(here)


def test_entries_that_name_no_device_and_admin_access_hold_nothing() -> None:
    here = Sink()
    entry = {"driver": "gpu.example.com", "pool": "n1", "device": "dev-0"}
    odd: tuple[Any, ...] = (7, {}, {**entry, "device": None}, {**entry, "adminAccess": True})
    here.sink.take(CLAIM, None, holding(5, *odd))
    assert not is_taken(here)
    assert "ns/c" in here.cluster.unreadable
