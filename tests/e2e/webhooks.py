"""The gate's webhook without a network of Services: its shipped configuration, led to a port on loopback; and the shipped policies beside it.

Both are put on namespaces of their own, by a label, so that what the other tests count on stays as it is. Used by `test_gate_webhook.py`,
`test_gate_webhook_down.py` and `test_versions.py`.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest

from tests.admission import outcome
from tests.authority import Authority
from tests.e2e.harness.cluster import free_port
from tests.e2e.harness.objects import pod
from tests.e2e.harness.plugin import open_workspace
from tests.e2e.harness.rawapi import RawApi, RawApiError
from tests.unit.manifests.build import WEBHOOK, kustomize, of_kind, overlay

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.e2e.harness.cluster import ControlPlane
    from tests.e2e.harness.workspace import Workspace

Object = dict[str, Any]

BIND = "manifests/components/bind-pods"
WAYS = ("gate", "name")
LABEL = "gate.test"
POLICY = ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")


@dataclass(frozen=True, slots=True)
class Listener:
    """Where one operator serves the webhook.

    Attributes:
        folder: with its certificate.
        authority: that signed it.
        port: on loopback.
    """

    folder: Path
    authority: Authority
    port: int

    @classmethod
    def make(cls, folder: Path) -> Listener:
        """With an authority and a certificate of its own, on a free port."""
        made = cls(folder / "serving", Authority.make(folder / "authority"), free_port())
        made.authority.sign(made.folder)
        return made

    @property
    def flags(self) -> tuple[str, ...]:
        """For `dra-operator run`."""
        return f"--webhook-certificates={self.folder}", f"--webhook-port={self.port}"

    def configuration(self, name: str, way: str = "gate", authority: Authority | None = None) -> Object:
        """The shipped configuration, for namespaces with the label `gate.test: NAME`; all but the place and the namespaces is as shipped."""
        (found,) = of_kind(shipped(way, webhook=True), "MutatingWebhookConfiguration")
        (webhook,) = found["webhooks"]
        client = webhook["clientConfig"]
        bundle = (authority or self.authority).bundle.read_bytes()
        client["url"] = f"https://127.0.0.1:{self.port}{client.pop('service')['path']}"
        client["caBundle"] = base64.b64encode(bundle).decode()
        webhook["namespaceSelector"] = {"matchLabels": {LABEL: name}}
        return _renamed(found, name)


def policy(name: str, way: str) -> list[Object]:
    """The shipped policy and its binding, for namespaces with the label `gate.test: NAME`."""
    admission, binding = of_kind(shipped(way), *POLICY)
    admission["spec"]["matchConstraints"]["namespaceSelector"] = {"matchLabels": {LABEL: name}}
    binding["spec"]["policyName"] = name
    return [_renamed(admission, name), _renamed(binding, name)]


def shipped(way: str, *, webhook: bool = False) -> Iterable[Object]:
    """What the manifests give with the components for it."""
    components = [*([WEBHOOK] if webhook else []), *([BIND] if way == "name" else [])]
    with TemporaryDirectory() as folder:
        return kustomize(overlay(Path(folder), components=components))


def created(workspace: Workspace, body: Object, *, dry: bool = True) -> Object:
    """What the API server answers to the creation of a pod, which it checks and, if dry, forgets."""
    if dry:
        return workspace.rehearse(body)
    path = f"/api/v1/namespaces/{workspace.namespace}/pods"
    return RawApi(workspace.control_plane.kubeconfig).post(path, body)


def is_put_on(workspace: Workspace) -> bool:
    """Whether the API server has heard of a configuration or a policy. Raises: RawApiError: it has, and nobody answers."""
    asked = pod("canary", templates={"gpu": "absent"})
    return outcome(asked["spec"], created(workspace, asked)["spec"]) != "untouched"


def refusal(workspace: Workspace, body: Object) -> str:
    """Why a pod is refused; empty if it is not."""
    try:
        created(workspace, body)
    except RawApiError as error:
        return str(error)
    return ""


@pytest.fixture
def labelled(control_plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Workspace]:
    """A namespace that configurations and policies named after it are for."""
    for opened in open_workspace(control_plane, request):
        opened.kubectl.run("label", "namespace", opened.namespace, f"{LABEL}={opened.namespace}")
        yield opened


def _renamed(found: Object, name: str) -> Object:
    return {**found, "metadata": {**found["metadata"], "name": name}}
