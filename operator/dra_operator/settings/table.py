"""The table of all settings. Flags, help, checks and docs/settings.md come out of it; it does nothing itself."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, get_args

import msgspec
from msgspec import Meta

from dra_operator.errors import InvalidSettings
from dra_operator.placement import NodeScore

from .values import GenerateClaims, Mode, ReplaceRefused, Settings

PREFIX: Final = "DRA_OPERATOR_"

LONGEST_SHOWN: Final = 40
"""Characters of a wrong value that an error repeats."""

Seconds = Annotated[float, Meta(ge=0, le=3600)]
SweepSeconds = Annotated[float, Meta(ge=0.1, le=86_400)]
BindingSeconds = Annotated[float, Meta(ge=1, le=86_400)]
Writes = Annotated[int, Meta(ge=1, le=1000)]
Port = Annotated[int, Meta(ge=0, le=65_535)]
LeaseSeconds = Annotated[float, Meta(ge=1, le=3600)]
RetrySeconds = Annotated[float, Meta(ge=0.05, le=3600)]
Text = Annotated[str, Meta(min_length=1)]
# The ends for seconds and writes are arbitrary: nobody wants what lies beyond, while a typo may. Not-a-number and infinity, which would
# switch off what they time, lie in no range.


class Group(StrEnum):
    """Headings of the help and of the docs page, in their order."""

    CONNECTION = "Connection to the API server"
    DUTIES = "What the operator does"
    ELECTION = "Several operators, one of which works"
    PACE = "Waiting times and load"
    HTTP = "Health and metrics"
    WEBHOOK = "The gate's admission webhook"
    LOG = "Log"


@dataclass(frozen=True, slots=True)
class Setting:
    """One row.

    Args:
        name: the field of `Settings`.
        group: where help and docs page list it.
        kind: its type with its range, as msgspec has it.
        what: what it sets.
        change: when to change it.
        unset: what holds if it is not set, for one whose default is no fixed value.
    """

    name: str
    group: Group
    kind: Any
    what: str
    change: str
    unset: str = ""

    @property
    def flag(self) -> str:
        """`--settle-seconds`."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """`DRA_OPERATOR_SETTLE_SECONDS`."""
        return PREFIX + self.name.upper()

    @property
    def key(self) -> str:
        """`settleSeconds`, as the file has it."""
        head, *rest = self.name.split("_")
        return head + "".join(word.capitalize() for word in rest)

    @property
    def default(self) -> Any:
        """The default as a flag has it; None if `unset` tells."""
        if self.unset:
            return None
        default = Settings.__dataclass_fields__[self.name].default
        return default.value if isinstance(default, StrEnum) else default

    @property
    def choices(self) -> tuple[str, ...]:
        """The words to choose from; empty if it is no choice."""
        match msgspec.inspect.type_info(self.kind):
            case msgspec.inspect.BoolType():
                return "true", "false"
            case msgspec.inspect.LiteralType():
                return get_args(self.kind)  # msgspec sorts them
            case msgspec.inspect.EnumType(cls=cls):
                return tuple(str(member.value) for member in cls)
        return ()

    @property
    def type(self) -> type[str] | type[int] | type[float]:
        """`str`, `int` or `float`."""
        match msgspec.inspect.type_info(self.kind):
            case msgspec.inspect.IntType():
                return int
            case msgspec.inspect.FloatType():
                return float
        return str

    @property
    def range(self) -> str:
        """What is allowed, in words: `a number from 0 to 3600`, `one of text, json`."""
        match msgspec.inspect.type_info(self.kind):
            case msgspec.inspect.IntType(ge=low, le=high):
                return f"a whole number from {low} to {high}"
            case msgspec.inspect.FloatType(ge=low, le=high):
                return f"a number from {low:g} to {high:.0f}"
        return "one of " + ", ".join(self.choices) if self.choices else "text"

    def value(self, given: object, where: str, *, strict: bool) -> Any:
        """What was given, as a value of the kind.

        Args:
            given: as a flag, a variable or the file has it.
            where: which of them, for the error.
            strict: whether text is not taken for a number.

        Raises:
            InvalidSettings: it is not of the kind.
        """
        try:
            return msgspec.convert(given, self.kind, strict=strict)
        except msgspec.ValidationError as error:
            raise InvalidSettings(where, f"must be {self.range}, not {_shown(given)}") from error


def plain(value: object) -> str:
    """A value of the right type, as flags, variables and YAML have it."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _shown(value: object) -> str:
    """A value as YAML has it, cut: whatever stands in the wrong place must not flood the log."""
    if value is None:
        return "empty"
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 3] + "..."


TABLE: Final = (
    Setting(
        "kubeconfig",
        Group.CONNECTION,
        Text,
        "Kubeconfig file that says how to reach the API server.",
        "Set it to run outside of a cluster.",
        unset="the service account of the pod it runs in, else $KUBECONFIG, else ~/.kube/config",
    ),
    Setting(
        "context",
        Group.CONNECTION,
        Text,
        "Context of the kubeconfig; needs kubeconfig.",
        "Set it if the file describes several clusters.",
        unset="the file's current context",
    ),
    Setting(
        "mode",
        Group.DUTIES,
        Mode,
        "cooperate: kube-scheduler serves all pods and pools that no AllocationPolicy gives to the operator. replace: the stock parts are switched off, all pools are the operator's.",
        "Leave it, unless kube-scheduler's DynamicResources plugin and kube-controller-manager's resourceclaim-controller are switched off.",
    ),
    Setting(
        "generate_claims",
        Group.DUTIES,
        GenerateClaims,
        "Who makes claims from templates and releases them: the operator (always) or kube-controller-manager (never).",
        "Set it to always only where kube-controller-manager runs without its resourceclaim-controller, and with the rights for it: manifests/components/generate-claims sets it and grants them.",
        unset="never in mode cooperate, always in mode replace",
    ),
    Setting(
        "replace_refused",
        Group.DUTIES,
        ReplaceRefused,
        "Whether pods that kube-scheduler does not bind within refusedSeconds are deleted for their controllers to make others (owned), or only told (never). Pods without a controller are never deleted.",
        "Set it to owned where nodes come and go; it needs a right to delete pods: manifests/components/replace-refused sets it and grants that.",
    ),
    Setting(
        "node_score",
        Group.DUTIES,
        NodeScore,
        "Which of several nodes that can take a pod gets it, as far as cpu and memory go and the pod prefers none: the emptiest (spread, as kube-scheduler does), the fullest (pack), or the first by name (name).",
        "Set it to pack to keep whole nodes free, for claims that need many devices of one node or for scaling down.",
    ),
    Setting(
        "feature_gates",
        Group.DUTIES,
        Text,
        "Kubernetes' feature gates of DRA that differ from the defaults of 1.37, as kube-scheduler takes them: DRAListTypeAttributes=true,DRADeviceTaints=false.",
        "Set it to what kube-apiserver and kube-scheduler have: they cannot be asked. docs/features.md lists the gates.",
        unset="the defaults of Kubernetes 1.37",
    ),
    Setting(
        "leader_elect",
        Group.ELECTION,
        bool,
        "Whether the operator writes only while it holds the Lease dra-operator-leader, so that others may stand by.",
        "Set it to false only where no second operator can ever run: two of them give one device to two claims.",
    ),
    Setting(
        "lease_namespace",
        Group.ELECTION,
        Text,
        "Namespace of the Lease; it has to exist.",
        "Set it to the Deployment's namespace to run one more operator outside of the cluster: those with different Leases do not know of each other.",
        unset="the namespace of the pod it runs in, else dra-operator",
    ),
    Setting(
        "lease_seconds",
        Group.ELECTION,
        LeaseSeconds,
        "Seconds without a sign of life of the holder, after which a standby takes over.",
        "Lower it, and the two below with it, to have pods served sooner after a crash; raise it if the API server is often away for longer. The same for all operators of the cluster.",
    ),
    Setting(
        "renew_seconds",
        Group.ELECTION,
        RetrySeconds,
        "Seconds after its last renewal at which the holder of the Lease stops writing and ends; less than leaseSeconds.",
        "Keep it at two thirds of leaseSeconds.",
    ),
    Setting(
        "retry_seconds",
        Group.ELECTION,
        RetrySeconds,
        "Seconds between two renewals; at most half of renewSeconds. Standbys look four times as often.",
        "Keep it at a fifth of renewSeconds.",
    ),
    Setting(
        "settle_seconds",
        Group.PACE,
        Seconds,
        "Seconds between giving a pool to the operator and its first allocation there, so that kube-scheduler has seen the taint that keeps it off.",
        "Raise it if kube-scheduler's watches lag behind by more. Lower it only where kube-scheduler allocates nothing.",
    ),
    Setting(
        "sweep_seconds",
        Group.PACE,
        SweepSeconds,
        "Seconds that what a crash or a failure left behind, such as an allocation of the operator's without a pod, is left before it is repaired.",
        "Raise it if pods are made again by hand under the same claims and should find their devices.",
    ),
    Setting(
        "binding_timeout_seconds",
        Group.PACE,
        BindingSeconds,
        "Seconds from the allocation on in which a device with binding conditions has to be made ready; then other devices are chosen.",
        "Set it to what kube-scheduler has as bindingTimeout. Raise it if attaching a device takes longer.",
    ),
    Setting(
        "report_seconds",
        Group.PACE,
        SweepSeconds,
        "Seconds that something must have been left over, stuck or missing before it is told by event and metric.",
        "Raise it if drivers take longer to publish their devices, or pods to end.",
    ),
    Setting(
        "refused_seconds",
        Group.PACE,
        BindingSeconds,
        "Seconds that kube-scheduler has to bind a pod that was sent to its node; then the pod is told why it is not bound.",
        "Raise it if kube-scheduler is slow: if it has many pods to bind, or preempts others for them.",
    ),
    Setting(
        "max_writes",
        Group.PACE,
        Writes,
        "Writes to the API server at the same time.",
        "Lower it if the API server throttles the operator; raise it if bursts of pods wait while the API server idles.",
    ),
    Setting(
        "http_host",
        Group.HTTP,
        Text,
        "Address on which /healthz, /readyz and /metrics are served, and the webhook, if there is one.",
        "Set it to 127.0.0.1 outside of a cluster, where nobody else should read them.",
    ),
    Setting(
        "http_port",
        Group.HTTP,
        Port,
        "Port of /healthz, /readyz and /metrics; 0 takes a free one.",
        "Change it, and the probes and the Service with it, if the port is taken.",
    ),
    Setting(
        "metrics_by_pool",
        Group.HTTP,
        bool,
        "Whether /metrics has devices, shared capacities and counters by pool, too; a pool is mostly a node. The first 1000 pools have series, and a metric tells how many have none.",
        "Set it to true to see single nodes in dashboards, where Prometheus has room for some series a node.",
    ),
    Setting(
        "metrics_of_claims",
        Group.HTTP,
        bool,
        "Whether /metrics tells which pod uses which device through which claim, for joins with what drivers' exporters say of devices: at most 5000 series, and a metric tells how many are left out.",
        "Set it to true where whoever may read /metrics may know the names of claims and pods of all namespaces.",
    ),
    Setting(
        "webhook_certificates",
        Group.WEBHOOK,
        Text,
        "Folder with tls.crt and tls.key, with which a webhook is served that puts the gate on new pods. Files that are renewed are taken without a restart.",
        "Set it where the API server has no MutatingAdmissionPolicies: manifests/components/gate-webhook sets it and tells the API server what to ask.",
        unset="no webhook",
    ),
    Setting(
        "webhook_port",
        Group.WEBHOOK,
        Port,
        "Port of the webhook; 0 takes a free one.",
        "Change it, and the Service dra-operator-webhook with it, if the port is taken.",
    ),
    Setting(
        "log_level",
        Group.LOG,
        Literal["debug", "info", "warning", "error"],
        "Least level that is logged, to standard error.",
        "Set it to debug to see each attempt to serve a pod.",
    ),
    Setting(
        "log_format",
        Group.LOG,
        Literal["text", "json"],
        "text for people; json, one object a line, for log collectors.",
        "Set it to json where a collector reads the log.",
    ),
)

BY_NAME: Final = {setting.name: setting for setting in TABLE}
