"""Which pod uses which device (FR-101, FR-105): follows claims, is bounded, and says what it lacks."""

from __future__ import annotations

from typing import Any

from dra_operator.cluster import Cluster
from dra_operator.metrics import DeviceMap
from dra_operator.metrics.labels import CLAIM_LIMIT
from tests.unit.cluster.build import DRIVER, claim, result, slice_


class Mapped:
    """A model and its map."""

    def __init__(self, *objects: Any) -> None:
        self.cluster, self.map = Cluster(), DeviceMap()
        self.cluster.on_change(self.map.changed)
        for obj in objects:
            self.cluster.apply("ADDED", obj)

    @property
    def series(self) -> set[tuple[str, ...]]:
        return set(self.map.series())


def test_each_pod_of_a_claim_has_each_of_its_devices() -> None:
    here = Mapped(claim("c", devices=["n1/0", "n2/1"], pods=["u1"]))
    assert here.series == {("ns", "any", "c", DRIVER, "n1", "0"), ("ns", "any", "c", DRIVER, "n2", "1")}


def test_a_claim_without_a_pod_has_an_empty_one_and_one_without_devices_none() -> None:
    here = Mapped(claim("c", devices=["n1/0"]), claim("pending"), slice_("s", node="n1"))
    assert here.series == {("ns", "", "c", DRIVER, "n1", "0")}


def test_shares_of_one_device_are_one_series() -> None:
    shares = [result("n1/0", shareID=name) for name in ("a", "b")]
    here = Mapped(claim("c", devices=shares, pods=["u1"]))
    assert here.series == {("ns", "any", "c", DRIVER, "n1", "0")}


def test_series_go_with_the_allocation_and_with_the_claim() -> None:
    here = Mapped(claim("c", 1, devices=["n1/0"]), claim("d", 1, devices=["n1/1"]))
    here.cluster.apply("MODIFIED", claim("c", 2))
    here.cluster.apply("DELETED", claim("d", 1, devices=["n1/1"]))
    assert (here.series, here.map.left_out) == (set(), 0)


def test_what_is_beyond_the_limit_is_counted_and_comes_when_there_is_room() -> None:
    every = [f"n1/{number}" for number in range(CLAIM_LIMIT)]
    here = Mapped(claim("first", devices=every), claim("second", devices=["n2/0", "n2/1"]))
    assert (len(here.series), here.map.left_out) == (CLAIM_LIMIT, 2)
    here.cluster.apply("DELETED", claim("first", devices=every))
    assert (len(here.series), here.map.left_out) == (2, 0)
