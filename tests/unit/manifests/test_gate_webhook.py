"""The component `gate-webhook`: the policy's pods, its failurePolicy, and the operator behind it.

And the shipped policies themselves: their expressions are evaluated by cel-python here, over the table that the webhook answers by; the API
server does so in `tests/e2e/test_gate_webhook.py`.
"""

from __future__ import annotations

import os
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import celpy
import pytest
from celpy.adapter import json_to_cel

from dra_operator.app.command import main
from dra_operator.app.ending import GRACE_SECONDS
from dra_operator.app.operator import DRAIN_SECONDS
from dra_operator.app.webhook import READ_SECONDS
from dra_operator.kube.lease import REQUEST_SECONDS
from dra_operator.placement import Way
from dra_operator.settings import build, origins
from tests.admission import CASES, Case, pod
from tests.unit.manifests.build import (
    CERTIFICATE,
    ROOT,
    WEBHOOK,
    built,
    built_with,
    kustomize,
    of_kind,
    one,
    overlay,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.manifests.build import Obj

BIND = "manifests/components/bind-pods"
REPLACE = "manifests/overlays/replace"
GATE = "dra-operator-gate"
COPIED = {
    "failurePolicy": ("failurePolicy",),
    "reinvocationPolicy": ("reinvocationPolicy",),
    "matchConditions": ("matchConditions",),
    "matchPolicy": ("matchConstraints", "matchPolicy"),
    "objectSelector": ("matchConstraints", "objectSelector"),
    "namespaceSelector": ("matchConstraints", "namespaceSelector"),
    "rules": ("matchConstraints", "resourceRules"),
}
"""Fields of the webhook, and where the policy has them."""


def policy(way: str) -> Obj:
    shipped = built_with((BIND,)) if way == "name" else built()
    return dict(one(shipped, "MutatingAdmissionPolicy", GATE))


def webhook(objects: Any) -> Obj:
    (found,) = one(objects, "MutatingWebhookConfiguration", GATE)["webhooks"]
    return dict(found)


# --------------------------------------------------------------------------- the policies


def evaluated(expression: str, spec: Obj, variables: dict[str, bool]) -> bool:
    environment = celpy.Environment()
    program = environment.program(environment.compile(expression))
    return bool(
        program.evaluate({"object": json_to_cel({"spec": spec}), "variables": json_to_cel(variables)})
    )


def shown(case: Case) -> Obj:
    """The spec of a pod as the API server shows it to policies: with the scheduler filled in, without what is empty."""
    spec = {name: value for name, value in pod(case)["spec"].items() if value not in (None, "", [])}
    return {"schedulerName": "default-scheduler", **spec}


def given(case: Case, way: str) -> str:
    """What the policy gives to the pod of a case."""
    spec = shown(case)
    found = policy(way)["spec"]
    if not all(evaluated(condition["expression"], spec, {}) for condition in found["matchConditions"]):
        return "untouched"
    variables: dict[str, bool] = {}
    for variable in found.get("variables", []):
        variables[variable["name"]] = evaluated(variable["expression"], spec, variables)
    (mutation,) = found["mutations"]
    condition, asks, _ = mutation["applyConfiguration"]["expression"].partition("?")
    if asks and evaluated(condition, spec, variables):
        return "named"
    has_it = any(gate["name"] == "dra-operator.io/allocate" for gate in spec.get("schedulingGates") or [])
    return "untouched" if has_it else "gated"


@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.about)
def test_the_policy_gives_a_pod_what_the_table_says(way: Way, case: Case) -> None:
    assert given(case, way) == case.expected(way)


@pytest.mark.parametrize("way", Way)
def test_each_part_of_the_policy_decides_some_case(way: Way) -> None:
    """Or the table would not notice if the webhook lacked it: in some case it, and no other, says no."""
    conditions, variables = (policy(way)["spec"].get(part, []) for part in ("matchConditions", "variables"))
    deciding = set()
    for case in CASES:
        refusing = [part["name"] for part in conditions if not evaluated(part["expression"], shown(case), {})]
        if not refusing:
            refusing = [
                part["name"] for part in variables if not evaluated(part["expression"], shown(case), {})
            ]
        if len(refusing) == 1:
            deciding.add(refusing[0])

    assert deciding == {part["name"] for part in (*conditions, *variables)}


# --------------------------------------------------------------------------- the component


@pytest.mark.parametrize("folder", ["manifests", REPLACE])
def test_the_webhook_is_asked_about_the_policys_pods(tmp_path: Path, folder: str) -> None:
    """In both modes; and what happens if nobody answers is the same, too."""
    mine = {"resources": [os.path.relpath(ROOT / folder, tmp_path.resolve())]}
    asked = webhook(kustomize(overlay(tmp_path, components=(WEBHOOK,), **mine)))
    spec = one(built(folder), "MutatingAdmissionPolicy", GATE)["spec"]

    assert {field: asked[field] for field in COPIED} == {
        field: found(spec, path) for field, path in COPIED.items()
    }
    assert (asked["failurePolicy"], asked["sideEffects"]) == ("Fail", "None")
    assert set(spec["matchConstraints"]) == {path[1] for path in COPIED.values() if len(path) > 1}


def found(spec: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        spec = spec[step]
    return spec


def test_nothing_of_the_policy_is_left() -> None:
    kinds = [found["kind"] for found in built_with((WEBHOOK,))]

    assert "MutatingAdmissionPolicy" not in kinds
    assert "MutatingAdmissionPolicyBinding" not in kinds


@pytest.mark.parametrize("components", [(WEBHOOK, BIND), (BIND, WEBHOOK)], ids=" ".join)
def test_pods_get_the_name_in_whichever_order_the_components_stand(components: tuple[str, ...]) -> None:
    gating, naming = webhook(built_with((WEBHOOK,))), webhook(built_with(components))

    assert gating["clientConfig"]["service"]["path"] == f"/{Way.GATE}"
    assert naming["clientConfig"]["service"]["path"] == f"/{Way.NAME}"
    assert {**naming, "clientConfig": 0} == {**gating, "clientConfig": 0}


def test_the_operator_may_do_no_more_with_it() -> None:
    kinds = (
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "ServiceAccount",
        "PodDisruptionBudget",
    )

    assert of_kind(built_with((WEBHOOK,)), *kinds) == of_kind(built(), *kinds)


def test_the_webhook_leads_to_every_pod_that_is_ready() -> None:
    """The leader and the standby: who leads is no matter to it."""
    shipped = built_with((WEBHOOK,))
    service = one(shipped, "Service", "dra-operator-webhook")
    template = one(shipped, "Deployment")["spec"]["template"]
    (container,) = template["spec"]["containers"]
    (port,) = service["spec"]["ports"]
    reached = webhook(shipped)["clientConfig"]["service"]

    assert reached == {
        "name": service["metadata"]["name"],
        "namespace": service["metadata"]["namespace"],
        "path": "/gate",
        "port": port["port"],
    }
    assert service["spec"]["selector"] == one(built(), "Service")["spec"]["selector"]
    assert "publishNotReadyAddresses" not in service["spec"]
    assert [
        found["containerPort"] for found in container["ports"] if found["name"] == port["targetPort"]
    ] == [program().webhook_port]


def program() -> Any:
    """The settings with which the Deployment starts the program."""
    (container,) = one(built_with((WEBHOOK,)), "Deployment")["spec"]["template"]["spec"]["containers"]
    name, *flags = (argument for argument in container["args"] if not argument.startswith("--config="))
    with main.commands[name].make_context(name, flags) as context:
        return build(origins(context), **context.params)


def test_the_deployment_gets_a_certificate_and_nothing_else() -> None:
    """And time, for the API servers to hear of its end before it."""
    changed = deepcopy(one(built_with((WEBHOOK,)), "Deployment"))
    spec = changed["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    mount, volume = container["volumeMounts"].pop(), spec["volumes"].pop()
    before = one(built(), "Deployment")
    needed = before["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]

    assert volume == {"name": "webhook", "secret": {"secretName": "dra-operator-webhook", "optional": True}}
    assert mount == {"name": "webhook", "mountPath": program().webhook_certificates, "readOnly": True}
    assert container["ports"].pop()["name"] == "webhook"
    sleep = container.pop("lifecycle")["preStop"]["sleep"]["seconds"]
    del container["args"][-2:]
    assert spec["terminationGracePeriodSeconds"] == needed + sleep
    assert spec["terminationGracePeriodSeconds"] > sleep + 2 * DRAIN_SECONDS + REQUEST_SECONDS + GRACE_SECONDS
    spec["terminationGracePeriodSeconds"] = needed
    assert changed == before


def test_nobody_waits_long_for_an_answer() -> None:
    assert webhook(built_with((WEBHOOK,)))["timeoutSeconds"] == READ_SECONDS == 5


def test_cert_manager_makes_what_the_deployment_mounts_for_the_name_that_is_called() -> None:
    shipped = built_with((WEBHOOK, CERTIFICATE))
    serving = one(shipped, "Certificate", "dra-operator-webhook")
    authority = one(shipped, "Certificate", "dra-operator-webhook-authority")
    issuer = one(shipped, "Issuer", serving["spec"]["issuerRef"]["name"])
    configuration = one(shipped, "MutatingWebhookConfiguration", GATE)
    service = one(shipped, "Service", "dra-operator-webhook")["metadata"]
    (volume,) = (
        volume["secret"]
        for volume in one(shipped, "Deployment")["spec"]["template"]["spec"]["volumes"]
        if "secret" in volume
    )

    assert serving["spec"]["secretName"] == volume["secretName"]
    assert serving["spec"]["dnsNames"] == [f"{service['name']}.{service['namespace']}.svc"]
    assert issuer["spec"] == {"ca": {"secretName": authority["spec"]["secretName"]}}
    assert authority["spec"]["isCA"] is True
    assert one(shipped, "Issuer", authority["spec"]["issuerRef"]["name"])["spec"] == {"selfSigned": {}}
    assert configuration["metadata"]["annotations"] == {
        "cert-manager.io/inject-ca-from": f"{service['namespace']}/{serving['metadata']['name']}"
    }
    assert webhook(shipped) == webhook(built_with((WEBHOOK,)))
