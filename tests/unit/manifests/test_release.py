"""What removes the operator from within (manifests/release), as far as it can be told without a cluster; `test_uninstall` has the script."""

from __future__ import annotations

from typing import Any

import click
import pytest
import yaml

from dra_operator.app.command import main
from dra_operator.app.release import GATES
from dra_operator.app.running import ALLOCATING, OPERATOR_LABEL
from tests.unit.manifests.build import MANIFESTS, RELEASES, built, built_with, of_kind, one

RELEASE = "manifests/release"
NAME = "dra-operator-release"

RIGHTS = {
    ("", "pods"): {"get", "list", "patch"},
    ("authorization.k8s.io", "subjectaccessreviews"): {"create"},
    ("resource.k8s.io", "resourceclaims"): {"get", "list", "patch"},
    ("resource.k8s.io", "resourceclaims/status"): {"patch"},
    ("resource.k8s.io", "resourceclaims/binding"): {"patch"},
    ("resource.k8s.io", "devicetaintrules"): {"list", "delete"},
    ("dra-operator.io", "allocationpolicies"): {"get", "list", "patch"},
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"): {"delete"},
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): {"delete"},
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
    assert named == [["dra-operator-gate"]]
    (subject,) = one(built(RELEASE), "ClusterRoleBinding", NAME)["subjects"]
    pod = one(built(RELEASE), "Job", NAME)["spec"]["template"]["spec"]
    assert (subject["name"], subject["namespace"]) == (pod["serviceAccountName"], "dra-operator")


@pytest.mark.parametrize("kind", GATES)
def test_what_is_deleted_of_the_gate_is_what_is_shipped(kind: str) -> None:
    shipped = built() if "Policy" in kind else built_with(("manifests/components/gate-webhook",))
    group, version, plural, name = GATES[kind].split("/")[2:]
    gate = one(shipped, kind, name)

    assert gate["apiVersion"] == f"{group}/{version}"
    assert plural == f"{kind.lower()}s"


def test_the_operators_pods_are_told_from_the_jobs() -> None:
    """The command waits for the former to end, and neither Deployment nor Service may take the latter for theirs."""
    key, _, value = OPERATOR_LABEL.partition("=")
    operator = one(built(), "Deployment")["spec"]["template"]["metadata"]["labels"]
    job = one(built(RELEASE), "Job", NAME)["spec"]["template"]["metadata"]["labels"]

    assert operator[key] == value
    assert job[key] != value


def test_the_command_takes_the_arguments_of_the_job_and_those_of_the_operator() -> None:
    """The script gives it the latter."""
    (container,) = one(built(RELEASE), "Job", NAME)["spec"]["template"]["spec"]["containers"]
    command, *arguments = container["args"]
    found = main.commands[command]
    with click.Context(found) as context:
        found.parse_args(context, list(arguments))
    assert context.params["log_format"] == "json"

    (operator,) = one(built(), "Deployment")["spec"]["template"]["spec"]["containers"]
    flags = [flag for flag in operator["args"][1:] if not flag.startswith("--config=")]
    with click.Context(found) as context:
        found.parse_args(context, flags)
    assert context.params["http_port"] == "8080"


def test_the_operator_of_every_release_may_do_what_tells_it_from_other_pods() -> None:
    for file in sorted(RELEASES.glob("*.yaml")):
        assert _may_allocate(list(yaml.safe_load_all(file.read_text(encoding="utf-8")))), file.name
    assert _may_allocate(list(built()))
    assert not _may_allocate(list(built(RELEASE)), "dra-operator")


def _may_allocate(objects: list[dict[str, Any]], name: str = "dra-operator") -> bool:
    resource = f"{ALLOCATING['resource']}/{ALLOCATING['subresource']}"
    rules = [
        rule
        for role in of_kind(objects, "ClusterRole")
        if role["metadata"]["name"] == name
        for rule in role["rules"]
    ]
    return any(
        ALLOCATING["group"] in rule["apiGroups"]
        and resource in rule["resources"]
        and ALLOCATING["verb"] in rule["verbs"]
        for rule in rules
    )


def test_the_image_stands_in_one_line_of_the_job() -> None:
    """The script reads the release from there."""
    (container,) = one(built(RELEASE), "Job", NAME)["spec"]["template"]["spec"]["containers"]
    lines = [
        line for line in (MANIFESTS / "release" / "job.yaml").read_text().splitlines() if "image:" in line
    ]
    assert [line.strip() for line in lines] == [f"image: {container['image']}"]
