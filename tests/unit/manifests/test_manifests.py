"""The shipped manifests as `kubectl kustomize` builds them: hardened, least rights, consistent with the program they start."""

from __future__ import annotations

import re
from copy import deepcopy
from typing import TYPE_CHECKING

import pytest
import yaml

from dra_operator import __version__
from dra_operator.app.command import main
from dra_operator.app.ending import GRACE_SECONDS
from dra_operator.app.operator import DRAIN_SECONDS
from dra_operator.app.preflight import REMEDY
from dra_operator.app.running import ELECTS_LABEL
from dra_operator.kube.kinds import KINDS
from dra_operator.kube.lease import NAME as LEASE
from dra_operator.kube.lease import REQUEST_SECONDS as LEASE_REQUEST_SECONDS
from dra_operator.settings import TABLE, Mode, build, origins
from tests.unit.manifests.build import (
    COMBINATIONS,
    COMPONENTS,
    INSTALLABLE,
    RELEASES,
    ROOT,
    WEBHOOK,
    built,
    built_with,
    kustomize,
    of_kind,
    one,
    overlay,
    templates,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.manifests.build import Obj

BY_KEY = {setting.key: setting for setting in TABLE}
FOLLOW = ("list", "watch")
READ = ("get", *FOLLOW)
RIGHTS = {
    # What the model is made of.
    ("resource.k8s.io", "resourceclaimtemplates"): {*FOLLOW},
    ("resource.k8s.io", "resourceslices"): {*FOLLOW},
    ("resource.k8s.io", "deviceclasses"): {*FOLLOW},
    ("", "nodes"): {*FOLLOW},
    ("", "namespaces"): {*FOLLOW},
    # Where the volumes of pods are.
    ("", "persistentvolumeclaims"): {*FOLLOW},
    ("", "persistentvolumes"): {*FOLLOW},
    ("storage.k8s.io", "storageclasses"): {*FOLLOW},
    ("storage.k8s.io", "csinodes"): {*FOLLOW},
    ("storage.k8s.io", "csidrivers"): {*FOLLOW},
    ("storage.k8s.io", "csistoragecapacities"): {*FOLLOW},
    ("storage.k8s.io", "volumeattachments"): {*FOLLOW},
    ("scheduling.k8s.io", "podgroups"): {*FOLLOW},
    # Marks on claims; what is written is read again by name after a conflict.
    ("resource.k8s.io", "resourceclaims"): {*READ, "patch"},
    # Allocation, reservation, release.
    ("resource.k8s.io", "resourceclaims/status"): {"patch"},
    ("resource.k8s.io", "resourceclaims/binding"): {"patch"},
    # Pin and release.
    ("", "pods"): {*READ, "patch"},
    # Bind, and say why a pod waits.
    ("", "pods/binding"): {"create"},
    ("", "pods/status"): {"patch"},
    # Ownership.
    ("resource.k8s.io", "devicetaintrules"): {*READ, "create", "patch", "delete"},
    ("dra-operator.io", "allocationpolicies"): {*READ, "patch"},
    ("dra-operator.io", "allocationpolicies/status"): {"patch"},
    # Why a pod waits.
    ("", "events"): {"create", "patch"},
}
"""All that the operator may do: by API group and resource."""

MORE_DUTIES = {
    "generate-claims": (
        "--generate-claims=always",
        {
            ("resource.k8s.io", "resourceclaimtemplates"): {"get"},
            ("resource.k8s.io", "resourceclaims"): {"create", "delete"},
            ("scheduling.k8s.io", "podgroups"): {"get"},
            ("scheduling.k8s.io", "podgroups/status"): {"patch"},
        },
    ),
    "replace-refused": ("--replace-refused=owned", {("", "pods"): {"delete"}}),
}
"""Components that give it further duties: the argument, and what it may do besides."""


NAMING = "manifests/components/bind-pods"
"""Brings no object: it changes what the gate policy does."""

POLICY = {"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"}
"""Not there with the component `gate-webhook` (`test_gate_webhook.py`)."""


def rights(role: Obj) -> dict[tuple[str, str], set[str]]:
    found: dict[tuple[str, str], set[str]] = {}
    for rule in role["rules"]:
        assert set(rule) == {"apiGroups", "resources", "verbs"}
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                found.setdefault((group, resource), set()).update(rule["verbs"])
    return found


@pytest.mark.parametrize("folder", INSTALLABLE)
def test_every_folder_builds_by_itself(folder: str) -> None:
    assert built(folder)


@pytest.mark.parametrize("components", COMBINATIONS, ids=" ".join)
def test_components_add_to_the_default_installation(components: tuple[str, ...]) -> None:
    """They change nothing of it, but for the Deployment, where three say what more is to be done, and what the gate is put on by."""
    together = built_with(components)
    changes = {f"manifests/components/{name}": {"Deployment"} for name in MORE_DUTIES} | {
        NAMING: {"MutatingAdmissionPolicy"},
        WEBHOOK: {"Deployment", *POLICY},
    }
    adding = [name for name in components if name != NAMING]

    changed = [found["kind"] for found in built() if found not in together]
    assert sorted(changed) == sorted(set().union(*(changes.get(name, set()) for name in components)))
    assert len(together) >= len(built()) + len(adding) - len(POLICY & set(changed))


@pytest.mark.parametrize("name", MORE_DUTIES)
def test_a_further_duty_comes_with_its_rights_and_no_others(name: str) -> None:
    argument, more = MORE_DUTIES[name]
    shipped = built_with((f"manifests/components/{name}",))
    default, changed = one(built(), "Deployment"), deepcopy(one(shipped, "Deployment"))
    (container,) = changed["spec"]["template"]["spec"]["containers"]
    binding = one(shipped, "ClusterRoleBinding", f"dra-operator-{name}")

    assert container["args"].pop() == argument
    assert changed == default
    assert rights(one(shipped, "ClusterRole", f"dra-operator-{name}")) == more
    assert binding["roleRef"]["name"] == f"dra-operator-{name}"
    assert binding["subjects"] == one(shipped, "ClusterRoleBinding")["subjects"]


REPLACE = "manifests/overlays/replace"
EXCEPTED = ["kube-system", "kube-node-lease", "kube-public", "dra-operator"]


def test_the_overlay_of_mode_cooperate_is_the_default_installation() -> None:
    assert built("manifests/overlays/cooperate") == built()


def test_the_overlay_of_mode_replace_has_all_duties_and_their_rights() -> None:
    """The default with claims generated, but for the settings and the namespaces of the gate."""
    replacing, generating = built(REPLACE), built_with(("manifests/components/generate-claims",))
    changed = ("ConfigMap", "Deployment", "MutatingAdmissionPolicy")

    assert [found["kind"] for found in replacing] == [found["kind"] for found in generating]
    assert [found for found in replacing if found["kind"] not in changed] == [
        found for found in generating if found["kind"] not in changed
    ]
    (config,) = of_kind(replacing, "ConfigMap")
    settings = {
        BY_KEY[key].name: value for key, value in yaml.safe_load(config["data"]["config.yaml"]).items()
    }
    assert build(**settings).mode is Mode.REPLACE
    (volume,) = one(replacing, "Deployment")["spec"]["template"]["spec"]["volumes"]
    assert volume["configMap"]["name"] == config["metadata"]["name"]


def test_in_mode_replace_the_gate_is_for_all_namespaces_but_those_of_the_system() -> None:
    """Where the policy cannot be evaluated the pod is refused: without the gate it would be bound without devices."""
    gate, default = (
        one(objects, "MutatingAdmissionPolicy", "dra-operator-gate")
        for objects in (deepcopy(built(REPLACE)), built())
    )
    selector = gate["spec"]["matchConstraints"].pop("namespaceSelector")
    default = deepcopy(default)
    del default["spec"]["matchConstraints"]["namespaceSelector"]

    assert selector == {
        "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": EXCEPTED}]
    }
    assert gate == default
    assert gate["spec"]["failurePolicy"] == "Fail"


@pytest.mark.parametrize("folder", INSTALLABLE)
def test_every_object_says_what_it_belongs_to_and_of_which_version(folder: str) -> None:
    told = {
        "app.kubernetes.io/name": "dra-operator",
        "app.kubernetes.io/part-of": "dra-operator",
        "app.kubernetes.io/version": __version__,
    }

    for found in built(folder):
        labels = found["metadata"].get("labels", {})
        assert labels | told == labels, (found["kind"], found["metadata"]["name"])


def test_objects_of_components_say_so_too() -> None:
    for found in built_with(tuple(COMPONENTS)):
        assert found["metadata"]["labels"]["app.kubernetes.io/version"] == __version__, found["kind"]
        assert found["metadata"]["labels"]["app.kubernetes.io/part-of"] == "dra-operator", found["kind"]


@pytest.mark.parametrize("folder", INSTALLABLE)
def test_pods_are_confined(folder: str) -> None:
    """As the Pod Security Standard `restricted` asks for, and beyond it: nothing to write to, no links, one known user."""
    for name, template in templates(built(folder)):
        spec = template["spec"]
        own = {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        }
        assert spec["securityContext"] == own, name
        assert spec["enableServiceLinks"] is False, name
        assert not {"hostNetwork", "hostPID", "hostIPC", "hostUsers", "initContainers"} & set(spec), name
        assert [set(volume) - {"name"} for volume in spec.get("volumes", [])] == [{"configMap"}] * len(
            spec.get("volumes", [])
        ), name
        for container in spec["containers"]:
            assert container["securityContext"] == {
                "privileged": False,
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }, name
            assert {*container["resources"]["requests"]} == {"cpu", "memory"}, name
            assert {*container["resources"]["limits"]} == {"memory"}, name


@pytest.mark.parametrize("folder", INSTALLABLE)
def test_images_are_of_this_version(folder: str) -> None:
    for name, template in templates(built(folder)):
        images = [container["image"] for container in template["spec"]["containers"]]
        assert images == [f"dra-operator:{__version__}"], name


def test_there_is_a_standby_that_goes_elsewhere_and_last() -> None:
    """An update or a drain takes one of the two at a time; both find room on one node, if there is but one."""
    spec = one(built(), "Deployment")["spec"]
    budget = one(built(), "PodDisruptionBudget")["spec"]
    labels = spec["template"]["metadata"]["labels"]
    apart = spec["template"]["spec"]["affinity"]["podAntiAffinity"]

    assert spec["replicas"] == 2
    assert spec["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0},
    }
    assert budget["minAvailable"] == 1
    assert set(apart) == {"preferredDuringSchedulingIgnoredDuringExecution"}
    terms = [term["podAffinityTerm"] for term in apart["preferredDuringSchedulingIgnoredDuringExecution"]]
    assert [term["topologyKey"] for term in terms] == [
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
    ]
    for chosen in (budget["selector"], *(term["labelSelector"] for term in terms)):
        assert labels | chosen["matchLabels"] == labels
    assert labels[ELECTS_LABEL] == "true"


def test_the_operator_may_have_its_lease_and_no_other() -> None:
    name = "dra-operator-leader-election"
    role, binding = one(built(), "Role", name), one(built(), "RoleBinding", name)
    place = one(built(), "Deployment")["metadata"]["namespace"]

    leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    assert role["rules"] == [
        {**leases, "verbs": ["create"]},  # cannot be granted by name
        {**leases, "verbs": ["get", "patch"], "resourceNames": [LEASE]},
    ]
    assert (role["metadata"]["namespace"], binding["metadata"]["namespace"]) == (place, place)
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert binding["subjects"] == one(built(), "ClusterRoleBinding")["subjects"]


def test_the_operator_is_watched() -> None:
    spec = one(built(), "Deployment")["spec"]
    (container,) = spec["template"]["spec"]["containers"]

    assert {
        probe: container[probe]["httpGet"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")
    } == {
        "startupProbe": {"path": "/healthz", "port": "http"},
        "livenessProbe": {"path": "/healthz", "port": "http"},
        "readinessProbe": {"path": "/readyz", "port": "http"},
    }


def test_a_pod_has_time_for_an_orderly_end() -> None:
    """Writes, the Lease, Kopf, the closing of the loop."""
    given = one(built(), "Deployment")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]

    assert given > DRAIN_SECONDS + LEASE_REQUEST_SECONDS + DRAIN_SECONDS + GRACE_SECONDS


@pytest.mark.parametrize("release", sorted(RELEASES.glob("*.yaml")), ids=lambda file: file.stem)
def test_what_can_never_be_changed_is_as_in_every_release(release: Path) -> None:
    """A Deployment's selector, and where a binding leads to: apply of another one is refused."""
    before = list(yaml.safe_load_all(release.read_text(encoding="utf-8")))

    assert one(built(), "Deployment")["spec"]["selector"] == one(before, "Deployment")["spec"]["selector"]
    assert one(built(), "ClusterRoleBinding")["roleRef"] == one(before, "ClusterRoleBinding")["roleRef"]


def test_the_program_takes_its_arguments_and_its_file(tmp_path: Path) -> None:
    pod = one(built(), "Deployment")["spec"]["template"]["spec"]
    (container,), (volume,), (config,) = pod["containers"], pod["volumes"], of_kind(built(), "ConfigMap")
    (mount,) = container["volumeMounts"]
    assert volume["configMap"]["name"] == config["metadata"]["name"]
    for name, text in config["data"].items():
        (tmp_path / name).write_text(text, encoding="utf-8")

    name, *flags = (argument.replace(mount["mountPath"], str(tmp_path)) for argument in container["args"])
    with main.commands[name].make_context(name, flags) as context:
        settings = build(origins(context), **context.params)

    assert settings.http_port == container["ports"][0]["containerPort"]
    assert settings.log_format == "json"
    assert settings.mode is Mode.COOPERATE


def test_the_operator_may_do_its_duty_and_nothing_else() -> None:
    """Claims are neither made nor deleted: kube-controller-manager does that."""
    assert rights(one(built(), "ClusterRole")) == RIGHTS


def test_every_kind_that_is_read_may_be_read() -> None:
    """Out of the program's own table of kinds."""
    granted = rights(one(built(), "ClusterRole"))
    fed = [kind for kind in KINDS.values() if kind.feed != "none"]

    assert len(fed) >= 7
    assert [kind.name for kind in fed if not {*FOLLOW} <= granted.get((kind.group, kind.plural), set())] == []


def test_the_rights_are_given_to_the_account_that_the_pod_runs_as() -> None:
    binding, account = one(built(), "ClusterRoleBinding"), one(built(), "ServiceAccount")
    pod = one(built(), "Deployment")["spec"]["template"]["spec"]

    assert binding["roleRef"]["name"] == one(built(), "ClusterRole")["metadata"]["name"]
    assert binding["subjects"] == [
        {
            "kind": "ServiceAccount",
            "name": account["metadata"]["name"],
            "namespace": account["metadata"]["namespace"],
        }
    ]
    assert pod["serviceAccountName"] == account["metadata"]["name"]
    assert (account["automountServiceAccountToken"], pod["automountServiceAccountToken"]) == (False, True)


def test_people_get_to_read_policies_and_no_more_by_themselves() -> None:
    """What is aggregated into Kubernetes' own roles changes nothing; who may write policies is for the admin to say."""
    roles = of_kind(built(), "ClusterRole")
    aggregated = [
        role for role in roles if any("aggregate-to" in label for label in role["metadata"]["labels"])
    ]

    assert [role["metadata"]["name"] for role in aggregated] == ["dra-operator-view"]
    assert set().union(*rights(aggregated[0]).values()) == {*READ}
    assert len(of_kind(built(), "ClusterRoleBinding")) == 1
    assert len(of_kind(built(), "Role", "RoleBinding")) == 2  # the Lease's


def test_the_service_and_the_pod_monitor_find_the_pod() -> None:
    shipped = built_with(("manifests/components/podmonitor",))
    template = one(shipped, "Deployment")["spec"]["template"]
    ports = [port["name"] for port in template["spec"]["containers"][0]["ports"]]
    service, monitor = one(shipped, "Service")["spec"], one(shipped, "PodMonitor")["spec"]

    for selector in (service["selector"], monitor["selector"]["matchLabels"]):
        assert template["metadata"]["labels"] | selector == template["metadata"]["labels"]
    assert [port["targetPort"] for port in service["ports"]] == ports
    assert [(end["port"], end["path"]) for end in monitor["podMetricsEndpoints"]] == [(ports[0], "/metrics")]
    assert monitor["namespaceSelector"]["matchNames"] == [one(shipped, "Deployment")["metadata"]["namespace"]]


def test_another_configuration_is_another_pod(tmp_path: Path) -> None:
    """The operator reads its file once: only a new pod knows of a change."""
    (tmp_path / "config.yaml").write_text("settleSeconds: 20\n", encoding="utf-8")
    generator = {
        "name": "dra-operator",
        "namespace": "dra-operator",
        "behavior": "replace",
        "files": ["config.yaml"],
    }
    changed = kustomize(overlay(tmp_path, configMapGenerator=[generator]))

    (mine,), (shipped,) = of_kind(changed, "ConfigMap"), of_kind(built(), "ConfigMap")
    assert mine["data"] == {"config.yaml": "settleSeconds: 20\n"}
    assert mine["metadata"]["name"] != shipped["metadata"]["name"]
    (volume,) = one(changed, "Deployment")["spec"]["template"]["spec"]["volumes"]
    assert volume["configMap"] == {"name": mine["metadata"]["name"]}


def test_an_image_of_ones_own_registry_is_one_line(tmp_path: Path) -> None:
    image = {"name": "dra-operator", "newName": "registry.example.com/dra-operator", "newTag": "mine"}
    changed = kustomize(overlay(tmp_path, images=[image]))

    assert {
        container["image"]
        for _, template in templates(changed)
        for container in template["spec"]["containers"]
    } == {"registry.example.com/dra-operator:mine"}


@pytest.mark.parametrize("folder", INSTALLABLE)
def test_what_is_namespaced_comes_after_its_namespace(folder: str) -> None:
    seen = set()
    for found in built(folder):
        namespace = found["metadata"].get("namespace")
        assert namespace in {None, "dra-operator"}
        assert folder != "manifests" or namespace is None or namespace in seen
        if found["kind"] == "Namespace":
            seen.add(found["metadata"]["name"])


def test_one_run_of_kubectl_is_enough() -> None:
    """Kubectl looks every kind up before it applies the first object, so none may be of the kind that comes with them."""
    own = {found["spec"]["group"] for found in of_kind(built(), "CustomResourceDefinition")}

    assert own == {"dra-operator.io"}
    assert [found["kind"] for found in built() if found["apiVersion"].partition("/")[0] in own] == []


def test_the_gate_comes_only_with_its_policy() -> None:
    assert {found["kind"] for found in built("manifests/gate-policy")} == POLICY
    assert of_kind(built("manifests/base"), *POLICY, "CustomResourceDefinition") == []
    assert len(of_kind(built(), *POLICY)) == len(POLICY)


def test_the_readme_tells_the_command() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    assert "$ kubectl apply -k manifests\n" in readme
    assert f"dra-operator:{__version__}" in readme


def test_the_file_that_the_program_names_when_rights_are_missing_has_them() -> None:
    named = re.findall(r"manifests/\S+\.yaml", REMEDY)

    assert [role["kind"] for file in named for role in yaml.safe_load_all((ROOT / file).read_text())] == [
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
    ]
