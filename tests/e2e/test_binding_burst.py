"""Many pods that name the operator as their scheduler, and the operator killed in the middle, on a real control plane."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.crowd import arrive, at_rest, template, until_allocated, until_running
from tests.e2e.fleet import Fleet
from tests.e2e.harness.operator_process import BURST_LEASE, OperatorProcess
from tests.e2e.history import ClaimHistory
from tests.e2e.operator_log import complaints, told_on_failure

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.harness.cluster import ControlPlane
    from tests.e2e.harness.workspace import Workspace

FLAGS = ("--settle-seconds=1", *BURST_LEASE)
pytestmark = pytest.mark.timeout(240)

NODES, DEVICES_A_NODE, PODS = 20, 10, 200


def test_killed_in_the_middle_of_a_burst_that_it_binds_itself(
    workspace: Workspace,
    control_plane: ControlPlane,
    operator_kubeconfig: Path,
    request: pytest.FixtureRequest,
) -> None:
    """SIGKILL at two stages, each time a new operator: every pod is bound to the node of its device, which nobody else has."""
    fleet = Fleet.of(workspace)
    fleet.plain(DEVICES_A_NODE, nodes=NODES)
    workspace.apply(template(fleet))
    with told_on_failure(request.session) as operators, ClaimHistory(workspace) as history:

        def start() -> OperatorProcess:
            operators.append(OperatorProcess.start(control_plane, operator_kubeconfig, *FLAGS))
            return operators[-1]

        running = start()
        try:
            fleet.own("gpu")
            arrive(fleet, PODS, schedulerName="dra-operator")
            for stage in (40, 120):
                until_allocated(history, stage)
                running.kill()
                running = start()
            until_running(fleet, PODS)
            assert at_rest(fleet) == []
        finally:
            running.stop()

    assert history.doubles == []
    assert [text for operator in operators for text in complaints(operator.log_text())] == []
