"""The stock parts fail in the middle of the work: the operator goes on by itself when they are back, and nothing is held twice."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.e2e.crowd import arrive, at_rest, names_running, names_waiting, template, until_running
from tests.e2e.fleet import Fleet
from tests.e2e.harness.components import APISERVER, CONTROLLER_MANAGER, ETCD, SCHEDULER
from tests.e2e.harness.objects import pod
from tests.e2e.harness.waiting import wait_until
from tests.e2e.history import ClaimHistory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.harness.operator_process import OperatorProcess
    from tests.e2e.harness.workspace import Workspace

pytestmark = pytest.mark.timeout(240)

NODES, DEVICES_A_NODE, PODS = 4, 5, 30
DEVICES = NODES * DEVICES_A_NODE
OPERATOR_FLAGS = ("--settle-seconds=1", "--lease-seconds=120", "--renew-seconds=90")
"""One that goes on through an outage: what becomes of one that cannot renew its lease, `test_failover` looks at."""
LOG_MAY_HOLD = ("is forbidden",)
"""A kube-apiserver that has just started knows no roles yet and refuses everybody for a moment."""

WRITES = "dra_operator_writes_total"


@pytest.fixture
def fleet(managed: Workspace) -> Fleet:
    """20 devices on four nodes, ours."""
    made = Fleet.of(managed)
    made.plain(DEVICES_A_NODE, nodes=NODES)
    managed.apply(template(made))
    made.own("gpu")
    return made


def assert_full_and_moving(fleet: Fleet) -> None:
    """Every device is held once, the other pods wait; as pods go, they follow."""
    until_running(fleet, DEVICES)
    assert at_rest(fleet) == []
    assert (len(names_running(fleet)), len(names_waiting(fleet))) == (DEVICES, PODS - DEVICES)

    fleet.workspace.kubectl.delete("pod", *names_running(fleet)[: PODS - DEVICES])

    until_running(fleet, DEVICES)
    assert at_rest(fleet) == []
    assert names_waiting(fleet) == []


def begun(fleet: Fleet) -> None:
    """Waits until some pods have been let go, so that writes are surely under way."""
    wait_until(lambda: PODS - len(names_waiting(fleet)) >= 3, "three pods released")


def test_api_server_dies_in_the_middle_of_a_burst(fleet: Fleet, module_operator: OperatorProcess) -> None:
    """Some answers never come: whether those writes happened is found out, not guessed (cp I-56)."""
    plane = fleet.workspace.control_plane
    arrive(fleet, PODS)
    begun(fleet)
    plane.kill_component(APISERVER)
    plane.start_component(APISERVER)

    assert_full_and_moving(fleet)
    wait_until(module_operator.ready, "the operator ready again")


def test_writes_without_an_answer(fleet: Fleet, module_operator: OperatorProcess) -> None:
    """The store stands still until the operator gives up waiting (30 s): what it sent may still come true when that goes on."""
    plane, kubectl = fleet.workspace.control_plane, fleet.workspace.kubectl
    with ClaimHistory(fleet.workspace) as history:
        with asleep(module_operator.pid):
            arrive(fleet, PODS)
            wait_until(lambda: len(kubectl.get_all("resourceclaims")) == PODS, "all claims generated")
            os.kill(plane.pid(ETCD), signal.SIGSTOP)
        with waking(plane.pid(ETCD)):
            wait_until(lambda: unanswered(module_operator), "a write without an answer", timeout=60)
        assert_full_and_moving(fleet)

    assert history.doubles == []


def unanswered(operator: OperatorProcess) -> list[str]:
    """Lines of /metrics about writes to claims that got no answer."""
    lines = operator.metrics().splitlines()
    return [
        line
        for line in lines
        if line.startswith(WRITES) and "resourceclaims" in line and "unavailable" in line
    ]


@contextmanager
def waking(pid: int) -> Iterator[None]:
    """Has a process that stands still go on, whatever happens."""
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def asleep(pid: int) -> Iterator[None]:
    """A process does nothing and forgets nothing."""
    os.kill(pid, signal.SIGSTOP)
    with waking(pid):
        yield


@pytest.mark.parametrize("component", [SCHEDULER, CONTROLLER_MANAGER])
def test_stock_part_is_away_while_pods_come(fleet: Fleet, component: str) -> None:
    """Without kube-scheduler pods are pinned and not bound; without kube-controller-manager they have no claims. Both catch up."""
    plane = fleet.workspace.control_plane
    plane.kill_component(component)
    arrive(fleet, PODS)
    fleet.workspace.apply(pod("plain", gates=["dra-operator.io/allocate"]))
    wait_until(lambda: "plain" not in names_waiting(fleet), "the pod without claims released")
    plane.start_component(component)
    fleet.running_in_all(DEVICES)
    fleet.workspace.kubectl.delete("pod", "plain")

    assert_full_and_moving(fleet)
