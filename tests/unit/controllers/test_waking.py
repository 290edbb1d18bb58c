"""Whom a change may help first, while changes are being gathered."""

from __future__ import annotations

import pytest

from dra_operator.cluster import Cluster
from dra_operator.controllers.failures import Failures
from dra_operator.controllers.waiting import Waiting
from dra_operator.controllers.waking import Waking
from dra_operator.model import Pod, from_object

from .clocks import HandClock


def pod(name: str, priority: int) -> Pod:
    metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}"}
    return from_object(Pod, {"metadata": metadata, "spec": {"priority": priority}})


@pytest.mark.parametrize("first", [7, 0, -2])
@pytest.mark.parametrize("second", [-5, -9])
def test_who_comes_to_wait_meanwhile_takes_no_turn_of_those_before(first: int, second: int) -> None:
    clock, cluster = HandClock(), Cluster()
    waiting = Waiting(clock)
    waking = Waking(clock, cluster, waiting, Failures(clock), lambda _: None)
    for waiter in (pod("first", first), pod("second", second)):
        cluster.apply("ADDED", waiter)
    waiting.put("ns/first", "AllocationFailed", "waits", ())
    waking.everybody()

    waking.joined(pod("second", second))

    assert waking.is_outranked(pod("third", first - 1))
    assert not waking.is_outranked(pod("fourth", first))
