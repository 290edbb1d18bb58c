"""The pytest fixtures of the real control plane.

`tests/e2e/conftest.py` imports them; other tiers that run against the real server (the contract suite) do the same. Per
pytest run there is one control plane for each set of options, however many places ask for it. If it cannot be built or
started, the tests fail: a skipped end-to-end tier would look like a passed one.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from tests.e2e.harness.build import Binaries, ensure_binaries
from tests.e2e.harness.cluster import ControlPlane, Options
from tests.e2e.harness.operator_process import OperatorProcess, install
from tests.e2e.harness.workspace import ENABLED_LABEL, Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from _pytest.capture import CaptureManager

    from tests.e2e.harness.kubectl import Kubectl

__all__ = [
    "control_plane",
    "control_plane_without_claim_controller",
    "enabled",
    "kubectl",
    "namespace",
    "operator",
    "operator_flags",
    "operator_kubeconfig",
    "own_control_plane",
    "served",
    "shared_control_plane",
    "stop_shared",
    "workspace",
]

ENABLED = {ENABLED_LABEL: "true"}
WITHOUT_CLAIM_CONTROLLER = Options(controllers=("*", "-resourceclaim-controller"))

_running: pytest.StashKey[dict[str, ControlPlane]] = pytest.StashKey()


def build_early(config: pytest.Config) -> Binaries:
    """Builds outside of any test's time limit, and tells the waiting person so past pytest's capture."""
    capture: CaptureManager | None = config.pluginmanager.getplugin("capturemanager")

    def say(message: str) -> None:
        if capture is None:
            print(message, flush=True)
            return
        with capture.global_and_fixture_disabled():
            print(f"\n{message}", flush=True)

    return ensure_binaries(say)


def shared_control_plane(
    session: pytest.Session, options: Options | None = None, purpose: str = ""
) -> ControlPlane:
    """The run's control plane with these options, started at the first call and stopped at the end of the run.

    Tests that install and remove the operator have one of their own, by `purpose`: the others count on the manifests.
    When tests failed, its logs are kept and their place is told.
    """
    wanted = options or Options()
    running = session.config.stash.setdefault(_running, {})
    key = purpose + repr(wanted)
    if key not in running:
        running[key] = ControlPlane.start(wanted, build_early(session.config))
    return running[key]


def stop_shared(session: pytest.Session) -> None:
    """Stops the run's control planes: for `pytest_sessionfinish`. Whatever comes later in a process of pytest-xdist has ten seconds, and then is killed."""
    for control_plane in session.config.stash.get(_running, {}).values():
        _stop(control_plane, failed=session.testsfailed > 0)


@contextmanager
def own_control_plane(session: pytest.Session, options: Options) -> Iterator[ControlPlane]:
    """A control plane for one test or module that needs other options than the rest: an idle one costs a tenth of a core for as long as it runs.

    When tests failed meanwhile, its logs are kept and their place is told.
    """
    before = session.testsfailed
    control_plane = ControlPlane.start(options, build_early(session.config))
    try:
        yield control_plane
    finally:
        _stop(control_plane, failed=session.testsfailed > before)


def _stop(control_plane: ControlPlane, *, failed: bool) -> None:
    control_plane.stop(keep_logs=failed)
    if failed:
        print(f"logs of the control plane: {control_plane.folder}", flush=True)


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest) -> ControlPlane:
    """Stock Kubernetes 1.37 with kwok nodes."""
    return shared_control_plane(request.session)


@pytest.fixture(scope="session")
def control_plane_without_claim_controller(request: pytest.FixtureRequest) -> ControlPlane:
    """As `control_plane`, but nobody generates or releases claims (`--generate-claims=always` is then ours)."""
    return shared_control_plane(request.session, WITHOUT_CLAIM_CONTROLLER)


@pytest.fixture
def workspace(control_plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Workspace]:
    """A namespace of the test's own, and a list of the cluster-scoped objects that it applied."""
    yield from open_workspace(control_plane, request)


@pytest.fixture
def namespace(workspace: Workspace) -> str:
    """Name of the test's own namespace."""
    return workspace.namespace


@pytest.fixture
def kubectl(workspace: Workspace) -> Kubectl:
    """Administrator's kubectl in the test's own namespace."""
    return workspace.kubectl


@pytest.fixture(scope="session")
def operator_kubeconfig(control_plane: ControlPlane) -> Path:
    """The shipped manifests applied, and a kubeconfig with exactly the rights that they give."""
    return install(control_plane)


@pytest.fixture
def enabled(
    control_plane: ControlPlane,
    operator_kubeconfig: Path,
    request: pytest.FixtureRequest,
) -> Iterator[Workspace]:
    """A workspace whose pods get the gate; no operator runs for it."""
    yield from open_workspace(control_plane, request, labels=ENABLED, gated=True)


@pytest.fixture
def operator_flags() -> tuple[str, ...]:
    """Flags of `dra-operator run`; a module or class that needs others overrides this fixture."""
    return ("--settle-seconds=1",)


@pytest.fixture
def operator(
    control_plane: ControlPlane,
    operator_kubeconfig: Path,
    operator_flags: tuple[str, ...],
) -> Iterator[OperatorProcess]:
    """The operator, ready, with exactly its shipped rights; one of its own for each test."""
    with OperatorProcess.start(control_plane, operator_kubeconfig, *operator_flags) as running:
        yield running


@pytest.fixture
def served(
    control_plane: ControlPlane,
    operator: OperatorProcess,
    request: pytest.FixtureRequest,
) -> Iterator[Workspace]:
    """A workspace whose pods get the gate and are served; closed while the operator still runs, which lets its objects go."""
    yield from open_workspace(control_plane, request, labels=ENABLED, gated=True)


def open_workspace(
    where: ControlPlane,
    request: pytest.FixtureRequest,
    labels: dict[str, str] | None = None,
    *,
    gated: bool = False,
) -> Iterator[Workspace]:
    """For fixtures: a workspace on a certain control plane, its namespace labelled, closed after the test.

    Args:
        where: The control plane.
        request: Of the test, which it is named after.
        labels: Of the namespace.
        gated: Wait until new pods get the gate: the shipped manifests may have been applied just now.
    """
    opened = Workspace.create(where, _namespace_name(request.node.name), labels)
    try:
        if gated:
            opened.until_gated()
        yield opened
    finally:
        opened.close()


def _namespace_name(test: str) -> str:
    """A readable name of a test that is a valid and new namespace name (63 characters at most)."""
    readable = re.sub(r"[^a-z0-9]+", "-", test.lower()).strip("-")[:48].strip("-")
    return f"{readable}-{uuid4().hex[:8]}"
