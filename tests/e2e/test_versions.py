"""The older versions of Kubernetes that are supported: the same binary behaves as each of them (real-control-plane, section 9).

None of them serves DeviceTaintRules by default, so nothing keeps kube-scheduler off our pools, and we say so. 1.36 is told to serve them here,
in the version that it has: then they are used.
"""

from __future__ import annotations

import json
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.e2e.fleet import Fleet, claims_of, conditions
from tests.e2e.harness.cluster import ControlPlane, Options
from tests.e2e.harness.objects import claim, claim_template, exactly, pod, policy
from tests.e2e.harness.operator_process import QUICK_LEASE, ROOT, OperatorProcess, install
from tests.e2e.harness.plugin import ENABLED, open_workspace, own_control_plane
from tests.e2e.harness.waiting import wait_until
from tests.e2e.operator_fixtures import DEFAULT_FLAGS
from tests.e2e.operator_log import complaints, told_on_failure
from tests.e2e.webhooks import LABEL, Listener

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from tests.e2e.harness.workspace import Workspace

FLAGS = (*DEFAULT_FLAGS, *QUICK_LEASE)
GATE_POLICY_SINCE = 36
"""MutatingAdmissionPolicies are served by default from then on; before, the webhook puts the gate on."""


RULES_SINCE = 36
"""Told to serve DeviceTaintRules here."""

WITH_RULES = Options(
    emulated_version=f"1.{RULES_SINCE}",
    runtime_config={"resource.k8s.io/v1beta2": "true"},
    apiserver_flags=("--feature-gates=DRADeviceTaintRules=true",),
)
"""Only kube-apiserver is told: a 1.37 kube-scheduler that emulates 1.36 asks for v1 all the same, gets none, and then schedules nothing."""


@dataclass(frozen=True, slots=True)
class Older:
    """An older Kubernetes with an operator, one node with two devices, a template for one.

    Where it serves no MutatingAdmissionPolicies, the operator serves the webhook that stands in for them.
    """

    minor: int
    plane: ControlPlane
    rights: Path
    fleet: Fleet
    operators: list[OperatorProcess]
    flags: tuple[str, ...]

    @property
    def operator(self) -> OperatorProcess:
        """The one that runs."""
        return self.operators[-1]

    @property
    def has_rules(self) -> bool:
        """Whether DeviceTaintRules are served."""
        return self.minor == RULES_SINCE

    def readiness(self) -> dict[str, Any]:
        """The detail of `/readyz`."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{self.operator.url}/readyz", timeout=5) as answer:
            return dict(json.load(answer))

    def restart(self) -> None:
        """The operator is killed, and another one starts."""
        self.operator.kill()
        self.operators.append(OperatorProcess.start(self.plane, self.rights, *self.flags))


@pytest.fixture(params=[34, 35, 36], ids=lambda minor: f"1.{minor}")
def older(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Older]:
    """See `Older`."""
    minor, listener = request.param, Listener.make(tmp_path)
    flags = (*FLAGS, *(listener.flags if minor < GATE_POLICY_SINCE else ()))
    options = WITH_RULES if minor == RULES_SINCE else Options(emulated_version=f"1.{minor}")
    folders = () if minor >= GATE_POLICY_SINCE else (ROOT / "crds", ROOT / "manifests" / "base")
    with own_control_plane(request.session, options) as plane, told_on_failure(request.session) as running:
        rights = install(plane, *folders)
        running.append(OperatorProcess.start(plane, rights, *flags))
        try:
            for workspace in open_workspace(plane, request, labels={**ENABLED, LABEL: "webhook"}):
                if minor < GATE_POLICY_SINCE:
                    put_on(workspace, listener)
                made = Fleet.of(workspace)
                made.plain(2)
                workspace.apply(claim_template("one-gpu", exactly("gpu", made.name("gpu"))))
                yield Older(minor, plane, rights, made, running, flags)
        finally:
            running[-1].stop()
        assert [line for started in running for line in complaints(started.log_text())] == []


def put_on(workspace: Workspace, listener: Listener) -> None:
    """Have the API server ask about the pods of the workspace, and wait until it has heard so."""
    workspace.apply(listener.configuration("webhook"))
    workspace.until_gated()


def test_the_smoke_set(older: Older) -> None:
    """What the version lacks is told; both ways in, a shared claim, a restart and the end of pods are as on 1.37."""
    told_what_is_missing(older)
    served_by_both_ways(older)
    shared_and_released_over_a_restart(older)


def told_what_is_missing(older: Older) -> None:
    """In the policy's status and in `/readyz` (issue: features that the server lacks)."""
    fleet = older.fleet
    name = fleet.name("policy")
    fleet.workspace.apply(policy(name, {"driver": fleet.name("gpu")}))
    told = fleet.workspace.kubectl.until(
        "allocationpolicy",
        name,
        lambda found: conditions(found).get("Ready", ("", ""))[0] == "True",
        "of use",
    )
    enforced = ("True", "RulesInPlace") if older.has_rules else ("False", "TaintRulesNotServed")
    assert conditions(told)["Enforced"] == enforced
    if not older.has_rules:
        assert conditions(told)["Ready"] == ("True", "NotEnforced")
    detail = older.readiness()
    assert detail["kubernetes"].endswith(f" as 1.{older.minor}")
    assert ("DeviceTaintRule" in detail["notServed"]) != older.has_rules
    assert ("DRADeviceTaints" in detail["offByDefault"]) == (older.minor < 36)
    assert "DRAFractionalCapacityRange" in detail["offByDefault"]


def served_by_both_ways(older: Older) -> None:
    """One device each: through the gate, kube-scheduler binds; by the scheduler's name, we do."""
    fleet = older.fleet
    fleet.workspace.apply(
        pod("gated", templates={"gpu": "one-gpu"}),
        pod("named", templates={"gpu": "one-gpu"}, schedulerName="dra-operator"),
    )
    fleet.running("gated", "named")
    kubectl = fleet.workspace.kubectl
    for name in ("gated", "named"):
        (made,) = claims_of(kubectl, name)
        assert "dra-operator.io/allocated" in made["metadata"]["annotations"]
        assert made["status"]["allocation"]["allocationTimestamp"]
    kubectl.delete("pods", "gated", "named")
    wait_until(lambda: not kubectl.get_all("resourceclaims"), "the claims of both pods gone")


def shared_and_released_over_a_restart(older: Older) -> None:
    """Two pods on one claim; the operator is killed; a third waits until both devices are free again, and gets its own."""
    fleet = older.fleet
    kubectl = fleet.workspace.kubectl
    fleet.workspace.apply(
        claim("shared", exactly("gpu", fleet.name("gpu"), count=2)),
        pod("a", claims={"gpu": "shared"}),
        pod("b", claims={"gpu": "shared"}),
    )
    fleet.running("a", "b")
    older.restart()
    fleet.workspace.apply(pod("third", templates={"gpu": "one-gpu"}))
    fleet.told("third", "AllocationFailed")
    kubectl.delete("pods", "a", "b")
    fleet.running("third")
    kubectl.until(
        "resourceclaim",
        "shared",
        lambda left: "allocation" not in left.get("status", {}) and not left["metadata"].get("finalizers"),
        "free again",
    )
