"""What one test may litter: a namespace of its own, and cluster-scoped objects that are gone when the test ends.

Made by the fixture `workspace` of `plugin`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.e2e.harness.kubectl import Kubectl, KubectlError, as_documents
from tests.e2e.harness.objects import pod
from tests.e2e.harness.rawapi import RawApi
from tests.e2e.harness.waiting import NotInTimeError, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.e2e.harness.cluster import ControlPlane

ENABLED_LABEL = "dra-operator.io/enabled"
"""The label of namespaces whose pods get the gate."""

_ACCOUNT_TIMEOUT = 30.0


@dataclass(slots=True)
class Workspace:
    """A test's corner of a control plane.

    Attributes:
        control_plane: Shared with other tests.
        namespace: Own namespace; pods may be created at once.
        kubectl: Administrator in that namespace.
    """

    control_plane: ControlPlane
    namespace: str
    kubectl: Kubectl
    _cluster_scoped: list[tuple[str, str]] = field(default_factory=list)

    @classmethod
    def create(
        cls, control_plane: ControlPlane, namespace: str, labels: dict[str, str] | None = None
    ) -> Workspace:
        """Makes the namespace and waits for its ServiceAccount `default`, without which no pod is accepted."""
        metadata = {"name": namespace, "labels": labels or {}}
        kubectl = control_plane.kubectl
        kubectl.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        inside = kubectl.in_namespace(namespace)
        inside.until(
            "serviceaccount", "default", lambda _: True, "made by its controller", timeout=_ACCOUNT_TIMEOUT
        )
        return cls(control_plane, namespace, inside)

    def apply(self, *manifests: str | dict[str, Any], validate: bool = True) -> None:
        """Applies YAML texts and objects; what is not namespaced is deleted again with the workspace.

        Args:
            manifests: texts and objects.
            validate: as of kubectl; False lets fields pass that the API server does not know.
        """
        text = "\n---\n".join(map(as_documents, manifests))
        applied = self.kubectl.apply(text, "--output=json", f"--validate={str(validate).lower()}")
        self._remember(json.loads(applied))

    def _remember(self, applied: dict[str, Any]) -> None:
        items = applied.get("items", [applied])
        for item in items:
            if "namespace" not in item["metadata"]:
                group = item["apiVersion"].rpartition("/")[0]
                kind = f"{item['kind']}.{group}" if group else item["kind"]
                self._cluster_scoped.append((kind, item["metadata"]["name"]))

    def rehearse(self, made: dict[str, Any]) -> dict[str, Any]:
        """A pod as kube-apiserver would store it; none is stored. Raises: RawApiError: It would refuse it."""
        path = f"/api/v1/namespaces/{self.namespace}/pods?dryRun=All"
        return RawApi(self.control_plane.kubeconfig).post(path, made)

    def until_gated(self, *, gated: bool = True) -> None:
        """Waits until new pods with claims get a gate, or no longer do: kube-apiserver hears of policies and labels a second or two later."""
        trial = pod("trial", templates={"gpu": "absent"})
        wait_until(
            lambda: "schedulingGates" in self.rehearse(trial)["spec"],
            f"new pods in {self.namespace} {'with' if gated else 'without'} a gate",
            accept=lambda seen: seen == gated,
        )

    def enable(self, *, enabled: bool = True) -> None:
        """Labels the namespace as admins do, or takes the label off; returns when new pods are as that says."""
        self.kubectl.run(
            "label", "namespace", self.namespace, f"{ENABLED_LABEL}{'=true' if enabled else '-'}"
        )
        self.until_gated(gated=enabled)

    def nodes_ready(self, *names: str) -> None:
        """Waits until nodes are Ready and without the not-ready taint, so that pods may go there."""
        for name in names:
            self.kubectl.until("node", name, _usable, "Ready and untainted")

    def close(self) -> None:
        """Deletes pods first (their claims go with them), then the cluster-scoped objects, then the namespace.

        Nothing is awaited but the pods. Custom objects lose their finalizers: who looked after them may run no more.

        Raises:
            KubectlError, NotInTimeError: Something could not be deleted; the rest is deleted all the same.
        """
        failures: list[KubectlError | NotInTimeError] = []
        steps: list[Callable[[], None]] = [
            self._delete_pods,
            *(partial(self._delete, kind, names) for kind, names in self._by_kind()),
            partial(self._delete, "namespace", [self.namespace]),
        ]
        for step in steps:
            try:
                step()
            except (KubectlError, NotInTimeError) as error:
                failures.append(error)
        if failures:
            raise failures[0]

    def _delete_pods(self) -> None:
        """By force, because no kubelet ends a pod on a node that is gone or never was; all in one request, there may be hundreds."""
        pods = f"/api/v1/namespaces/{self.namespace}/pods?gracePeriodSeconds=0"
        self.kubectl.in_namespace("").run("delete", "--raw", pods)
        wait_until(
            lambda: [found["metadata"]["name"] for found in self.kubectl.get_all("pods")],
            f"no pods in {self.namespace}",
            accept=lambda left: not left,
        )

    def _by_kind(self) -> list[tuple[str, list[str]]]:
        """The cluster-scoped objects, last applied kind first: one call of kubectl a kind."""
        kinds: dict[str, list[str]] = {}
        for kind, name in reversed(self._cluster_scoped):
            kinds.setdefault(kind, []).append(name)
        return list(kinds.items())

    def _delete(self, kind: str, names: list[str]) -> None:
        self.kubectl.delete(kind, *names, wait=False)
        for name in names if _is_custom(kind) else ():
            self._strip(kind, name)

    def _strip(self, kind: str, name: str) -> None:
        """Take the finalizers off, unless the object went by itself, before or in the middle of it."""
        if self.kubectl.find(kind, name):
            try:
                self.kubectl.patch(kind, name, {"metadata": {"finalizers": None}})
            except KubectlError:
                if self.kubectl.find(kind, name):
                    raise


def _is_custom(kind: str) -> bool:
    group = kind.partition(".")[2]
    return "." in group and not group.endswith(".k8s.io")


def _usable(node: dict[str, Any]) -> bool:
    ready = {"type": "Ready", "status": "True"}
    conditions = node.get("status", {}).get("conditions", [])
    return any(condition | ready == condition for condition in conditions) and not node["spec"].get("taints")
