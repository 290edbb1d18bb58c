"""`kubectl apply -k manifests` on a real kube-apiserver: on a bare cluster, over an older release, with components.

The cluster is a strict one: it takes pods of the class system-cluster-critical only where a quota speaks of them. No scheduler and
no kubelet run, so what is shown is what kube-apiserver and kube-controller-manager make of the objects; that the pod really runs is
for the tests of the installation.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from dra_operator import __version__
from tests.e2e.harness.cluster import ControlPlane, Options
from tests.e2e.harness.components import KWOK, SCHEDULER
from tests.e2e.harness.kubectl import as_documents
from tests.e2e.harness.objects import policy
from tests.e2e.harness.operator_process import POLICY_CRD
from tests.e2e.harness.waiting import wait_until
from tests.unit.manifests.build import COMPONENTS, MANIFESTS, RELEASES, built, kustomize, of_kind, overlay

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.harness.kubectl import Kubectl

    Obj = dict[str, Any]

NAMESPACE = "dra-operator"
REPLICAS = 2
RELEASED = sorted(RELEASES.glob("*.yaml"))
APPLY = ("apply", "--kustomize", str(MANIFESTS))

FORCED = ["--server-side", "--force-conflicts"]
"""Whoever goes over to server-side apply takes the fields from client-side apply, which owns the defaults of old, too."""
WAYS: list[list[list[str]]] = [[[]], [FORCED], [FORCED, []]]

STRICT = {
    "apiVersion": "apiserver.config.k8s.io/v1",
    "kind": "AdmissionConfiguration",
    "plugins": [
        {
            "name": "ResourceQuota",
            "configuration": {
                "apiVersion": "apiserver.config.k8s.io/v1",
                "kind": "ResourceQuotaConfiguration",
                "limitedResources": [
                    {
                        "resource": "pods",
                        "matchScopes": [
                            {
                                "scopeName": "PriorityClass",
                                "operator": "In",
                                "values": ["system-cluster-critical", "system-node-critical"],
                            }
                        ],
                    }
                ],
            },
        }
    ],
}
"""As managed clusters have it."""

TEXT, LABELS = {"type": "string"}, {"type": "object", "additionalProperties": {"type": "string"}}
TEXTS = {"type": "array", "items": TEXT}
POD_MONITOR = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "podmonitors.monitoring.coreos.com"},
    "spec": {
        "group": "monitoring.coreos.com",
        "scope": "Namespaced",
        "names": {"kind": "PodMonitor", "plural": "podmonitors", "singular": "podmonitor"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["selector"],
                                "properties": {
                                    "selector": {"type": "object", "properties": {"matchLabels": LABELS}},
                                    "namespaceSelector": {
                                        "type": "object",
                                        "properties": {"any": {"type": "boolean"}, "matchNames": TEXTS},
                                    },
                                    "podMetricsEndpoints": {
                                        "type": "array",
                                        "items": {
                                            "type": "object",
                                            "properties": {
                                                "port": TEXT,
                                                "path": {**TEXT, "pattern": "^/"},
                                                "interval": {**TEXT, "pattern": "^([0-9]+(ms|s|m|h))+$"},
                                                "honorLabels": {"type": "boolean"},
                                            },
                                        },
                                    },
                                },
                            }
                        },
                    }
                },
            }
        ],
    },
}
"""As much of Prometheus Operator's kind as matters: what is not in it is refused."""

RULES = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["expr"],
        "properties": {
            **dict.fromkeys(("alert", "record", "expr"), TEXT),
            "for": {**TEXT, "pattern": "^([0-9]+(ms|s|m|h))+$"},
            "labels": LABELS,
            "annotations": LABELS,
        },
    },
}
GROUP = {"type": "object", "required": ["name"], "properties": {"name": TEXT, "rules": RULES}}
PROMETHEUS_RULE = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "prometheusrules.monitoring.coreos.com"},
    "spec": {
        "group": "monitoring.coreos.com",
        "scope": "Namespaced",
        "names": {"kind": "PrometheusRule", "plural": "prometheusrules", "singular": "prometheusrule"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"groups": {"type": "array", "items": GROUP}},
                            }
                        },
                    }
                },
            }
        ],
    },
}

REFERENCE = {"type": "object", "required": ["name"], "properties": {"kind": TEXT, "name": TEXT}}
PRIVATE_KEY = {
    "algorithm": {**TEXT, "enum": ["RSA", "ECDSA", "Ed25519"]},
    "size": {"type": "integer"},
    "rotationPolicy": {**TEXT, "enum": ["Never", "Always"]},
}


def of_cert_manager(kind: str, required: list[str], **spec: Obj) -> Obj:
    """As much of one of cert-manager's kinds as matters."""
    plural = f"{kind.lower()}s"
    whole = {"type": "object", "required": required, "properties": spec}
    schema = {"openAPIV3Schema": {"type": "object", "required": ["spec"], "properties": {"spec": whole}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.cert-manager.io"},
        "spec": {
            "group": "cert-manager.io",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


OTHERS: list[Obj] = [
    POD_MONITOR,
    PROMETHEUS_RULE,
    of_cert_manager(
        "Issuer",
        [],
        selfSigned={"type": "object"},
        ca={"type": "object", "required": ["secretName"], "properties": {"secretName": TEXT}},
    ),
    of_cert_manager(
        "Certificate",
        ["issuerRef", "secretName"],
        secretName=TEXT,
        issuerRef=REFERENCE,
        isCA={"type": "boolean"},
        commonName=TEXT,
        dnsNames=TEXTS,
        duration={**TEXT, "pattern": "^([0-9]+(ms|s|m|h))+$"},
        privateKey={"type": "object", "properties": PRIVATE_KEY},
    ),
]
"""Kinds of others that components use; the projects' own definitions are not part of this one."""


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    configuration = tmp_path_factory.mktemp("admission") / "configuration.yaml"
    configuration.write_text(yaml.safe_dump(STRICT), encoding="utf-8")
    options = Options(
        without=frozenset({SCHEDULER, KWOK}),
        apiserver_flags=(f"--admission-control-config-file={configuration}",),
    )
    with ControlPlane.start(options) as control_plane:
        yield control_plane


@pytest.fixture
def bare(strict: ControlPlane) -> Iterator[Kubectl]:
    """An administrator's kubectl on a cluster that has nothing of ours, before the test and after it."""
    kubectl = strict.kubectl
    yield kubectl
    for found in kubectl.get_all("allocationpolicies") if is_served(kubectl, "allocationpolicies") else []:
        kubectl.delete("allocationpolicy", found["metadata"]["name"])
    kubectl.run("delete", "--ignore-not-found", "--kustomize", str(MANIFESTS))
    kubectl.delete("mutatingwebhookconfiguration", "dra-operator-gate")
    kubectl.delete("crd", *(found["metadata"]["name"] for found in OTHERS))


def is_served(kubectl: Kubectl, plural: str) -> bool:
    return plural in kubectl.run("api-resources", "--output=name")


def key(found: Obj) -> tuple[str, str, str]:
    return found["kind"], found["metadata"].get("namespace", ""), found["metadata"]["name"]


def live(kubectl: Kubectl, objects: list[Obj]) -> list[Obj]:
    """The objects as they are on the server. Raises: KubectlError: One is missing."""
    text = kubectl.run("get", "--filename=-", "--output=json", stdin=as_documents(objects))
    items: list[Obj] = json.loads(text)["items"]
    return items


def pods_of_this_version(kubectl: Kubectl, count: int = REPLICAS) -> list[Obj]:
    """The operator's pods of this version, once kube-controller-manager has made them; its events tell why it has not.

    Nothing runs them here, so no more than the first of an update comes: the next one waits until that is ready.
    """
    inside = kubectl.in_namespace(NAMESPACE)

    def seen() -> tuple[list[Obj], list[str]]:
        warnings = inside.get_all("events", "--field-selector=type=Warning")
        pods = [pod for pod in inside.get_all("pods") if is_ours(pod)]
        return pods, [event["message"] for event in warnings]

    pods, _ = wait_until(seen, f"{count} pods of this version", accept=lambda found: len(found[0]) == count)
    return pods


def is_ours(pod: Obj) -> bool:
    images = [container["image"] for container in pod["spec"]["containers"]]
    return images == [f"dra-operator:{__version__}"]


def uids(pods: list[Obj]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods}


def test_one_run_installs_on_a_bare_cluster(bare: Kubectl) -> None:
    """Namespace and kinds come with the same run, and the pod is admitted: by the namespace's own standard, and by the quota."""
    bare.run(*APPLY)

    assert {key(found) for found in live(bare, list(built()))} == {key(found) for found in built()}
    for pod in pods_of_this_version(bare):
        assert pod["spec"]["priority"] == 2_000_000_000
        assert "token" in json.dumps(pod["spec"]["volumes"])


@pytest.mark.parametrize("flags", [[], ["--server-side"]], ids=["by client", "by server"])
def test_a_second_run_changes_nothing(bare: Kubectl, flags: list[str]) -> None:
    bare.run(*APPLY)
    pods = uids(pods_of_this_version(bare))
    before = [content(found) for found in live(bare, list(built()))]

    bare.run(*APPLY, *flags)

    assert [content(found) for found in live(bare, list(built()))] == before
    assert uids(pods_of_this_version(bare)) == pods


@pytest.mark.parametrize("way", WAYS, ids=["by client", "by server", "by one, then the other"])
@pytest.mark.parametrize("release", RELEASED, ids=lambda file: file.stem)
def test_an_older_release_is_upgraded(bare: Kubectl, release: Path, way: list[list[str]]) -> None:
    """No field stands in the way, nothing of the old release is left alone, policies stay as they are."""
    old = list(yaml.safe_load_all(release.read_text(encoding="utf-8")))
    bare.run("apply", "--filename", str(release))
    bare.until_served(POLICY_CRD)
    bare.apply(policy("kept", {"driver": "gpu.example.com"}))
    kept = bare.get("allocationpolicy", "kept")

    for flags in way:
        bare.run(*APPLY, *flags)

    versions = {key(found): version_of(found) for found in live(bare, old)}
    assert versions == dict.fromkeys(versions, __version__)
    pods_of_this_version(bare, 1)
    after = bare.get("allocationpolicy", "kept")
    assert (after["spec"], after["metadata"]["uid"]) == (kept["spec"], kept["metadata"]["uid"])


def content(found: Obj) -> Obj:
    """What was applied, without what the server notes down about it."""
    return {name: value for name, value in found.items() if name not in {"metadata", "status"}} | {
        "labels": found["metadata"].get("labels")
    }


def version_of(found: Obj) -> str | None:
    version: str | None = found["metadata"].get("labels", {}).get("app.kubernetes.io/version")
    return version


def test_configurations_of_old_are_pruned_on_demand(bare: Kubectl, tmp_path: Path) -> None:
    """Each change of a setting leaves a ConfigMap, for a way back."""
    bare.run(*APPLY)
    (tmp_path / "config.yaml").write_text("settleSeconds: 20\n", encoding="utf-8")
    generator = {"name": NAMESPACE, "namespace": NAMESPACE, "behavior": "replace", "files": ["config.yaml"]}
    mine = overlay(tmp_path, configMapGenerator=[generator])
    names = {found["metadata"]["name"] for found in of_kind([*built(), *kustomize(mine)], "ConfigMap")}
    bare.run("apply", "--kustomize", str(mine))
    inside = bare.in_namespace(NAMESPACE)
    assert names <= {found["metadata"]["name"] for found in inside.get_all("configmaps")}

    bare.run(
        "apply",
        f"--kustomize={mine}",
        "--prune",
        "--selector=app.kubernetes.io/part-of=dra-operator",
        "--prune-allowlist=core/v1/ConfigMap",
    )

    (left,) = inside.get_all("configmaps", "--selector=app.kubernetes.io/part-of=dra-operator")
    assert left["data"] == {"config.yaml": "settleSeconds: 20\n"}


def test_components_are_accepted(bare: Kubectl, tmp_path: Path) -> None:
    """All together, with unknown fields refused; the kinds of Prometheus Operator and cert-manager must be there first."""
    bare.apply(OTHERS)
    for found in OTHERS:
        bare.until_served(found["metadata"]["name"])
    folder = overlay(tmp_path, components=COMPONENTS)

    bare.run("apply", "--validate=strict", "--kustomize", str(folder))

    wanted = kustomize(folder)
    assert {key(found) for found in live(bare, wanted)} == {key(found) for found in wanted}
    assert len(wanted) > len(built())
    (webhook,) = bare.get("mutatingwebhookconfiguration", "dra-operator-gate")["webhooks"]
    assert (webhook["failurePolicy"], webhook["timeoutSeconds"]) == ("Fail", 5)
