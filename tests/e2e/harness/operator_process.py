"""The operator under test, as users install it: the shipped manifests, and `dra-operator run` with its own ServiceAccount.

Only the Deployment is left out: kwok runs no containers, so the program runs here, as a process of the test session.
Used by the end-to-end tests. The program is started, not imported.
"""

from __future__ import annotations

import os
import signal
import sys
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

import yaml

from tests.e2e.harness.cluster import StartError, free_port
from tests.e2e.harness.probe import answers_ok, decides
from tests.e2e.harness.process import Process, guarded_pid
from tests.e2e.harness.waiting import wait_until

if TYPE_CHECKING:
    from types import TracebackType

    from tests.e2e.harness.cluster import ControlPlane

ROOT = Path(__file__).resolve().parents[3]
NAMESPACE = ACCOUNT = "dra-operator"
POLICY_CRD = "allocationpolicies.dra-operator.io"
QUICK_LEASE = ("--lease-seconds=4", "--renew-seconds=3", "--retry-seconds=0.5")
"""For tests that kill the operator: the next one has to wait for the end of the Lease."""

BURST_LEASE = ("--lease-seconds=8", "--renew-seconds=6", "--retry-seconds=1")
"""The same where it is killed in a burst: on a busy machine kube-apiserver leaves a renewal without an answer for seconds then, and whoever leads ends, rightly."""

LEASE = "lease.coordination.k8s.io/dra-operator-leader"
_START_TIMEOUT = 60.0  # seconds; the first lists of an empty cluster take one
_GRACE = 30.0  # as terminationGracePeriodSeconds in the Deployment


def install(control_plane: ControlPlane, *folders: Path) -> Path:
    """Applies the shipped manifests (may be called again) and returns a kubeconfig with exactly the shipped rights.

    Args:
        control_plane: Where to.
        folders: Kustomizations with them, or part of them, or with more, such as components; `manifests` if there is none.
    """
    kubectl = control_plane.kubectl
    for folder in folders or (ROOT / "manifests",):
        shipped = yaml.safe_load_all(kubectl.run("kustomize", str(folder)))
        kubectl.apply([document for document in shipped if document["kind"] != "Deployment"])
    kubectl.until_served(POLICY_CRD)
    ensure_lease(control_plane)
    return control_plane.service_account(NAMESPACE, ACCOUNT)


def ensure_lease(control_plane: ControlPlane) -> None:
    """A Lease that nobody holds. Where there is none, the first operator waits as long as the holder of a deleted one may go on, here for nobody."""
    kubectl = control_plane.kubectl.in_namespace(NAMESPACE)
    if not kubectl.run("get", LEASE, "--ignore-not-found", "--output=name").strip():
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "dra-operator-leader"},
        }
        kubectl.apply({**lease, "spec": {"leaseDurationSeconds": 1}})


class OperatorProcess:
    """`dra-operator run` against a control plane; `OperatorProcess.start()` makes one that is ready.

    It ends with the test session, however that ends (the control plane's binary guards it).

    Attributes:
        url: Of /healthz, /readyz and /metrics.
        log: File with all that it wrote.
    """

    def __init__(self, control_plane: ControlPlane, kubeconfig: Path, *flags: str) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.log = control_plane.folder / f"dra-operator-{port}.log"
        command = [
            *control_plane.guard_command,
            str(Path(sys.executable).parent / "dra-operator"),
            "run",
            f"--kubeconfig={kubeconfig}",
            "--http-host=127.0.0.1",
            f"--http-port={port}",
            *flags,
        ]
        self._process = Process("dra-operator", command, self.log, {})

    @classmethod
    def start(cls, control_plane: ControlPlane, kubeconfig: Path, *flags: str, standby: bool = False) -> Self:
        """Starts it and waits until it decides.

        Args:
            control_plane: Where to.
            kubeconfig: Its rights.
            flags: Settings.
            standby: Wait only for /readyz: another one holds the Lease.

        Raises:
            StartError: It ended at once; the text holds what it wrote.
            NotInTimeError: It is not ready in time.
        """
        operator = cls(control_plane, kubeconfig, *flags)
        try:
            is_there = operator.ready if standby else operator.decides
            wait_until(is_there, f"dra-operator ready, see {operator.log}", timeout=_START_TIMEOUT)
        except BaseException:
            operator.kill()
            raise
        return operator

    def ready(self) -> bool:
        """Whether /readyz answers 200. Raises: StartError: The program has ended."""
        self._check_alive()
        return answers_ok(f"{self.url}/readyz")

    def decides(self) -> bool:
        """Whether it is ready and may write. Raises: StartError: The program has ended."""
        self._check_alive()
        return decides(self.url)

    def _check_alive(self) -> None:
        if self.exit_status is not None:
            raise StartError(
                f"dra-operator ended with status {self.exit_status}:\n{self._process.log_tail()}"
            )

    @property
    def exit_status(self) -> int | None:
        """None while it runs; 128 + number for a signal."""
        return self._process.exit_status

    @property
    def pid(self) -> int:
        """Process id of the program itself, not of its guard. Raises: ProcessLookupError: It has ended."""
        return guarded_pid(self._process.pid)

    def send(self, number: signal.Signals) -> None:
        """Sends a signal to the program, for example SIGSTOP and SIGCONT for a leader that sleeps."""
        os.kill(self.pid, number)

    def stop(self) -> int | None:
        """SIGTERM, as a Deployment does it; returns the exit status."""
        self._process.stop(_GRACE)
        return self.exit_status

    def kill(self) -> None:
        """SIGKILL, as a lost node does it: the program gets no chance to tidy up. Returns when it is gone."""
        with suppress(ProcessLookupError):
            self.send(signal.SIGKILL)
        self._process.stop(_GRACE)

    def metrics(self) -> str:
        """Text of /metrics."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{self.url}/metrics", timeout=5) as answer:
            return str(answer.read().decode())

    def log_text(self) -> str:
        """All that it wrote."""
        return self.log.read_text(errors="replace")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
