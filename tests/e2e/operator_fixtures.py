"""Fixtures of one operator for all tests of a module, and of workspaces that it serves.

`conftest.py` imports them. Tests that kill, stop or start the operator use the harness's fixture `operator`, one a test, and live
in modules of their own: two operators at once on one control plane would both allocate. A module sets other flags by
`OPERATOR_FLAGS`, and says by `LOG_MAY_HOLD` which complaints its own doing explains.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.harness.operator_process import OperatorProcess
from tests.e2e.harness.plugin import ENABLED, open_workspace
from tests.e2e.operator_log import complaints, told_on_failure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.harness.cluster import ControlPlane
    from tests.e2e.harness.workspace import Workspace

DEFAULT_FLAGS = ("--settle-seconds=1",)


@pytest.fixture(scope="module")
def module_operator(
    control_plane: ControlPlane, operator_kubeconfig: Path, request: pytest.FixtureRequest
) -> Iterator[OperatorProcess]:
    """The operator, ready, with its shipped rights; must end well and leave nothing in its log that asks for mending."""
    flags = getattr(request.module, "OPERATOR_FLAGS", DEFAULT_FLAGS)
    with (
        told_on_failure(request.session) as running,
        OperatorProcess.start(control_plane, operator_kubeconfig, *flags) as started,
    ):
        running.append(started)
        yield started
    assert started.exit_status == 0
    explained = getattr(request.module, "LOG_MAY_HOLD", ())
    assert [
        line for line in complaints(started.log_text()) if not any(word in line for word in explained)
    ] == []


@pytest.fixture
def managed(
    control_plane: ControlPlane, module_operator: OperatorProcess, request: pytest.FixtureRequest
) -> Iterator[Workspace]:
    """A workspace whose pods get the gate and are served by the module's operator."""
    yield from open_workspace(control_plane, request, labels=ENABLED, gated=True)


@pytest.fixture
def ungated(
    control_plane: ControlPlane, module_operator: OperatorProcess, request: pytest.FixtureRequest
) -> Iterator[Workspace]:
    """A workspace whose pods get no gate, while the module's operator runs."""
    yield from open_workspace(control_plane, request)
