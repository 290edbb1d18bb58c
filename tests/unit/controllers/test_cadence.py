"""How often a policy's status is written for the sake of counts: at once after a pause, more and more seldom during a burst."""

from __future__ import annotations

from dra_operator.controllers.cadence import LONGEST_REST, Cadence
from dra_operator.controllers.policystatus import only_counts
from dra_operator.model import AllocationPolicyStatus, OwnedPool


def writes(cadence: Cadence, begin: float, end: float) -> list[float]:
    """When counts that change all the time are written."""
    moments, now = [], max(begin, cadence.next_count)
    while now < end:
        cadence.wrote(now, only_counts=True)
        moments.append(now)
        now = max(cadence.next_count, cadence.next_write)
    return moments


def test_counts_are_told_at_once_and_during_a_burst_more_and_more_seldom() -> None:
    assert writes(Cadence(1.0), 10.0, 33.0) == [10.0, 11.0, 13.0, 17.0, 22.0, 27.0, 32.0]


def test_after_a_pause_counts_are_told_at_once_again() -> None:
    cadence = Cadence(1.0)
    last = writes(cadence, 0.0, 30.0)[-1]
    later = last + 2 * LONGEST_REST
    assert writes(cadence, later, later + 1.5) == [later, later + 1.0]


def test_other_news_neither_wait_longer_nor_make_counts_wait() -> None:
    cadence = Cadence(1.0)
    last = writes(cadence, 0.0, 30.0)[-1]
    assert cadence.next_write == last + 1.0
    cadence.wrote(last + 1.0, only_counts=False)
    assert cadence.next_count == last + 2.0


def test_only_devices_in_use_are_counts() -> None:
    def status(pools: int = 1, devices: int = 8, in_use: int = 0, of_pool: int = 0) -> AllocationPolicyStatus:
        pool = OwnedPool(driver="gpu.example.com", name="n1", devices=devices, allocated_devices=of_pool)
        return AllocationPolicyStatus(pools=pools, allocated_devices=in_use, owned_pools=(pool,))

    assert only_counts(status(), status(in_use=3, of_pool=3))
    assert not only_counts(status(), status(pools=2))
    assert not only_counts(status(), status(devices=7, in_use=3, of_pool=3))
