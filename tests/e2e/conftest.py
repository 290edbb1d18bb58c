"""Fixtures of the end-to-end tier: all from the harness, and a time limit that fits a real control plane."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.harness.build import BuildError
from tests.e2e.harness.plugin import (
    build_early,
    control_plane,
    control_plane_without_claim_controller,
    enabled,
    kubectl,
    namespace,
    operator,
    operator_flags,
    operator_kubeconfig,
    served,
    stop_shared,
    workspace,
)
from tests.e2e.install_fixtures import install_plane, installed
from tests.e2e.operator_fixtures import managed, module_operator, ungated

__all__ = [
    "control_plane",
    "control_plane_without_claim_controller",
    "enabled",
    "install_plane",
    "installed",
    "kubectl",
    "managed",
    "module_operator",
    "namespace",
    "operator",
    "operator_flags",
    "operator_kubeconfig",
    "served",
    "ungated",
    "workspace",
]

HERE = Path(__file__).resolve().parent


@pytest.hookimpl(trylast=True)  # after the fixtures
def pytest_sessionfinish(session: pytest.Session) -> None:
    """The control planes end in good order, and leave which rights were used (`harness/rights.py`)."""
    stop_shared(session)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Builds the control plane before the first test, whose time limit would not allow for the minutes of a first build."""
    if session.config.option.collectonly:
        return
    if any(HERE in item.path.parents for item in session.items):
        try:
            build_early(session.config)
        except BuildError as error:
            pytest.exit(f"the end-to-end tier cannot run: {error}", returncode=pytest.ExitCode.INTERNAL_ERROR)
