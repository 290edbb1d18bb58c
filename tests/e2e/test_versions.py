"""An older Kubernetes: 1.36 serves no DeviceTaintRules by default, so nothing keeps kube-scheduler off our pools, and we say so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.fleet import Fleet, conditions
from tests.e2e.harness.cluster import Options
from tests.e2e.harness.objects import claim_template, exactly, pod, policy
from tests.e2e.harness.operator_process import OperatorProcess, install
from tests.e2e.harness.plugin import ENABLED, open_workspace, shared_control_plane
from tests.e2e.operator_fixtures import DEFAULT_FLAGS
from tests.e2e.operator_log import complaints, told_on_failure

if TYPE_CHECKING:
    from collections.abc import Iterator

OLDER = Options(emulated_version="1.36")


@pytest.fixture
def fleet(request: pytest.FixtureRequest) -> Iterator[Fleet]:
    """One node with two devices, a template for one, and an operator that has just started."""
    plane = shared_control_plane(request.session, OLDER)
    rights = install(plane)
    with (
        told_on_failure(request.session) as running,
        OperatorProcess.start(plane, rights, *DEFAULT_FLAGS) as started,
    ):
        running.append(started)
        for workspace in open_workspace(plane, request, labels=ENABLED):
            made = Fleet.of(workspace)
            made.plain(2)
            workspace.apply(claim_template("one-gpu", exactly("gpu", made.name("gpu"))))
            yield made
    assert complaints(started.log_text()) == []


def test_pods_are_served_and_the_policy_says_what_is_missing(fleet: Fleet) -> None:
    """No rule, so no settling; the shipped gate, claims, write protocol and rights are those of 1.37."""
    name = fleet.name("policy")
    fleet.workspace.apply(
        policy(name, {"driver": fleet.name("gpu")}),
        pod("train", templates={"gpu": "one-gpu"}),
    )
    fleet.running("train")
    told = fleet.workspace.kubectl.until(
        "allocationpolicy", name, lambda found: "Ready" in conditions(found), "told of"
    )

    assert {name: conditions(told)[name] for name in ("Ready", "Enforced", "Settling")} == {
        "Ready": ("True", "NotEnforced"),
        "Enforced": ("False", "TaintRulesNotServed"),
        "Settling": ("False", "Settled"),
    }
    (claim,) = fleet.workspace.kubectl.get_all("resourceclaims")
    assert "dra-operator.io/allocated" in claim["metadata"]["annotations"]
