"""A pool changes hands while kube-scheduler is at work on it, on a real control plane: no device goes to two claims.

kube-scheduler hears of a DeviceTaintRule late, and writes decisions that it took before; the settle time is for that.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.e2e.crowd import (
    arrive,
    at_rest,
    names_waiting,
    running_count,
    scheduler_asleep,
    template,
    work_by_moments,
)
from tests.e2e.fleet import Fleet, is_settled
from tests.e2e.harness.objects import policy
from tests.e2e.harness.waiting import wait_until
from tests.e2e.history import ClaimHistory

if TYPE_CHECKING:
    from tests.e2e.harness.cluster import ControlPlane
    from tests.e2e.harness.workspace import Workspace

pytestmark = pytest.mark.timeout(240)

OPERATOR_FLAGS = ()
"""The settle time that is shipped."""

NODES, DEVICES_A_NODE = 10, 18
DEVICES = NODES * DEVICES_A_NODE
THEIRS, OURS = 150, 180


@pytest.fixture
def stock(ungated: Workspace) -> Fleet:
    """180 devices that kube-scheduler serves, and a namespace whose pods go to it."""
    fleet = Fleet.of(ungated)
    fleet.plain(DEVICES_A_NODE, nodes=NODES)
    ungated.apply(template(fleet))
    return fleet


def beside(stock: Fleet, managed: Workspace) -> Fleet:
    """The same devices, seen from a namespace whose pods come to us."""
    managed.apply(template(stock))
    return Fleet(managed, stock.suffix)


def test_policy_while_kube_scheduler_works_through_150_pods(
    stock: Fleet, managed: Workspace, control_plane: ControlPlane
) -> None:
    """Both want more than there is: in the end every device is held, by one claim each, and it was so all the time.

    kube-scheduler sleeps while the pool changes hands: rule, pods and our claims reach it all at once, in any order.
    """
    ours = beside(stock, managed)
    with ClaimHistory(stock.workspace) as history:
        with scheduler_asleep(control_plane):
            arrive(stock, THEIRS)
            work_by_moments(control_plane, lambda: served_count(history, stock), 5)
            begin = time.monotonic()
            take_over(ours)
            seen = served_count(history, stock)
            arrive(ours, OURS)
        managed.kubectl.until("allocationpolicy", stock.name("policy"), is_settled, "settled", timeout=60)
        settled = time.monotonic() - begin
        until_all_devices_are_used(stock, ours)
        loose = at_rest(ours)

    print(
        f"policy after {seen} allocations of kube-scheduler, settled after {settled:.1f} s; "
        f"{running_count(stock)} pods served by kube-scheduler, {running_count(ours)} by the operator"
    )
    assert 0 < seen < THEIRS, "the policy did not come in the midst of kube-scheduler's work"
    assert history.doubles == []
    assert loose == []
    assert running_count(stock) + running_count(ours) == DEVICES
    assert len(names_waiting(ours)) == OURS - running_count(ours)


def served_count(history: ClaimHistory, stock: Fleet) -> int:
    """Claims of these pods that have been allocated so far; the history goes on meanwhile."""
    return sum(key.startswith(f"{stock.workspace.namespace}/") for key in list(history.allocated))


def take_over(ours: Fleet) -> None:
    """A policy for the pools; returns when its rule is there, long before it has settled."""
    ours.workspace.apply(policy(ours.name("policy"), {"driver": ours.name("gpu")}))
    wait_until(lambda: ours.workspace.kubectl.get_all("devicetaintrules"), "rule of the policy")


def until_all_devices_are_used(stock: Fleet, ours: Fleet) -> None:
    wait_until(
        lambda: running_count(stock) + running_count(ours),
        f"{DEVICES} pods running",
        timeout=60,
        accept=lambda seen: seen >= DEVICES,
    )
