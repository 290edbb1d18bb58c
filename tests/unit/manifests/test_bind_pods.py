"""The component `bind-pods`: only pods all of whose constraints placement evaluates get the operator's scheduler name.

The policy's expressions are evaluated by cel-python here; `tests/e2e/test_binding.py` has the API server do it.
"""

from __future__ import annotations

from typing import Any

import celpy
import pytest
from celpy.adapter import json_to_cel

from dra_operator.model import Pod, from_object
from dra_operator.placement.volumeclaims import entries
from tests.unit.manifests.build import built, built_with, one

COMPONENT = "manifests/components/bind-pods"
POLICY = "dra-operator-gate"
GATED = 'Object{spec: Object.spec{schedulingGates: [Object.spec.schedulingGates{name: "dra-operator.io/allocate"}]}}'
NAMED = 'Object{spec: Object.spec{schedulerName: "dra-operator"}}'

TERM = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
REQUIRED = {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}
PREFERRED = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": TERM}]}
NODE_TERM = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
SPREAD = {"maxSkew": 1, "topologyKey": "zone"}

SPECS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "node affinity": {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [NODE_TERM]}
            }
        }
    },
    "node selector and tolerations": {
        "nodeSelector": {"zone": "a"},
        "tolerations": [{"key": "x", "operator": "Exists"}],
    },
    "required pod affinity": {"affinity": {"podAffinity": REQUIRED}},
    "preferred pod affinity": {"affinity": {"podAffinity": PREFERRED}},
    "required pod anti-affinity": {"affinity": {"podAntiAffinity": REQUIRED}},
    "preferred pod anti-affinity": {"affinity": {"podAntiAffinity": PREFERRED}},
    "empty pod affinity": {
        "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}
    },
    "hard spread": {"topologySpreadConstraints": [{**SPREAD, "whenUnsatisfiable": "DoNotSchedule"}]},
    "soft spread": {"topologySpreadConstraints": [{**SPREAD, "whenUnsatisfiable": "ScheduleAnyway"}]},
    "no spread": {"topologySpreadConstraints": []},
    "volumes of the node": {
        "volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "configMap": {"name": "c"}}]
    },
    "volume by claim": {
        "volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "persistentVolumeClaim": {"claimName": "c"}}]
    },
    "ephemeral volume": {"volumes": [{"name": "a", "ephemeral": {"volumeClaimTemplate": {}}}]},
}


def variables(spec: dict[str, Any]) -> dict[str, bool]:
    """All variables of the policy for a pod, in order; later ones may use earlier ones."""
    policy = one(built_with((COMPONENT,)), "MutatingAdmissionPolicy", POLICY)
    environment = celpy.Environment()
    found: dict[str, bool] = {}
    for variable in policy["spec"]["variables"]:
        program = environment.program(environment.compile(variable["expression"]))
        known = {"object": json_to_cel({"spec": spec}), "variables": json_to_cel(found)}
        found[variable["name"]] = bool(program.evaluate(known))
    return found


@pytest.mark.parametrize("name", SPECS)
def test_the_policy_and_placement_agree_on_what_is_evaluated(name: str) -> None:
    pod = from_object(Pod, {"metadata": {"name": "p", "namespace": "ns"}, "spec": SPECS[name]})

    assert variables(SPECS[name])["isEvaluated"] == (list(entries(pod)) == [])


@pytest.mark.parametrize(
    ("spec", "variable"),
    [
        ({"schedulerName": "default-scheduler"}, None),
        ({"schedulerName": "other"}, "isForTheDefaultScheduler"),
        ({"schedulingGates": []}, None),
        ({"schedulingGates": [{"name": "example.com/quota"}]}, "hasNoGates"),
        ({"schedulingGroup": {"podGroupName": "gang"}}, "hasNoGroup"),
    ],
)
def test_pods_of_others_are_gated_at_most(spec: dict[str, Any], variable: str | None) -> None:
    """Another scheduler's, those that another controller still holds, and those that have to be placed together."""
    false = {name for name, value in variables(spec).items() if not value}

    assert false == ({variable} if variable else set())


def test_a_pod_gets_the_name_or_the_gate_and_which_pods_is_as_before() -> None:
    before = one(built("manifests"), "MutatingAdmissionPolicy", POLICY)["spec"]
    after = one(built_with((COMPONENT,)), "MutatingAdmissionPolicy", POLICY)["spec"]
    choice = after["mutations"][0]["applyConfiguration"]["expression"]

    assert choice == (
        "variables.isForTheDefaultScheduler && variables.hasNoGates && variables.hasNoGroup && variables.isEvaluated "
        f"? {NAMED} : {GATED}"
    )
    assert before["mutations"][0]["applyConfiguration"]["expression"] == GATED
    untouched = ("failurePolicy", "matchConditions", "matchConstraints", "reinvocationPolicy")
    assert [after[field] for field in untouched] == [before[field] for field in untouched]
