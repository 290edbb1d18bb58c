"""A kubelet for the pods of the shipped manifests: runs their containers as processes of this machine, and tells kube-apiserver.

kwok runs no containers; it leaves the pods of the operator's namespace alone (`stages.yaml`), and this takes them, on whichever
node kube-scheduler has bound them to. So `kubectl apply -k manifests` really starts the operator, its rollout really waits for
/readyz, a Job really ends. Used by the fixture `installed`. Not there: init containers, liveness probes, limits, exec and logs.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Self

from tests.e2e.harness.cluster import free_port
from tests.e2e.harness.containers import Container, UnsupportedError, prepare
from tests.e2e.harness.podstatus import report
from tests.e2e.harness.probe import answers_ok, decides
from tests.e2e.harness.process import Process, guarded_pid
from tests.e2e.harness.rawapi import RawApi, RawApiError

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from tests.e2e.harness.cluster import ControlPlane

Object = dict[str, Any]

NAMESPACE = "dra-operator"
ELECTS = "dra-operator.io/elects"
WEBHOOK_PORT = 9443
PERIOD = (
    0.2  # seconds between two looks at the pods; a kubelet hears of them by a watch, and is hardly faster
)
RESTART_PAUSE = 1.0  # seconds; a kubelet begins with 10
STRATEGIC = "application/strategic-merge-patch+json"


@dataclass(slots=True)
class RunningPod:
    """A pod of ours, and the processes that are its containers.

    Attributes:
        pod: As last seen.
        ports: Port of the spec → port on this machine, for pods may not share the ports of one machine.
        processes: By the container's name; the last one, if it was restarted.
        restarts: By the container's name.
        down_since: When a container was seen to have ended, in seconds of the monotonic clock.
        stay_down: Containers that end are not restarted: the node has no kubelet any more.
        trouble: Why it cannot be run; empty if it can.
        told: The status that was reported last.
    """

    pod: Object
    folder: Path
    ports: dict[int, int] = field(default_factory=dict)
    containers: dict[str, Container] = field(default_factory=dict)
    processes: dict[str, Process] = field(default_factory=dict)
    restarts: dict[str, int] = field(default_factory=dict)
    down_since: dict[str, float] = field(default_factory=dict)
    term_sent: float | None = None
    stay_down: bool = False
    trouble: str = ""
    told: Object | None = None

    @property
    def name(self) -> str:
        """Of the pod."""
        return str(self.pod["metadata"]["name"])

    @property
    def is_running(self) -> bool:
        """Whether any of its processes runs."""
        return any(process.exit_status is None for process in self.processes.values())

    def is_ready(self, spec: Object) -> bool:
        """Whether a container runs and its readiness probe, if there is one, is answered."""
        process = self.processes.get(spec["name"])
        if process is None or process.exit_status is not None:
            return False
        probe = spec.get("readinessProbe", {}).get("httpGet")
        if probe is None:
            return True
        named = {port.get("name"): port["containerPort"] for port in spec.get("ports", [])}
        port = self.ports[named.get(probe["port"], probe["port"])]
        return answers_ok(f"http://127.0.0.1:{port}{probe['path']}")


class PodRunner:
    """Use as a context manager; leaving it ends all processes.

    Attributes:
        environment: Added to every container, for what the machine decides and not the manifest.
    """

    def __init__(
        self,
        control_plane: ControlPlane,
        environment: dict[str, str] | None = None,
        namespace: str = NAMESPACE,
    ) -> None:
        self.environment = environment or {}
        self._plane = control_plane
        self._namespace = namespace
        self._kubectl = control_plane.kubectl.in_namespace(namespace)
        self._api = RawApi(control_plane.kubeconfig)
        self._path = f"/api/v1/namespaces/{namespace}"
        self._pods: dict[str, RunningPod] = {}
        self._logs: list[Path] = []
        self._stop = Event()
        self._thread = Thread(target=self._run, name="pod-runner", daemon=True)
        self.failure: BaseException | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(timeout=60)
        for running in list(self._pods.values()):
            for process in running.processes.values():
                process.stop()
        if self.failure is not None:
            raise self.failure

    # ----------------------------------------------------------------------- for tests

    def url(self, port: int = 8080) -> str:
        """Where the pod that serves this port of its spec does so on this machine; of several operators, the one that leads.

        Raises:
            AssertionError: There is none, or not one that leads.
        """
        urls = self.urls(port)
        leading = urls if len(urls) == 1 else [url for url in urls if decides(url)]
        if len(leading) != 1:
            raise AssertionError(f"{len(urls)} pods serve port {port}, {len(leading)} of them lead")
        return leading[0]

    def urls(self, port: int = 8080) -> list[str]:
        """Where all the pods that serve this port do so."""
        places = [running.ports[port] for running in list(self._pods.values()) if port in running.ports]
        return [f"http://127.0.0.1:{place}" for place in places]

    def log_text(self) -> str:
        """All that all containers wrote, each container's under its name."""
        return "\n".join(f"--- {path.name}\n{path.read_text(errors='replace')}" for path in self._logs)

    def pids(self) -> list[int]:
        """Process ids of the programs that run."""
        processes = [found for running in list(self._pods.values()) for found in running.processes.values()]
        return [guarded_pid(found.pid) for found in processes if found.exit_status is None]

    def port_of(self, uid: str, port: int) -> int:
        """Where a pod serves a port of its spec on this machine; 0 if it does not run here yet."""
        running = self._pods.get(uid)
        return running.ports[port] if running else 0

    def pid_at(self, port: int) -> int:
        """Process id of the program that serves a port of this machine. Raises: AssertionError: None does."""
        for running in list(self._pods.values()):
            if port in running.ports.values():
                (process,) = running.processes.values()
                return guarded_pid(process.pid)
        raise AssertionError(f"no pod is at port {port}")

    def leader_pid(self) -> int:
        """Process id of the operator that leads. Raises: AssertionError: None does."""
        url = self.url()
        for running in list(self._pods.values()):
            if any(url == f"http://127.0.0.1:{port}" for port in running.ports.values()):
                (process,) = running.processes.values()
                return guarded_pid(process.pid)
        raise AssertionError(f"no pod is at {url} any more")

    def kill(self, *, stay_down: bool = False) -> None:
        """SIGKILL to all programs that run.

        Args:
            stay_down: As when their node is lost: nothing is restarted, nothing is reported, and deleted pods stay in deletion.
        """
        for running in list(self._pods.values()):
            running.stay_down = stay_down
            for process in running.processes.values():
                with suppress(ProcessLookupError):
                    os.kill(guarded_pid(process.pid), signal.SIGKILL)

    # ----------------------------------------------------------------------- the loop

    def _run(self) -> None:
        while not self._stop.wait(PERIOD):
            try:
                self._look()
            except (OSError, RawApiError) as error:
                # kube-apiserver may be restarted by a test; a pod may go, or change, in the midst of a pass.
                print(f"pod runner: {error}; looking again", flush=True)
            except BaseException as error:
                self.failure = error
                raise

    def _look(self) -> None:
        seen = {pod["metadata"]["uid"]: pod for pod in self._api.get(f"{self._path}/pods")["items"]}
        for uid in [uid for uid in self._pods if uid not in seen]:
            self._end_all(self._pods.pop(uid))  # deleted by force
        for uid, pod in seen.items():
            if uid in self._pods:
                self._pods[uid].pod = pod
            elif "deletionTimestamp" in pod["metadata"]:
                self._delete(
                    pod
                )  # of a runner before this one, which ended in the midst of it: its processes are gone
            elif pod["spec"].get("nodeName") and pod["status"]["phase"] == "Pending":
                self._pods[uid] = self._start(pod)
            if uid in self._pods and not self._pods[uid].stay_down:
                self._tend(self._pods[uid])

    def _tend(self, running: RunningPod) -> None:
        if "deletionTimestamp" in running.pod["metadata"]:
            self._terminate(running)
            return
        self._restart(running)
        status = report(running.pod, running)
        if status != running.told:
            self._api.patch(f"{self._path}/pods/{running.name}/status", {"status": status}, STRATEGIC)
            running.told = status

    # ----------------------------------------------------------------------- starting

    def _start(self, pod: Object) -> RunningPod:
        running = RunningPod(pod, self._plane.folder / f"pod-{pod['metadata']['name']}")
        for spec in pod["spec"]["containers"]:
            try:
                self._prepare(running, spec)
            except UnsupportedError as error:
                running.trouble = str(error)
                return running
        for container in running.containers.values():
            self._launch(running, container)
        return running

    def _prepare(self, running: RunningPod, spec: Object) -> None:
        container = prepare(running.pod, spec, running.folder, self._kubectl)
        for port in spec.get("ports", []):
            running.ports[port["containerPort"]] = free_port()
        if running.ports and container.argv[1] == "run":
            # One machine stands for many: each pod gets a port of its own, and nothing listens beyond loopback.
            port = next(iter(running.ports.values()))
            container.argv.extend(("--http-host=127.0.0.1", f"--http-port={port}"))
            if WEBHOOK_PORT in running.ports:
                container.argv.append(f"--webhook-port={running.ports[WEBHOOK_PORT]}")
            if ELECTS not in running.pod["metadata"]["labels"]:
                # Of a release that knew of no election; the program is today's all the same.
                container.argv.append("--leader-elect=false")
        if container.has_token:
            container.environment["DRA_OPERATOR_KUBECONFIG"] = str(self._credentials(running))
        running.containers[container.name] = container

    def _credentials(self, running: RunningPod) -> Path:
        """A kubeconfig with a token that is bound to the pod, as a kubelet mounts one; /var/run is not ours to write to."""
        account, meta = running.pod["spec"]["serviceAccountName"], running.pod["metadata"]
        bound = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
        body = {"spec": {"boundObjectRef": bound, "expirationSeconds": 3600}}
        token = self._api.post(f"{self._path}/serviceaccounts/{account}/token", body)["status"]["token"]
        return self._plane.write_kubeconfig(f"pod-{meta['name']}", token, self._namespace)

    def _launch(self, running: RunningPod, container: Container) -> None:
        log = self._plane.folder / f"pod-{running.name}-{container.name}.log"
        if log not in self._logs:
            self._logs.append(log)
        argv = [*self._plane.guard_command, *container.argv]
        environment = container.environment | self.environment
        running.processes[container.name] = Process(container.name, argv, log, environment)

    # ----------------------------------------------------------------------- ending

    def _restart(self, running: RunningPod) -> None:
        """Containers that ended, by the pod's restart policy, after a pause."""
        policy = running.pod["spec"]["restartPolicy"]
        for name, process in running.processes.items():
            status = process.exit_status
            if status is None or policy == "Never" or (policy == "OnFailure" and status == 0):
                continue
            if time.monotonic() - running.down_since.setdefault(name, time.monotonic()) >= RESTART_PAUSE:
                del running.down_since[name]
                process.stop()
                running.restarts[name] = running.restarts.get(name, 0) + 1
                self._launch(running, running.containers[name])

    def _terminate(self, running: RunningPod) -> None:
        """SIGTERM, SIGKILL after the grace, and the pod's end once no process is left."""
        if running.is_running:
            grace = running.pod["metadata"].get("deletionGracePeriodSeconds", 30)
            if running.term_sent is None:
                running.term_sent = time.monotonic()
                for process in running.processes.values():
                    process.send(signal.SIGTERM)
            elif time.monotonic() - running.term_sent > grace:
                self._end_all(running)
            return
        self._end_all(running)
        self._delete(running.pod)

    def _delete(self, pod: Object) -> None:
        meta = pod["metadata"]
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}}
        with suppress(RawApiError):  # gone already
            self._api.delete(f"{self._path}/pods/{meta['name']}", options)

    def _end_all(self, running: RunningPod) -> None:
        for process in running.processes.values():
            with suppress(ProcessLookupError):
                os.kill(guarded_pid(process.pid), signal.SIGKILL)
            process.stop()
