"""Command lines and files of the control plane's components: pure data, out of options, ports and a folder.

Used by `cluster`, which runs them. The flags are those of a usual installation, less what only a real machine needs; each
that departs from the defaults says why.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.e2e.harness.rights import FOLDER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.e2e.harness.build import Binaries

STAGES = Path(__file__).resolve().parent / "stages.yaml"
ETCD, APISERVER, CONTROLLER_MANAGER, SCHEDULER, KWOK = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kwok",
)
USER = "user"
"""Somebody with the rights that a test gives to `jane`, and no others."""
# The user names are those that the stock RBAC roles are bound to, so components have the rights of a real cluster.
USERS: Mapping[str, tuple[str, str]] = {
    "admin": ("admin", "system:masters"),
    CONTROLLER_MANAGER: ("system:kube-controller-manager", ""),
    SCHEDULER: ("system:kube-scheduler", ""),
    KWOK: ("kwok", "system:masters"),
    USER: ("jane", ""),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a test may choose about its control plane; the defaults are a stock cluster with stock gates.

    Attributes:
        controllers: kube-controller-manager's `--controllers` list.
        disabled_scheduler_plugins: Switched off at every extension point, for example `DynamicResources`.
        scheduler_extender: URL of an extender that filters nodes after kube-scheduler's own filters; empty for none.
        qps: Client rate limit of kube-controller-manager and kube-scheduler. The default of 20 in kube-controller-manager
            would cap claim generation at 10 pods a second and slow its start down by 5 s.
        emulated_version: Kubernetes minor version whose features and APIs all three components offer, for example `1.36`.
        feature_gates: For all three components.
        runtime_config: kube-apiserver's `--runtime-config`.
        without: Components that are not started (any but etcd and kube-apiserver).
        apiserver_flags: Appended as they are.
        controller_manager_flags: Appended as they are.
        scheduler_flags: Appended as they are.
        environment: Added to the environment of every component, for example GOGC.
    """

    controllers: tuple[str, ...] = ("*",)
    disabled_scheduler_plugins: tuple[str, ...] = ()
    scheduler_extender: str = ""
    qps: int = 5000
    emulated_version: str | None = None
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    runtime_config: Mapping[str, str] = field(default_factory=dict)
    without: frozenset[str] = frozenset()
    apiserver_flags: tuple[str, ...] = ()
    controller_manager_flags: tuple[str, ...] = ()
    scheduler_flags: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ports:
    """Free ports on loopback."""

    etcd: int
    etcd_peer: int
    apiserver: int
    controller_manager: int
    scheduler: int
    kwok: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Everything that the command lines depend on."""

    folder: Path
    binaries: Binaries
    ports: Ports
    options: Options

    @property
    def server(self) -> str:
        """URL of kube-apiserver."""
        return f"https://127.0.0.1:{self.ports.apiserver}"

    @property
    def service_account_key(self) -> Path:
        """Private key that signs service-account tokens."""
        return self.folder / "service-account.key"

    @property
    def audit_policy(self) -> Path:
        """Which requests go to `audit_log`."""
        return self.folder / "audit-policy.json"

    @property
    def audit_log(self) -> Path:
        """One JSON object a line; only where rights are collected."""
        return self.folder / "audit.log"

    def kubeconfig(self, user: str) -> Path:
        """Kubeconfig file of a user."""
        return self.folder / f"{user}.kubeconfig"

    def certificate(self, component: str) -> Path:
        """The serving certificate that a component makes for itself; it is its own authority."""
        file = "apiserver.crt" if component == APISERVER else f"{component}.crt"
        return self.folder / f"certs-{component}" / file

    def health(self, component: str) -> tuple[str, Path | None]:
        """URL that answers 200 once a component is ready, and the certificate to expect there."""
        ports = self.ports
        url = {
            ETCD: f"http://127.0.0.1:{ports.etcd}/readyz",
            APISERVER: f"{self.server}/readyz",
            CONTROLLER_MANAGER: f"https://127.0.0.1:{ports.controller_manager}/healthz",
            SCHEDULER: f"https://127.0.0.1:{ports.scheduler}/healthz",
            KWOK: f"http://127.0.0.1:{ports.kwok}/healthz",
        }[component]
        return url, self.certificate(component) if url.startswith("https") else None

    def command(self, component: str) -> list[str]:
        """Command line of a component."""
        flags = {
            ETCD: _etcd,
            APISERVER: _apiserver,
            CONTROLLER_MANAGER: _controller_manager,
            SCHEDULER: _scheduler,
            KWOK: _kwok,
        }[component](self)
        start = ["guard", str(self.binaries.kwok)] if component == KWOK else [component]
        return [str(self.binaries.controlplane), *start, *flags]


def tokens_csv(tokens: Mapping[str, str]) -> str:
    """kube-apiserver's token file for the users of `USERS`."""
    rows = ((tokens[user], name, user, group) for user, (name, group) in USERS.items())
    return "".join(f'{token},{name},{uid},"{group}"\n' for token, name, uid, group in rows)


def kubeconfig(layout: Layout, token: str, namespace: str | None = None) -> str:
    """A kubeconfig in JSON (which is YAML) for a bearer token."""
    cluster = {"server": layout.server, "certificate-authority": str(layout.certificate(APISERVER))}
    context = {"cluster": "e2e", "user": "e2e"} | ({"namespace": namespace} if namespace else {})
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "e2e",
        "clusters": [{"name": "e2e", "cluster": cluster}],
        "users": [{"name": "e2e", "user": {"token": token}}],
        "contexts": [{"name": "e2e", "context": context}],
    }
    return json.dumps(document, indent=1)


def scheduler_configuration(layout: Layout) -> str:
    """kube-scheduler's configuration file: one default profile."""
    options = layout.options
    disabled = [{"name": name} for name in options.disabled_scheduler_plugins]
    profile: dict[str, Any] = {"schedulerName": "default-scheduler"}
    if disabled:
        profile["plugins"] = {"multiPoint": {"disabled": disabled}}
    document: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {
            "kubeconfig": str(layout.kubeconfig(SCHEDULER)),
            "qps": options.qps,
            "burst": options.qps,
        },
        "profiles": [profile],
    }
    if url := options.scheduler_extender:
        document["extenders"] = [{"urlPrefix": url, "filterVerb": "filter", "nodeCacheCapable": True}]
    return json.dumps(document, indent=1)


# --------------------------------------------------------------------------- flags


def _etcd(layout: Layout) -> list[str]:
    client, peer = (f"http://127.0.0.1:{port}" for port in (layout.ports.etcd, layout.ports.etcd_peer))
    return [
        f"--data-dir={layout.folder / ETCD}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--log-level=warn",
        "--unsafe-no-fsync",  # nobody needs the data after a power cut
    ]


def _apiserver(layout: Layout) -> list[str]:
    key = layout.service_account_key
    return [
        f"--etcd-servers=http://127.0.0.1:{layout.ports.etcd}",
        *_serving(layout, APISERVER, layout.ports.apiserver),
        f"--token-auth-file={layout.folder / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://e2e.test",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        "--endpoint-reconciler-type=none",  # a loopback address cannot be published as an endpoint
        "--service-cluster-ip-range=10.0.0.0/24",
        *_features(layout.options),
        *_pairs("--runtime-config", layout.options.runtime_config),
        *_audit(layout),
        *layout.options.apiserver_flags,
    ]


def _audit(layout: Layout) -> list[str]:
    """What the operator asks for is written down where `harness/rights.py` is going to collect it."""
    if FOLDER not in os.environ:
        return []
    return [
        f"--audit-policy-file={layout.audit_policy}",
        f"--audit-log-path={layout.audit_log}",
        "--audit-log-maxsize=10000",  # megabytes: one file, however long
    ]


def _controller_manager(layout: Layout) -> list[str]:
    options = layout.options
    return [
        f"--kubeconfig={layout.kubeconfig(CONTROLLER_MANAGER)}",
        *_delegated(layout, CONTROLLER_MANAGER),
        *_serving(layout, CONTROLLER_MANAGER, layout.ports.controller_manager),
        "--leader-elect=false",  # there is one, and it shall start at once
        f"--service-account-private-key-file={layout.service_account_key}",
        "--use-service-account-credentials=true",  # the stock RBAC roles are each controller's own
        f"--kube-api-qps={options.qps}",
        f"--kube-api-burst={options.qps}",
        f"--controllers={','.join(options.controllers)}",
        *_features(options),
        *options.controller_manager_flags,
    ]


def _scheduler(layout: Layout) -> list[str]:
    return [
        f"--config={layout.folder / 'scheduler.json'}",
        *_delegated(layout, SCHEDULER),
        *_serving(layout, SCHEDULER, layout.ports.scheduler),
        *_features(layout.options),
        *layout.options.scheduler_flags,
    ]


def _kwok(layout: Layout) -> list[str]:
    return [
        f"--kubeconfig={layout.kubeconfig(KWOK)}",
        f"--config={STAGES}",
        "--manage-all-nodes",
        "--node-lease-duration-seconds=40",
        f"--server-address=127.0.0.1:{layout.ports.kwok}",
    ]


def _serving(layout: Layout, component: str, port: int) -> list[str]:
    return [
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={layout.certificate(component).parent}",
    ]


def _delegated(layout: Layout, component: str) -> list[str]:
    own = layout.kubeconfig(component)
    return [f"--authentication-kubeconfig={own}", f"--authorization-kubeconfig={own}"]


def _features(options: Options) -> list[str]:
    gates = {name: str(on).lower() for name, on in options.feature_gates.items()}
    emulated = [f"--emulated-version={options.emulated_version}"] if options.emulated_version else []
    return emulated + _pairs("--feature-gates", gates)


def _pairs(flag: str, values: Mapping[str, str]) -> list[str]:
    return [f"{flag}={','.join(f'{key}={value}' for key, value in values.items())}"] if values else []
