"""A running Kubernetes control plane on loopback: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, and kwok.

Made by the fixtures of `plugin`, by `python -m tests.e2e.harness`, and by benchmarks. It owns a folder (data, logs,
kubeconfigs) and the processes that it started, and nothing else: it is stopped by pid, and several run side by side.
"""

from __future__ import annotations

import json
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tests.e2e.harness import components, rights
from tests.e2e.harness.build import Binaries, ensure_binaries
from tests.e2e.harness.components import (
    APISERVER,
    CONTROLLER_MANAGER,
    ETCD,
    KWOK,
    SCHEDULER,
    Layout,
    Options,
    Ports,
)
from tests.e2e.harness.kubectl import Kubectl
from tests.e2e.harness.probe import answers_ok
from tests.e2e.harness.process import Process
from tests.e2e.harness.waiting import NotInTimeError, wait_until

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["ControlPlane", "Options", "StartError"]

_START_ORDER = (ETCD, APISERVER, CONTROLLER_MANAGER, SCHEDULER, KWOK)
_ATTEMPTS = 3  # two clashes of freshly chosen ports in a row are no accident
_START_TIMEOUT = 60.0  # seconds a component; 1 to 3 on a quiet machine, and the two cores may be busy
_CLASH = "address already in use"


class StartError(Exception):
    """The control plane did not come up; the text holds the end of the log and where the rest is."""


class _PortClashError(Exception):
    """Somebody took a port between choosing and listening."""


class ControlPlane:
    """A control plane; `ControlPlane.start()` makes a running one, and leaving the `with` block stops it.

    Attributes:
        options: As given.
        folder: Logs (`<component>.log`), kubeconfigs, data. Removed by `stop()`.
        server: URL of kube-apiserver.
        token: Bearer token of the administrator.
        ca_file: Certificate authority of `server` (PEM).
        kubeconfig: File of the administrator.
    """

    def __init__(self, options: Options, binaries: Binaries) -> None:
        self.options = options
        self._tokens = {user: secrets.token_hex(16) for user in components.USERS}
        self._layout = Layout(Path(tempfile.mkdtemp(prefix="dra-e2e-")), binaries, free_ports(), options)
        self._processes: dict[str, Process] = {}
        self.folder = self._layout.folder
        self.server = self._layout.server
        self.token = self._tokens["admin"]
        self.ca_file = self._layout.certificate(APISERVER)
        self.kubeconfig = self._layout.kubeconfig("admin")

    @classmethod
    def start(cls, options: Options | None = None, binaries: Binaries | None = None) -> Self:
        """A control plane that is ready: all components healthy, `default` namespace usable.

        Args:
            options: Stock cluster by default.
            binaries: Built when missing (minutes) by default.

        Raises:
            StartError: A component ended or did not become ready; its folder is kept.
            BuildError: The binaries could not be built.
        """
        built = binaries or ensure_binaries()
        for _ in range(_ATTEMPTS):
            control_plane = cls(options or Options(), built)
            try:
                control_plane._start()
            except _PortClashError:
                control_plane.stop()
            else:
                return control_plane
        raise StartError(f"the chosen ports were taken by others {_ATTEMPTS} times in a row")

    def _start(self) -> None:
        """Starts all; on any failure nothing is left running."""
        with ExitStack() as undo:
            undo.callback(self._stop_processes)
            self._write_files()
            for component in (ETCD, APISERVER):
                self.start_component(component)
            others = [name for name in _START_ORDER[2:] if name not in self.options.without]
            for component in others:
                self._launch(component)
            for component in others:
                self._await_ready(component)
            self._await_default_account()
            undo.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop(keep_logs=kind is not None)

    def stop(self, *, keep_logs: bool = False) -> None:
        """Stops all components and removes the folder (with `keep_logs`, only etcd's data). May be called twice."""
        self._stop_processes()
        rights.collect(self._layout.audit_log)
        shutil.rmtree(self.folder / ETCD if keep_logs else self.folder, ignore_errors=True)

    def _stop_processes(self) -> None:
        """Clients first and together, then the server, then its store."""
        clients = [name for name in (SCHEDULER, CONTROLLER_MANAGER, KWOK) if name in self._processes]
        for name in clients:
            self._processes[name].send(signal.SIGTERM)
        for name in (*clients, APISERVER, ETCD):
            self.stop_component(name)

    # ----------------------------------------------------------------------- components

    def pid(self, component: str) -> int:
        """Process id of a running component. For kwok it is that of its guard, which passes SIGTERM on."""
        return self._processes[component].pid

    def log(self, component: str) -> str:
        """The last lines that a component wrote."""
        return self._processes[component].log_tail()

    def start_component(self, component: str, patience: float = _START_TIMEOUT) -> None:
        """Starts a component (again), with the same ports and data, and waits until it is ready, for so many seconds at most."""
        self._launch(component)
        self._await_ready(component, patience)

    def stop_component(self, component: str) -> None:
        """Stops a component; the others stay. Nothing happens if it does not run."""
        if process := self._processes.pop(component, None):
            process.stop()

    def kill_component(self, component: str) -> None:
        """As `stop_component`, with SIGKILL."""
        if process := self._processes.pop(component, None):
            process.kill()

    def _launch(self, component: str) -> None:
        self._processes[component] = Process(
            component,
            self._layout.command(component),
            self.folder / f"{component}.log",
            self.options.environment,
        )

    def _await_ready(self, component: str, patience: float = _START_TIMEOUT) -> None:
        url, certificate = self._layout.health(component)
        token = self.token if component == APISERVER else None
        process = self._processes[component]

        def ready() -> bool:
            self._must_run(process)
            return answers_ok(url, certificate, token)

        try:
            wait_until(ready, f"{component} ready at {url}", timeout=patience)
        except NotInTimeError as error:
            raise StartError(f"{error}\n{_evidence(process)}") from error

    def _must_run(self, process: Process) -> None:
        """Raises when a component ended during the start."""
        status = process.exit_status
        if status is None:
            return
        if _CLASH in process.log_tail():
            raise _PortClashError(process.name)
        raise StartError(f"{process.name} ended with status {status} during the start\n{_evidence(process)}")

    def _await_default_account(self) -> None:
        """Pods are refused in a namespace until kube-controller-manager has made its ServiceAccount `default`."""
        if CONTROLLER_MANAGER in self.options.without:
            return
        url = f"{self.server}/api/v1/namespaces/default/serviceaccounts/default"
        wait_until(
            lambda: answers_ok(url, self.ca_file, self.token),
            "ServiceAccount default/default",
            timeout=_START_TIMEOUT,
        )

    @property
    def guard_command(self) -> list[str]:
        """Put before a command line, it makes the command end with the test session, however that ends."""
        return [str(self._layout.binaries.controlplane), "guard"]

    # ----------------------------------------------------------------------- files and users

    def _write_files(self) -> None:
        layout = self._layout
        (self.folder / "tokens.csv").write_text(components.tokens_csv(self._tokens))
        layout.audit_policy.write_text(json.dumps(rights.AUDIT_POLICY))
        (self.folder / "scheduler.json").write_text(components.scheduler_configuration(layout))
        for user, token in self._tokens.items():
            self.write_kubeconfig(user, token)
        command = [str(layout.binaries.controlplane), "keygen", str(layout.service_account_key)]
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True)

    def write_kubeconfig(self, name: str, token: str, namespace: str | None = None) -> Path:
        """Writes `<folder>/<name>.kubeconfig` for a bearer token and returns its path."""
        path = self._layout.kubeconfig(name)
        path.write_text(components.kubeconfig(self._layout, token, namespace))
        path.chmod(0o600)
        return path

    @property
    def kubectl(self) -> Kubectl:
        """Kubectl as administrator."""
        return Kubectl(self.kubeconfig)

    def user_kubeconfig(self, namespace: str) -> Path:
        """Kubeconfig of the user `jane`, who has no rights but those that a test gives her, in a context of this namespace."""
        return self.write_kubeconfig(f"jane.{namespace}", self._tokens[components.USER], namespace)

    def service_account(self, namespace: str, name: str, rbac: str | None = None) -> Path:
        """Kubeconfig of a ServiceAccount with a token as a pod would have: the account has the rights of `rbac`, no more.

        Args:
            namespace: Made when missing, as is the account.
            name: Of the ServiceAccount.
            rbac: YAML text with roles and bindings, applied as administrator; for example the shipped manifests.
        """
        admin = self.kubectl
        inside = admin.in_namespace(namespace)
        if admin.find("namespace", namespace) is None:
            admin.run("create", "namespace", namespace)
        if inside.find("serviceaccount", name) is None:
            inside.run("create", "serviceaccount", name)
        if rbac is not None:
            admin.apply(rbac)
        token = inside.run("create", "token", name, "--duration=4h").strip()
        return self.write_kubeconfig(f"{namespace}.{name}", token, namespace)


def free_port() -> int:
    """A port that is free on loopback now."""
    with ExitStack() as held:
        return _hold_port(held)


def free_ports() -> Ports:
    """A free port for each component: all are held until the last is chosen, so they differ."""
    with ExitStack() as held:
        return Ports(*(_hold_port(held) for _ in fields(Ports)))


def _hold_port(held: ExitStack) -> int:
    listener = held.enter_context(socket.socket())
    listener.bind(("127.0.0.1", 0))
    return int(listener.getsockname()[1])


def _evidence(process: Process) -> str:
    return f"end of {process.log}:\n{process.log_tail()}"
