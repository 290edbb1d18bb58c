"""The operator as a cluster admin has it: installed by the README's command, run by `podrunner`, removed by the shipped script.

`conftest.py` imports the fixtures. The control plane is one for such tests alone: each finds nothing of the operator's there, and
leaves nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.harness.objects import node
from tests.e2e.harness.operator_process import ROOT, ensure_lease
from tests.e2e.harness.plugin import shared_control_plane
from tests.e2e.harness.podrunner import NAMESPACE, PodRunner
from tests.e2e.harness.probe import decides
from tests.e2e.harness.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.harness.cluster import ControlPlane

NODE = "control-node"
"""Where the operator's pod and the release Job go: the only node at first."""

MINE = "app.kubernetes.io/name=dra-operator"
INSTALL_TIMEOUT = "100s"
"""Less than `Kubectl.timeout`, so that kubectl itself says what it waits for."""

UNINSTALL_TIMEOUT = 240.0


@dataclass(frozen=True, slots=True)
class Installation:
    """The operator, installed.

    Attributes:
        control_plane: Of these tests alone.
        runner: Runs the pods of the manifests; its environment is the module's `INSTALL_ENVIRONMENT`.
    """

    control_plane: ControlPlane
    runner: PodRunner

    def install(self, folder: Path = ROOT / "manifests") -> None:
        """`kubectl apply -k`, and waiting for the Deployment."""
        kubectl = self.control_plane.kubectl
        kubectl.run("apply", "--kustomize", str(folder))
        ensure_lease(self.control_plane)
        self.rollout()
        wait_until(lambda: any(map(decides, self.runner.urls())), "a pod of the operator leads")

    def rollout(self) -> None:
        """Waits until the Deployment is as it should be."""
        wait = ("rollout", "status", "deployment/dra-operator", f"--timeout={INSTALL_TIMEOUT}")
        self.control_plane.kubectl.in_namespace(NAMESPACE).run(*wait)

    @property
    def url(self) -> str:
        """Of /healthz, /readyz and /metrics of the pod that leads."""
        return self.runner.url()

    def stop_operator(self) -> None:
        """The Deployment at no replicas, and the operator's end in good order."""
        kubectl = self.control_plane.kubectl.in_namespace(NAMESPACE)
        kubectl.run("scale", "deployment/dra-operator", "--replicas=0")
        wait_until(lambda: kubectl.get_all("pods"), "no pod of the operator", accept=lambda left: not left)

    def uninstall(self) -> str:
        """`sh manifests/uninstall.sh`; returns what it printed.

        Raises:
            AssertionError: It failed; the text holds what it, and the Job, printed.
        """
        done = self.try_uninstall()
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{self.runner.log_text()}"
        return done.stdout

    def try_uninstall(self) -> subprocess.CompletedProcess[str]:
        """As `uninstall`, without judging the result."""
        script = str(ROOT / "manifests" / "uninstall.sh")
        # The kubectl of the tests comes first, and no kubeconfig but the one named.
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "KUBECTL_KUBERC": "false"}
        return subprocess.run(
            ["sh", script, f"--kubeconfig={self.control_plane.kubeconfig}"],
            stdin=subprocess.DEVNULL,
            env=environment,
            capture_output=True,
            text=True,
            timeout=UNINSTALL_TIMEOUT,
            check=False,
        )

    def left(self) -> list[str]:
        """Objects that bear the operator's label, its namespace included."""
        kubectl = self.control_plane.kubectl
        kinds = kubectl.run("api-resources", "--verbs=list", "--output=name", "--no-headers").split()
        flags = ("--all-namespaces", f"--selector={MINE}", "--output=name", "--ignore-not-found")
        return kubectl.run("get", ",".join(kinds), *flags).split()


@pytest.fixture(scope="session")
def install_plane(request: pytest.FixtureRequest) -> ControlPlane:
    """A control plane for tests that install and remove the operator; nothing is installed on it."""
    return shared_control_plane(request.session, purpose="install")


@contextmanager
def open_installation(
    control_plane: ControlPlane, environment: dict[str, str], *, install: bool = True
) -> Iterator[Installation]:
    """Installs with the README's command (unless the test does it), and removes with the README's command, whatever the test did."""
    control_plane.kubectl.apply(node(NODE, labels={"kubernetes.io/os": "linux"}))
    with PodRunner(control_plane, environment) as runner:
        installation = Installation(control_plane, runner)
        try:
            if install:
                installation.install()
            yield installation
        except BaseException:
            print(runner.log_text(), flush=True)
            raise
        finally:
            if installation.left():
                installation.uninstall()
                assert installation.left() == []


@pytest.fixture
def installed(install_plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Installation]:
    """The operator, installed with `kubectl apply -k manifests` and ready; removed with `manifests/uninstall.sh` after the test.

    A module sets other settings by `INSTALL_ENVIRONMENT`: they win over the shipped ones as variables do, and change no manifest.
    """
    environment: dict[str, str] = getattr(request.module, "INSTALL_ENVIRONMENT", {})
    with open_installation(install_plane, environment) as installation:
        yield installation
