"""What removes the operator (manifests/release, manifests/uninstall.sh), as far as it can be told without a cluster."""

from __future__ import annotations

import subprocess

import click

from dra_operator.app.command import main
from dra_operator.app.release import GATE_BINDING, OPERATOR_LABEL
from tests.unit.manifests.build import MANIFESTS, built, of_kind, one

RELEASE = "manifests/release"
SCRIPT = MANIFESTS / "uninstall.sh"
NAME = "dra-operator-release"

RIGHTS = {
    ("", "pods"): {"get", "list", "patch"},
    ("resource.k8s.io", "resourceclaims"): {"get", "list", "patch"},
    ("resource.k8s.io", "resourceclaims/status"): {"patch"},
    ("resource.k8s.io", "resourceclaims/binding"): {"patch"},
    ("resource.k8s.io", "devicetaintrules"): {"list", "delete"},
    ("dra-operator.io", "allocationpolicies"): {"get", "list", "patch"},
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"): {"delete"},
}


def test_the_namespace_is_the_one_of_the_installation() -> None:
    """Applied over it, it must change nothing: the removal may stop there."""
    assert one(built(RELEASE), "Namespace") == one(built(), "Namespace")


def test_the_job_may_do_its_duty_and_nothing_else() -> None:
    rules = one(built(RELEASE), "ClusterRole", NAME)["rules"]
    given = {
        (group, resource): set(rule["verbs"])
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }

    assert given == RIGHTS
    named = [
        rule["resourceNames"] for rule in rules if "mutatingadmissionpolicybindings" in rule["resources"]
    ]
    assert named == [[GATE_BINDING.rpartition("/")[2]]]
    (subject,) = one(built(RELEASE), "ClusterRoleBinding", NAME)["subjects"]
    pod = one(built(RELEASE), "Job", NAME)["spec"]["template"]["spec"]
    assert (subject["name"], subject["namespace"]) == (pod["serviceAccountName"], "dra-operator")


def test_the_gate_policy_that_is_deleted_is_the_shipped_one() -> None:
    assert one(built(), "MutatingAdmissionPolicyBinding", GATE_BINDING.rpartition("/")[2])
    assert "mutatingadmissionpolicybinding/dra-operator-gate" in SCRIPT.read_text()


def test_the_operators_pods_are_told_from_the_jobs() -> None:
    """The command waits for the former to end, and neither Deployment nor Service may take the latter for theirs."""
    key, _, value = OPERATOR_LABEL.partition("=")
    operator = one(built(), "Deployment")["spec"]["template"]["metadata"]["labels"]
    job = one(built(RELEASE), "Job", NAME)["spec"]["template"]["metadata"]["labels"]

    assert operator[key] == value
    assert job[key] != value
    assert f"mine={OPERATOR_LABEL}" in SCRIPT.read_text()


def test_the_command_takes_the_arguments_of_the_job() -> None:
    (container,) = one(built(RELEASE), "Job", NAME)["spec"]["template"]["spec"]["containers"]
    command, *arguments = container["args"]
    found = main.commands[command]
    with click.Context(found) as context:
        found.parse_args(context, list(arguments))
    assert context.params["log_format"] == "json"


def test_the_script_is_sh_and_finds_the_image_of_the_job() -> None:
    subprocess.run(["sh", "-n", str(SCRIPT)], check=True)
    (container,) = one(built(RELEASE), "Job", NAME)["spec"]["template"]["spec"]["containers"]
    lines = [
        line for line in (MANIFESTS / "release" / "job.yaml").read_text().splitlines() if "image:" in line
    ]
    assert [line.strip() for line in lines] == [f"image: {container['image']}"]


REMOVED = {
    "Namespace": "delete namespace $namespace",
    "ClusterRole": "delete clusterrolebindings,clusterroles --selector=$mine",
    "ClusterRoleBinding": "delete clusterrolebindings,clusterroles --selector=$mine",
    "CustomResourceDefinition": "delete crd allocationpolicies.dra-operator.io",
    "MutatingAdmissionPolicy": "mutatingadmissionpolicy/dra-operator-gate",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybinding/dra-operator-gate",
}
"""Kinds that do not go with the namespace, and what the script says to them."""


def test_everything_that_does_not_go_with_the_namespace_is_removed_by_the_script() -> None:
    everything = (*built(), *built(RELEASE))
    free = [found for found in everything if "namespace" not in found["metadata"]]

    assert {found["kind"] for found in free} == set(REMOVED)
    assert {kind for kind, words in REMOVED.items() if words not in SCRIPT.read_text()} == set()
    assert {found["metadata"]["labels"]["app.kubernetes.io/name"] for found in free} == {"dra-operator"}


def test_bindings_that_people_made_to_roles_for_people_are_named_at_the_end() -> None:
    """They are theirs, and of no use any more."""
    roles = {
        found["metadata"]["name"]: found["metadata"]["labels"] for found in of_kind(built(), "ClusterRole")
    }
    people = [
        name for name, labels in roles.items() if labels.get("app.kubernetes.io/component") == "user-roles"
    ]

    assert [name for name in people if f"'s/^{name} //p'" not in SCRIPT.read_text()] == []
    assert len(people) == 3
