"""Objects written in v1beta1 and v1beta2, on a control plane that is told to serve these: it converts, the operator reads v1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.feed import snapshot
from tests.e2e.fleet import is_settled
from tests.e2e.harness.cluster import Options
from tests.e2e.harness.objects import policy
from tests.e2e.harness.operator_process import OperatorProcess, install
from tests.e2e.harness.plugin import ENABLED, open_workspace, own_control_plane
from tests.e2e.harness.waiting import wait_until
from tests.e2e.operator_fixtures import DEFAULT_FLAGS
from tests.e2e.operator_log import complaints, told_on_failure
from tests.inputs.manifests import HERE
from tests.inputs.outcomes import Holds, Named, Serves, problems

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.harness.workspace import Workspace

BETAS = Options(runtime_config={f"resource.k8s.io/{version}": "true" for version in ("v1beta1", "v1beta2")})
DRIVER = "tpu.google.com"
DEMANDS = (
    Serves("by-beta-1", {"tpu": 1}),
    Named("by-beta-1", "tpu", ("accel1",)),
    Holds("by-beta-1", "tpu", f"{DRIVER}/tpuGen", "v4"),
    Serves("by-beta-2", {"tpu/any": 1}),
    Named("by-beta-2", "tpu/any", ("accel0",)),
)


@pytest.fixture
def workspace(request: pytest.FixtureRequest) -> Iterator[Workspace]:
    """On a control plane of its own, with an operator."""
    with (
        own_control_plane(request.session, BETAS) as plane,
        told_on_failure(request.session) as running,
        OperatorProcess.start(plane, install(plane), *DEFAULT_FLAGS) as started,
    ):
        running.append(started)
        yield from open_workspace(plane, request, labels=ENABLED)
        assert complaints(started.log_text()) == []


def test_objects_of_older_versions_are_served_like_those_of_v1(workspace: Workspace) -> None:
    workspace.apply(policy("old", {"driver": DRIVER}))
    workspace.apply((HERE / "versions" / "v1beta1.yaml").read_text())
    workspace.apply((HERE / "versions" / "v1beta2.yaml").read_text())
    kubectl = workspace.kubectl
    kubectl.until("allocationpolicy", "old", is_settled, "rules in place and settled")
    wait_until(lambda: problems(DEMANDS, snapshot(kubectl)), "both pods served", accept=lambda left: not left)
    (published,) = kubectl.get_all("resourceslices")
    assert published["apiVersion"] == "resource.k8s.io/v1"
    assert published["spec"]["devices"][1]["capacity"] == {"memory": {"value": "32Gi"}}
