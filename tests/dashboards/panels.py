"""What the dashboards show: for whom, which panels, with which queries and words. No form; `build` gives them one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

OWN: Final = 'namespace=~"$namespace", job=~"$job"'
"""Each query is for the operators that were picked."""

DRIVERS: Final = f'{OWN}, driver=~"$driver"'

INTERVAL: Final = "$__rate_interval"


@dataclass(frozen=True, slots=True)
class Shown:
    """One query of a panel.

    Attributes:
        expression: PromQL; Grafana's and the dashboard's variables are in it.
        legend: what the line is called; `{{label}}` is filled in.
    """

    expression: str
    legend: str


@dataclass(frozen=True, slots=True)
class Panel:
    """One graph.

    Attributes:
        title: above it.
        unit: Grafana's word for the unit.
        words: what one sees, and what is normal.
        queries: its lines.
    """

    title: str
    unit: str
    words: str
    queries: tuple[Shown, ...]


@dataclass(frozen=True, slots=True)
class Board:
    """One dashboard.

    Attributes:
        uid: its address, which stays.
        title: in the list of dashboards.
        words: what it is for.
        panels: two in a row.
    """

    uid: str
    title: str
    words: str
    panels: tuple[Panel, ...]


def _quantile(part: str, name: str, by: str = "") -> str:
    inner = f"rate({name}_bucket{{{OWN}{by}}}[{INTERVAL}])"
    return f"histogram_quantile({part}, sum by (le) ({inner}))"


def _rate(label: str, name: str) -> str:
    return f"sum by ({label}) (rate({name}{{{OWN}}}[{INTERVAL}]))"


def _devices(owned: str) -> str:
    return f'max by (driver, state) (dra_operator_devices{{{DRIVERS}, owned="{owned}"}})'


def _used(name: str, label: str) -> str:
    """What is used of a sum, as a part of it."""
    of = f"max by (driver, {label}) "
    return f"{of}({name}_used{{{DRIVERS}}}) / {of}({name}{{{DRIVERS}}})"


_PER_OWNER: Final = "max by (driver, owned, state) "

FLEET: Final = Board(
    "dra-operator-fleet",
    "DRA devices: the fleet",
    "What there is of devices, and how much of it is in use. For those who run the cluster.",
    (
        Panel(
            "Devices by driver and state",
            "none",
            'Devices in complete pools. "ours": an AllocationPolicy gives the pool to the operator. A device counts as allocated once, however many shares of it are given '
            "out; tainted ones are free but kept from new pods by their driver or an admin. Devices of pools that are published incompletely are in no line.",
            (
                Shown(_devices("true"), "{{driver}} {{state}} (ours)"),
                Shown(_devices("false"), "{{driver}} {{state}} (not ours)"),
            ),
        ),
        Panel(
            "Devices in use",
            "percentunit",
            "The part of the devices that is allocated, by driver. At 100 % new claims wait until something ends.",
            (
                Shown(
                    f'sum by (driver) ({_PER_OWNER}(dra_operator_devices{{{DRIVERS}, state="allocated"}}))'
                    f" / sum by (driver) ({_PER_OWNER}(dra_operator_devices{{{DRIVERS}}}))",
                    "{{driver}}",
                ),
            ),
        ),
        Panel(
            "Shared capacity in use",
            "percentunit",
            "Of devices that several claims may share: the part of each capacity that is given out, over all pools of a driver. What is left may lie in pieces that are too small.",
            (Shown(_used("dra_operator_shared_capacity", "capacity"), "{{driver}} {{capacity}}"),),
        ),
        Panel(
            "Shared counters in use",
            "percentunit",
            "Of devices that are cut into partitions: the part of each counter that allocated partitions draw, over all pools of a driver.",
            (Shown(_used("dra_operator_shared_counters", "counter"), "{{driver}} {{counter}}"),),
        ),
        Panel(
            "Pools by condition",
            "none",
            "Nothing is allocated from pools that their driver publishes in part (incomplete) or against itself (invalid). Both should be 0.",
            (
                Shown(
                    f"sum by (driver, condition) (max by (driver, owned, condition) (dra_operator_pools{{{DRIVERS}}}))",
                    "{{driver}} {{condition}}",
                ),
            ),
        ),
        Panel(
            "Claims by state",
            "none",
            "All ResourceClaims. pending: not allocated; allocated: no pod uses it; reserved: a pod does; deleting should go down again.",
            (Shown(f"max by (state) (dra_operator_claims{{{OWN}}})", "{{state}}"),),
        ),
    ),
)

TENANT: Final = Board(
    "dra-operator-tenant",
    "DRA devices: who waits",
    "What users of devices feel: who waits for what, and for how long. For those who run workloads, and for those whom they ask.",
    (
        Panel(
            "Waiting pods and claims by reason",
            "none",
            "Pods that cannot be served now, and their unallocated claims. AllocationFailed: nothing fits now. Other reasons ask somebody to act: the event on the pod says what, and the "
            "runbook lists them.",
            (
                Shown(f"sum by (reason) (dra_operator_waiting_pods{{{OWN}}})", "pods: {{reason}}"),
                Shown(f"sum by (reason) (dra_operator_waiting_claims{{{OWN}}})", "claims: {{reason}}"),
            ),
        ),
        Panel(
            "Longest wait by reason",
            "s",
            "For how long the pod that has waited longest waits now. It counts from the first sight by the operator that leads.",
            (Shown(f"max by (reason) (dra_operator_oldest_waiting_pod_seconds{{{OWN}}})", "{{reason}}"),),
        ),
        Panel(
            "From first sight to a node",
            "s",
            "How long pods took that were served: the half, the slower tenth, and the slowest hundredth. With devices free, it is well below a second.",
            tuple(
                Shown(_quantile(part, "dra_operator_pod_release_duration_seconds"), name)
                for part, name in (("0.5", "half"), ("0.9", "tenth"), ("0.99", "hundredth"))
            ),
        ),
        Panel(
            "Pods served, per second",
            "ops",
            "By the way they came: a gate that was taken off, the scheduler's name, or a node that they had.",
            (Shown(_rate("way", "dra_operator_pods_served_total"), "{{way}}"),),
        ),
        Panel(
            "Free devices",
            "none",
            "Devices that a new claim may get from the operator, by driver, if they fit it.",
            (
                Shown(
                    f'max by (driver) (dra_operator_devices{{{DRIVERS}, owned="true", state="free"}})',
                    "{{driver}}",
                ),
            ),
        ),
        Panel(
            "Pods that kube-scheduler does not bind",
            "none",
            "They have devices and a node, and kube-scheduler does not take them: the devices lie idle. Their events have the reason.",
            (Shown(f"max(dra_operator_refused_pods{{{OWN}}})", "refused"),),
        ),
    ),
)

OPERATOR: Final = Board(
    "dra-operator",
    "DRA operator: health",
    "Decisions, queues, writes and watches of dra-operator, and what should be 0. For those who run the operator.",
    (
        Panel(
            "What should be 0",
            "none",
            "Devices held by two claims (an accident, act at once), operators that are not ready, leaders too few or too many, and drift: what is left over, lost or stuck.",
            (
                Shown(f"max(dra_operator_devices_held_twice{{{OWN}}})", "devices held twice"),
                Shown(f"count(dra_operator_ready{{{OWN}}} == 0) or vector(0)", "operators not ready"),
                Shown(f"abs(sum(dra_operator_leader{{{OWN}}}) - 1)", "leaders too few or too many"),
                Shown(f"sum by (finding) (dra_operator_drift{{{OWN}}})", "drift: {{finding}}"),
            ),
        ),
        Panel(
            "Attempts to serve a pod, per second",
            "ops",
            "By result. committed and released are pods that went on; unsatisfied, refused and waiting count a pod once for each new reason; conflict, error and rolled_back are tried again.",
            (Shown(_rate("result", "dra_operator_allocations_total"), "{{result}}"),),
        ),
        Panel(
            "Where the time goes",
            "s",
            "The slowest hundredth of: decisions on node and devices, requests to the API server, waits in a queue, delays of the event loop.",
            (
                Shown(_quantile("0.99", "dra_operator_placement_duration_seconds"), "decision"),
                Shown(_quantile("0.99", "dra_operator_api_request_duration_seconds"), "API request"),
                Shown(_quantile("0.99", "dra_operator_queue_wait_duration_seconds"), "queue"),
                Shown(_quantile("0.99", "dra_operator_event_loop_delay_seconds"), "event loop"),
            ),
        ),
        Panel(
            "Search steps of a decision",
            "none",
            "The half and the slowest hundredth. Many steps: claims ask for combinations that are hard to find.",
            (
                Shown(_quantile("0.5", "dra_operator_placement_search_steps"), "half"),
                Shown(_quantile("0.99", "dra_operator_placement_search_steps"), "hundredth"),
            ),
        ),
        Panel(
            "Writes to the API server, per second",
            "ops",
            "By HTTP code. 409 is everyday life: read again and try anew. 403 are missing rights, 5xx and unavailable the server's.",
            (Shown(_rate("code", "dra_operator_writes_total"), "{{code}}"),),
        ),
        Panel(
            "Watches",
            "s",
            "The longest time that nothing was heard of a kind, which stays below 360 s in good health, and how late watches bring what was written: the slowest hundredth.",
            (
                Shown(f"max(dra_operator_feed_age_seconds{{{OWN}}})", "longest silence"),
                Shown(_quantile("0.99", "dra_operator_feed_lag_seconds"), "lag"),
            ),
        ),
        Panel(
            "Keys that wait, by controller",
            "none",
            "A queue that grows for minutes: the operator does not keep up, or a pass hangs.",
            (Shown(f"sum by (controller) (dra_operator_queue_depth{{{OWN}}})", "{{controller}}"),),
        ),
        Panel(
            "Watches that ended, per second",
            "ops",
            "For other reasons than age: refused is a matter of rights, unavailable of the network or the server.",
            (
                Shown(
                    f'sum by (reason) (rate(dra_operator_watch_restarts_total{{{OWN}, reason!="ended"}}[{INTERVAL}]))',
                    "{{reason}}",
                ),
            ),
        ),
    ),
)

BOARDS: Final = (FLEET, TENANT, OPERATOR)
