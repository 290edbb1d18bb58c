"""Many pods at once, more than there are devices, and the operator killed in the middle, on a real control plane.

Everything is claimed to hold at every moment, not only at the end: `ClaimHistory` sees each version of each claim.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.e2e.crowd import (
    arrive,
    at_rest,
    cpu_seconds,
    names_running,
    names_waiting,
    template,
    until_allocated,
    until_running,
)
from tests.e2e.fleet import Fleet
from tests.e2e.harness.operator_process import BURST_LEASE, OperatorProcess
from tests.e2e.harness.waiting import wait_until
from tests.e2e.history import ClaimHistory
from tests.e2e.operator_log import complaints, told_on_failure

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.harness.cluster import ControlPlane
    from tests.e2e.harness.workspace import Workspace

pytestmark = pytest.mark.timeout(240)

NODES, DEVICES_A_NODE, PODS = 10, 10, 200
DEVICES = NODES * DEVICES_A_NODE
FLAGS = ("--settle-seconds=1", *BURST_LEASE)


@pytest.fixture
def crowded(served: Workspace) -> Fleet:
    """100 devices on ten nodes, in pools of ours that have settled."""
    return furnish(served)


def furnish(workspace: Workspace) -> Fleet:
    fleet = Fleet.of(workspace)
    fleet.plain(DEVICES_A_NODE, nodes=NODES)
    workspace.apply(template(fleet))
    return fleet


def test_200_pods_for_100_devices(crowded: Fleet, operator: OperatorProcess) -> None:
    """Exactly 100 run, no device is ever held twice, and as pods go the others follow."""
    crowded.own("gpu")
    kubectl = crowded.workspace.kubectl
    with ClaimHistory(crowded.workspace) as history:
        before, begin = cpu_seconds(operator), time.monotonic()
        arrive(crowded, PODS)
        until_running(crowded, DEVICES)
        assert at_rest(crowded) == []
        cpu = cpu_seconds(operator) - before
        first, waiting = served_and_waiting(crowded)

        assert (len(first), len(waiting)) == (DEVICES, PODS - DEVICES)
        tell("200 pods, 100 devices", begin, history, cpu)

        kubectl.delete("pod", *first[:30], wait=False)
        until_running_are(crowded, gone=first[:30])
        kubectl.delete("pod", *first[30:], wait=False)
        until_running_are(crowded, gone=first)
        assert at_rest(crowded) == []
        second, nobody = served_and_waiting(crowded)

    assert (second, nobody) == (waiting, [])
    assert history.doubles == []
    assert history.allocations == PODS
    assert complaints(operator.log_text()) == []


def served_and_waiting(fleet: Fleet) -> tuple[list[str], list[str]]:
    return names_running(fleet), names_waiting(fleet)


def until_running_are(fleet: Fleet, *, gone: list[str]) -> None:
    """Waits until 100 pods run that are not among those that went."""
    wait_until(
        lambda: set(names_running(fleet)) - set(gone),
        f"{DEVICES} others running",
        timeout=60,
        accept=lambda others: len(others) == DEVICES,
    )


def tell(what: str, begin: float, history: ClaimHistory, cpu: float) -> None:
    """Figures for people (`pytest -rP`); nothing is asserted of time."""
    moments = sorted(history.allocated.values())
    seconds = moments[-1] - begin
    print(
        f"{what}: {len(moments)} claims allocated, the last {seconds:.2f} s after the first pod was sent "
        f"({len(moments) / seconds:.0f} a second); CPU of the operator {cpu:.2f} s, {1000 * cpu / len(moments):.1f} ms a claim"
    )


@pytest.fixture
def unserved(enabled: Workspace) -> Fleet:
    """As `crowded`, before any operator runs."""
    return furnish(enabled)


def test_killed_in_the_middle_of_a_burst(
    unserved: Fleet,
    control_plane: ControlPlane,
    operator_kubeconfig: Path,
    request: pytest.FixtureRequest,
) -> None:
    """SIGKILL at several stages, each time a new operator: same end, nothing leaked, nothing held twice."""
    kubectl = unserved.workspace.kubectl
    with told_on_failure(request.session) as operators, ClaimHistory(unserved.workspace) as history:

        def start() -> OperatorProcess:
            operators.append(OperatorProcess.start(control_plane, operator_kubeconfig, *FLAGS))
            return operators[-1]

        running = start()
        try:
            unserved.own("gpu")
            arrive(unserved, PODS)
            for stage in (10, 40, 70):
                until_allocated(history, stage)
                running.kill()
                running = start()
            until_running(unserved, DEVICES)
            assert at_rest(unserved) == []
            first, waiting = served_and_waiting(unserved)

            assert (len(first), len(waiting)) == (DEVICES, PODS - DEVICES)

            kubectl.delete("pod", *first, wait=False)
            until_running_are(unserved, gone=first)
            assert at_rest(unserved) == []
        finally:
            running.stop()

    assert history.doubles == []
    assert [text for operator in operators for text in complaints(operator.log_text())] == []
