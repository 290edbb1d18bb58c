"""The page of the gate's webhook, followed on a cluster of its own kind: it installs the operator in another way than the other pages do.

Every command of it is run, openssl's included. There is no network of Services here: that the API server would reach both pods, and trust what it finds
there, is asked with its own bundle and name; `test_gate_webhook.py` has it call the operator itself.
"""

from __future__ import annotations

import base64
import http.client
import json
import shutil
import socket
import ssl
from typing import TYPE_CHECKING, Any

import pytest

from tests.admission import CASES, GATE, pod
from tests.docs.commands import Command, steps
from tests.e2e.harness.operator_process import ROOT
from tests.e2e.harness.podrunner import WEBHOOK_PORT
from tests.e2e.install_fixtures import open_installation
from tests.e2e.test_docs import Reader

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.harness.cluster import ControlPlane

PAGE = "docs/gate-webhook.md"
CONFIGURATION = ("mutatingwebhookconfiguration", "dra-operator-gate")


@pytest.fixture
def reader(install_plane: ControlPlane, tmp_path: Path) -> Iterator[Reader]:
    for name in ("crds", "manifests"):
        shutil.copytree(ROOT / name, tmp_path / name)
    environment = {"DRA_OPERATOR_SETTLE_SECONDS": "1"}
    with open_installation(install_plane, environment, install=False) as installation:
        yield Reader(installation, tmp_path)


@pytest.mark.timeout(300)
def test_the_page_is_followed_and_what_it_installs_is_removed(reader: Reader) -> None:
    installation = reader.installation
    kubectl = installation.control_plane.kubectl
    for step in steps(PAGE):
        if isinstance(step, Command):
            reader.follow(step, installation.control_plane.kubeconfig)
        else:
            reader.write(step.path, step.text)

    assert kubectl.find("mutatingadmissionpolicy", "dra-operator-gate") is None
    (webhook,) = kubectl.get(*CONFIGURATION)["webhooks"]
    answers = [asked(webhook, int(url.rpartition(":")[2])) for url in installation.runner.urls(WEBHOOK_PORT)]
    assert answers == [[{"op": "add", "path": "/spec/schedulingGates", "value": [{"name": GATE}]}]] * 2

    said = installation.uninstall()

    assert 'mutatingwebhookconfiguration.admissionregistration.k8s.io "dra-operator-gate" deleted' in said
    assert installation.left() == []
    assert kubectl.find(*CONFIGURATION) is None


def asked(webhook: dict[str, Any], port: int) -> Any:
    """The patch for a pod with a claim, by an answer that the API server would trust."""
    service = webhook["clientConfig"]["service"]
    trust = ssl.create_default_context(cadata=base64.b64decode(webhook["clientConfig"]["caBundle"]).decode())
    name = f"{service['name']}.{service['namespace']}.svc"
    request = {"uid": "1", "operation": "CREATE", "object": pod(CASES[3])}
    request["resource"] = {"group": "", "version": "v1", "resource": "pods"}
    with (
        socket.create_connection(("127.0.0.1", port), timeout=10) as plain,
        trust.wrap_socket(plain, server_hostname=name) as secured,
    ):
        connection = http.client.HTTPConnection(name)
        connection.sock = secured
        connection.request("POST", service["path"], json.dumps({"request": request}))
        answer = json.loads(connection.getresponse().read())
    return json.loads(base64.b64decode(answer["response"]["patch"]))
