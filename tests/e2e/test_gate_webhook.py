"""The gate by a webhook on a real kube-apiserver: for each pod the same as by the policy; certificates that are renewed.

The API server calls the operator on loopback, by URL. The whole table is sent as dry runs: what admission makes of a pod comes back, and no pod is
left. `tests/scenarios/operator/test_webhook.py` asks what no API server would, `test_gate_webhook_down.py` tells what happens while nobody answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.admission import CASES, GATE, outcome
from tests.admission import pod as pod_of
from tests.authority import Authority
from tests.e2e.fleet import Fleet, gates
from tests.e2e.harness.objects import claim_template, exactly, pod
from tests.e2e.harness.operator_process import OperatorProcess
from tests.e2e.harness.waiting import wait_until
from tests.e2e.operator_fixtures import DEFAULT_FLAGS
from tests.e2e.operator_log import complaints, told_on_failure
from tests.e2e.webhooks import WAYS, Listener, created, is_put_on, labelled, policy, refusal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.harness.cluster import ControlPlane
    from tests.e2e.harness.workspace import Workspace
    from tests.e2e.webhooks import Object

__all__ = ["labelled"]


@pytest.fixture(scope="module")
def listener(tmp_path_factory: pytest.TempPathFactory) -> Listener:
    return Listener.make(tmp_path_factory.mktemp("webhook"))


@pytest.fixture(scope="module")
def answering(
    control_plane: ControlPlane,
    operator_kubeconfig: Path,
    listener: Listener,
    request: pytest.FixtureRequest,
) -> Iterator[OperatorProcess]:
    """An operator with its shipped rights that serves the webhook."""
    with (
        told_on_failure(request.session) as running,
        OperatorProcess.start(control_plane, operator_kubeconfig, *DEFAULT_FLAGS, *listener.flags) as started,
    ):
        running.append(started)
        yield started
    assert (started.exit_status, complaints(started.log_text())) == (0, [])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("by", ["policy", "webhook"])
def test_i19_each_pod_gets_the_same_by_policy_and_webhook(
    labelled: Workspace, answering: OperatorProcess, listener: Listener, by: str, way: str
) -> None:
    name = labelled.namespace
    labelled.apply(*(policy(name, way) if by == "policy" else [listener.configuration(name, way)]))
    wait_until(lambda: is_put_on(labelled), f"{by} heard of")

    found = {}
    for case in CASES:
        asked = pod_of(case)
        found[case.about] = outcome(asked["spec"], created(labelled, asked)["spec"])

    assert found == {case.about: case.expected(way) for case in CASES}
    assert labelled.kubectl.get_all("pods") == []


def test_claims_that_a_policy_adds_bring_the_gate_as_well(
    labelled: Workspace, answering: OperatorProcess, listener: Listener
) -> None:
    """Policies come before webhooks; here one for pods that have no claims of their own."""
    name = labelled.namespace
    labelled.apply(listener.configuration(name), *adding_claims(f"adding-{name}", name))
    wait_until(lambda: is_put_on(labelled), "configuration heard of")
    plain = pod("plain")

    seen = wait_until(
        lambda: created(labelled, plain)["spec"], "claims added", accept=lambda spec: "resourceClaims" in spec
    )

    assert outcome(plain["spec"], seen) == "gated"


def adding_claims(name: str, label: str) -> list[Object]:
    """A policy of somebody else's that adds a claim to pods without one."""
    admission, binding = policy(label, "gate")
    spec = {
        **admission["spec"],
        "reinvocationPolicy": "Never",
        "matchConditions": [
            {"name": "has-none", "expression": "!has(object.spec.resourceClaims)"},
        ],
        "mutations": [
            {
                "patchType": "ApplyConfiguration",
                "applyConfiguration": {
                    "expression": "Object{spec: Object.spec{resourceClaims: [Object.spec.resourceClaims{"
                    'name: "added", resourceClaimTemplateName: "absent"}]}}'
                },
            }
        ],
    }
    return [
        {**admission, "metadata": {"name": name}, "spec": spec},
        {**binding, "metadata": {"name": name}, "spec": {"policyName": name}},
    ]


def test_a_pod_is_gated_served_and_bound(
    labelled: Workspace, answering: OperatorProcess, listener: Listener
) -> None:
    fleet = Fleet.of(labelled)
    fleet.plain(2)
    fleet.own("gpu")
    labelled.apply(
        claim_template("one-gpu", exactly("gpu", fleet.name("gpu"))),
        listener.configuration(labelled.namespace),
    )
    wait_until(lambda: is_put_on(labelled), "configuration heard of")
    before = counted(answering)
    asked = pod("train", templates={"gpu": "one-gpu"})

    assert gates(created(labelled, asked, dry=False)) == [GATE]

    (served,) = fleet.running("train")
    assert served["spec"]["nodeName"] == fleet.node()
    assert fleet.devices("train") == {"gpu": ["gpu-0"]}
    assert counted(answering) == before + 1


def counted(operator: OperatorProcess) -> float:
    """Pods that got the gate."""
    wanted = 'dra_operator_admission_reviews_total{result="gated"} '
    (line,) = (line for line in operator.metrics().splitlines() if line.startswith(wanted))
    return float(line.removeprefix(wanted))


def test_a_renewed_certificate_needs_no_restart(
    labelled: Workspace, answering: OperatorProcess, listener: Listener, tmp_path: Path
) -> None:
    """Here of another authority, which the API server is told of as well."""
    labelled.apply(listener.configuration(labelled.namespace))
    wait_until(lambda: is_put_on(labelled), "configuration heard of")
    pid, other = answering.pid, Authority.make(tmp_path)

    labelled.apply(listener.configuration(labelled.namespace, authority=other))
    words = wait_until(lambda: refusal(labelled, pod("x", templates={"gpu": "absent"})), "not trusted yet")
    assert "certificate" in words
    other.sign(listener.folder)
    wait_until(lambda: not refusal(labelled, pod("x", templates={"gpu": "absent"})), "trusted")

    assert is_put_on(labelled)
    assert answering.pid == pid
    listener.authority.sign(listener.folder)
