"""The page of the gate's webhook, followed on a cluster of its own: it installs the operator in another way than the other pages do.

Every command of it is run, openssl's included. Then pods are created, and kube-apiserver calls the operator's pods through their Service, by its name, with the
certificate that the page has made.
"""

from __future__ import annotations

import os
import shutil
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.admission import GATE
from tests.docs.commands import Command, steps
from tests.e2e.fleet import conditions, gates
from tests.e2e.harness.cluster import Options
from tests.e2e.harness.objects import pod
from tests.e2e.harness.operator_process import ROOT
from tests.e2e.harness.plugin import ENABLED, own_control_plane
from tests.e2e.harness.podrunner import NAMESPACE, WEBHOOK_PORT
from tests.e2e.harness.rawapi import RawApi, RawApiError
from tests.e2e.harness.services import ServiceNetwork
from tests.e2e.harness.waiting import wait_until
from tests.e2e.harness.workspace import Workspace
from tests.e2e.install_fixtures import open_installation
from tests.e2e.test_docs import Reader
from tests.e2e.webhooks import created

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGE = "docs/gate-webhook.md"
CONFIGURATION = ("mutatingwebhookconfiguration", "dra-operator-gate")
SERVICE = "dra-operator-webhook"
ASKED = pod("train", templates={"gpu": "absent"})


@dataclass(frozen=True, slots=True)
class Site:
    """A reader, and the network between kube-apiserver and the pods."""

    reader: Reader
    network: ServiceNetwork

    def follow(self) -> None:
        """The whole page."""
        for step in steps(PAGE):
            if isinstance(step, Command):
                self.reader.follow(step, self.reader.installation.control_plane.kubeconfig)
            else:
                self.reader.write(step.path, step.text)

    def backends(self, address: str) -> list[int]:
        """What kube-proxy would have there: the ready pods that the Service selects, if the address is its own."""
        installation = self.reader.installation
        api, path = RawApi(installation.control_plane.kubeconfig), f"/api/v1/namespaces/{NAMESPACE}"
        spec = api.get(f"{path}/services/{SERVICE}")["spec"]
        (port,) = spec["ports"]
        if address != f"{spec['clusterIP']}:{port['port']}":
            return []
        pods = api.get(f"{path}/pods")["items"]
        chosen = [found for found in pods if spec["selector"].items() <= found["metadata"]["labels"].items()]
        return [
            installation.runner.port_of(found["metadata"]["uid"], WEBHOOK_PORT)
            for found in chosen
            if conditions(found).get("Ready", ("", ""))[0] == "True"
        ]


@pytest.fixture
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    for name in ("crds", "manifests"):
        shutil.copytree(ROOT / name, tmp_path / name)
    environment = {"DRA_OPERATOR_SETTLE_SECONDS": "1"}
    with (
        ServiceNetwork(tmp_path) as network,
        own_control_plane(request.session, Options(apiserver_flags=network.flags)) as plane,
        open_installation(plane, environment, install=False) as installation,
    ):
        made = Site(Reader(installation, tmp_path), network)
        network.backends = made.backends
        yield made


@pytest.mark.timeout(400)
def test_the_page_is_followed_serves_and_what_it_installs_is_removed(site: Site) -> None:
    """With two pods behind the Service, the end of one, killed, is not the end of answers."""
    installation = site.reader.installation
    kubectl = installation.control_plane.kubectl
    site.follow()
    team = Workspace.create(installation.control_plane, "team-w", ENABLED)

    assert kubectl.find("mutatingadmissionpolicy", "dra-operator-gate") is None
    assert gates(wait_until(lambda: answered(team), "gated by the webhook", accept=is_gated)) == [GATE]
    first = site.network.reached[-1]
    os.kill(installation.runner.pid_at(first), signal.SIGKILL)
    wait_until(lambda: is_gated(answered(team)) and site.network.reached[-1] != first, "the other answers")
    team.close()

    said = installation.uninstall()

    assert 'mutatingwebhookconfiguration.admissionregistration.k8s.io "dra-operator-gate" deleted' in said
    assert installation.left() == []
    assert kubectl.find(*CONFIGURATION) is None


def answered(team: Workspace) -> dict[str, object]:
    """The pod as the API server would store it; nothing while nobody answers."""
    try:
        return created(team, ASKED)
    except RawApiError as error:
        if "failed calling webhook" not in str(error):
            raise
        return {}


def is_gated(found: dict[str, object]) -> bool:
    return bool(found) and gates(found) == [GATE]
