"""Both modes of the operator and both ways by which pods come to it: fixtures for tests that hold to a rule wherever it applies.

A test with the fixture `place` runs four times, one with `in_mode` twice (pods come by the gate). Per mode there is one control plane and
one operator a module, with PodGroups served. What a mode lacks is said by `only`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.crowd import TEMPLATE
from tests.e2e.fleet import Fleet
from tests.e2e.harness.components import Options
from tests.e2e.harness.objects import claim_template, exactly, pod
from tests.e2e.harness.operator_process import ROOT, OperatorProcess, install
from tests.e2e.harness.plugin import ENABLED, open_workspace, own_control_plane
from tests.e2e.operator_log import complaints, told_on_failure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.fleet import Object
    from tests.e2e.harness.cluster import ControlPlane
    from tests.e2e.harness.kubectl import Kubectl
    from tests.e2e.harness.workspace import Workspace

COOPERATE, REPLACE = "cooperate", "replace"
GATE, NAME = "gate", "name"
GROUPS: dict[str, Any] = {
    "feature_gates": {"GenericWorkload": True, "DRAWorkloadResourceClaims": True},
    "runtime_config": {"scheduling.k8s.io/v1beta1": "true"},
}
WITHOUT_STOCK_PARTS: dict[str, Any] = {
    "controllers": ("*", "-resourceclaim-controller"),
    "disabled_scheduler_plugins": ("DynamicResources",),
}
OPTIONS = {COOPERATE: Options(**GROUPS), REPLACE: Options(**GROUPS, **WITHOUT_STOCK_PARTS)}
FLAGS = {
    COOPERATE: ("--settle-seconds=0.2",),
    REPLACE: ("--mode=replace", "--settle-seconds=0"),
}


EXPLAINED = ("exceeded quota", "not today")
"""Refusals in the log that tests bring about."""

only_cooperate = pytest.mark.parametrize("mode", [COOPERATE], indirect=True, scope="module")
only_replace = pytest.mark.parametrize("mode", [REPLACE], indirect=True, scope="module")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a test's pods are served, and how they come there.

    Attributes:
        mode: `cooperate` or `replace`.
        way: `gate` or `name`.
        fleet: One node with two devices that the operator allocates, a class, and a template for one device.
    """

    mode: str
    way: str
    fleet: Fleet

    @property
    def workspace(self) -> Workspace:
        """The test's namespace."""
        return self.fleet.workspace

    @property
    def kubectl(self) -> Kubectl:
        """Administrator in it."""
        return self.workspace.kubectl

    def pod(self, name: str, **how: Any) -> Object:
        """A pod that comes the way of this place; arguments as of `objects.pod`."""
        made = pod(name, **how)
        if self.way == NAME:
            made["spec"]["schedulerName"] = "dra-operator"
        return made

    def wants(self) -> Object:
        """A request for one device."""
        return exactly("gpu", self.fleet.name("gpu"))


@pytest.fixture(scope="module", params=[COOPERATE, REPLACE])
def mode(request: pytest.FixtureRequest) -> str:
    """The mode of the operator."""
    return str(request.param)


@pytest.fixture(params=[GATE, NAME])
def way(request: pytest.FixtureRequest) -> str:
    """The way by which pods come."""
    return str(request.param)


@pytest.fixture(scope="module")
def mode_plane(mode: str, request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """The control plane of the mode, the shipped overlay applied, without its Deployment."""
    with own_control_plane(request.session, OPTIONS[mode]) as plane:
        yield plane


@pytest.fixture(scope="module")
def mode_operator(
    mode: str, mode_plane: ControlPlane, request: pytest.FixtureRequest
) -> Iterator[OperatorProcess]:
    """The operator in that mode, with the rights of the overlay and no others; must end well and complain of nothing."""
    kubeconfig = install(mode_plane, ROOT / "manifests" / "overlays" / mode)
    with (
        told_on_failure(request.session) as running,
        OperatorProcess.start(mode_plane, kubeconfig, *FLAGS[mode]) as started,
    ):
        running.append(started)
        yield started
    assert started.exit_status == 0
    found = complaints(started.log_text())
    assert [line for line in found if not any(word in line for word in EXPLAINED)] == []


def _open(mode: str, way: str, plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Place]:
    labels = ENABLED if mode == COOPERATE else None
    for workspace in open_workspace(plane, request, labels=labels, gated=True):
        fleet = Fleet.of(workspace)
        fleet.plain(2)
        if mode == COOPERATE:
            fleet.own("gpu")
        workspace.apply(claim_template(TEMPLATE, exactly("gpu", fleet.name("gpu"))))
        yield Place(mode, way, fleet)


@pytest.fixture
def place(
    mode: str,
    way: str,
    mode_plane: ControlPlane,
    mode_operator: OperatorProcess,
    request: pytest.FixtureRequest,
) -> Iterator[Place]:
    """A namespace, a node and two devices, in each mode and by each way."""
    yield from _open(mode, way, mode_plane, request)


@pytest.fixture
def in_mode(
    mode: str, mode_plane: ControlPlane, mode_operator: OperatorProcess, request: pytest.FixtureRequest
) -> Iterator[Place]:
    """The same in each mode; pods come by the gate."""
    yield from _open(mode, GATE, mode_plane, request)
