"""Manifests such as real drivers' users write, through the real kubectl on a real control plane: the table of `tests/inputs/cases.py`.

Devices are published once for all cases that want the same; every case has a namespace of its own, whose devices are free again before the next.
Half of them is fed in every run, each shape at least once; `DRA_E2E_INPUTS=all` feeds all (minutes).
"""

from __future__ import annotations

import os
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

EVERY_RUN = frozenset(
    {
        "nvidia/a100-efa",
        "nvidia/mig-static",
        "nvidia/mig-dynamic",
        "nvidia/gb200",
        "example/gpus",
        "amd/mi300x",
        "sriov/vfs",
        "traps/limits",
        "traps/no-attributes",
        "traps/upper",
    }
)
"""Devices whose cases are fed in every run."""


def fleet_of(case: Case) -> str:
    """Name of the devices that a case wants."""
    return f"{case.driver}/{case.devices}"


WANTED = [case for case in CASES if os.environ.get("DRA_E2E_INPUTS") == "all" or fleet_of(case) in EVERY_RUN]
FLEETS = [list(cases) for _, cases in groupby(sorted(WANTED, key=fleet_of), fleet_of)]


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
    name = admin.namespace[-8:]
    admin.apply(policy(f"inputs-{name}", *({"driver": driver} for driver in drivers(fleet))))
    admin.kubectl.until("allocationpolicy", f"inputs-{name}", is_settled, "rules in place and settled")
    admin.nodes_ready(*(obj["metadata"]["name"] for obj in fleet if obj["kind"] == "Node"))


@pytest.mark.parametrize("cases", FLEETS, ids=lambda cases: fleet_of(cases[0]))
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
