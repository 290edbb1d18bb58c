"""Manifests such as real drivers' users write, through the real kubectl on a real control plane: the table of `tests/inputs/cases.py`.

Devices are published once for all cases that want the same; every case has a namespace of its own, whose devices are free again before the next.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import pytest

from tests.e2e.feed import snapshot
from tests.e2e.fleet import is_settled
from tests.e2e.harness.audit import holders
from tests.e2e.harness.objects import policy
from tests.e2e.harness.plugin import ENABLED, open_workspace
from tests.e2e.harness.waiting import wait_until
from tests.inputs.cases import CASES, Case, drivers
from tests.inputs.outcomes import problems

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.harness.cluster import ControlPlane
    from tests.e2e.harness.operator_process import OperatorProcess
    from tests.e2e.harness.workspace import Workspace

POLICY = "real-manifests"
FLEETS = [
    list(cases)
    for _, cases in groupby(
        sorted(CASES, key=lambda case: str(case.fleet_path)), lambda case: case.fleet_path
    )
]


@pytest.fixture
def admin(
    control_plane: ControlPlane, module_operator: OperatorProcess, request: pytest.FixtureRequest
) -> Iterator[Workspace]:
    """Publishes devices; what it applies is gone after the test."""
    yield from open_workspace(control_plane, request)


def publish(admin: Workspace, case: Case) -> None:
    """Nodes, classes and slices as the file has them, and a policy that owns all of its drivers."""
    fleet = case.fleet()
    admin.apply(case.fleet_path.read_text(), validate=not case.lenient)
    admin.apply(policy(POLICY, *({"driver": driver} for driver in drivers(fleet))))
    admin.kubectl.until("allocationpolicy", POLICY, is_settled, "rules in place and settled")
    admin.nodes_ready(*(obj["metadata"]["name"] for obj in fleet if obj["kind"] == "Node"))


@pytest.mark.parametrize("cases", FLEETS, ids=lambda cases: f"{cases[0].driver}-{cases[0].devices}")
def test_manifests_get_what_their_writers_meant(
    cases: list[Case], admin: Workspace, control_plane: ControlPlane, request: pytest.FixtureRequest
) -> None:
    publish(admin, cases[0])
    for case in cases:
        for workspace in open_workspace(control_plane, request, labels=ENABLED | case.labels):
            feed(workspace, case)
        wait_until(lambda: in_use(admin), "all devices free again", accept=lambda held: not held)


def feed(workspace: Workspace, case: Case) -> None:
    """The file as it is. Deployments go before their pods, which they would make again."""
    kubectl = workspace.kubectl
    workspace.apply(case.path.read_text(), validate=not case.lenient)
    try:
        wait_until(lambda: problems(case.demands, snapshot(kubectl)), case.id, accept=lambda found: not found)
    finally:
        kubectl.run("delete", "deployments", "--all", "--cascade=foreground")


def in_use(admin: Workspace) -> list[tuple[str, str, str]]:
    """Devices that any claim holds."""
    return list(holders(admin.kubectl.get_all("resourceclaims", "--all-namespaces")))
