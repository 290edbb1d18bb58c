"""docs/metrics.md, out of the table of metrics."""

from __future__ import annotations

from dra_operator.metrics import LABELS, TABLE, Row
from dra_operator.metrics.labels import CLAIM_LIMIT, DRIVER_LIMIT, NAME_LIMIT, OTHER_DRIVERS, POOL_LIMIT

from .markdown import generated, joined, table

INTRODUCTION = """
# Metrics

The operator serves `/metrics` on the port of `/readyz` (8080), in Prometheus' text format. `kubectl apply -k` with the component
`manifests/components/podmonitor` has Prometheus Operator scrape it; `manifests/components/prometheus-rules` brings recording and alerting rules, `manifests/components/dashboard` Grafana
dashboards.

All names begin with `dra_operator_`, but two that kube-controller-manager has as well: those are there only where the operator makes claims out of templates in its place (`generateClaims`), so that
sums over both never count twice. A setting in the last column makes a metric appear. Beside them, `process_…` and `python_…` tell of the process: memory, CPU, open files, garbage collection.
Series with fixed label values exist from the start with 0; others appear with their first event.
"""

LABEL_TEXT = f"""
## Labels

As long as no setting says otherwise, no label holds a name that users choose; drivers choose `driver`, `capacity` and `counter`. The number of series is therefore fixed but for
the drivers: up to 12 for each, and two for each of its first {NAME_LIMIT} capacities and {NAME_LIMIT} counters. Whoever may write ResourceSlices cannot fill Prometheus, as drivers beyond the first
{DRIVER_LIMIT} are counted together as `{OTHER_DRIVERS}`, and their amounts not at all.

Two settings add more, both off by default. `metricsByPool` adds figures by pool, which mostly is a node, for the first {POOL_LIMIT:,} pools by driver and name;
`dra_operator_pools_left_out` says how many there are beyond. `metricsOfClaims` adds `dra_operator_claim_device_info` with the names of claims, pods and devices, at most {CLAIM_LIMIT:,} series;
`dra_operator_claim_devices_left_out` says how many are missing. Whoever can read `/metrics` then knows these names.
"""

COUNTING = """
## How devices are counted

A device is `allocated` if the allocation of any claim holds it, whoever wrote that; one of which several shares are given out is one device, and admin
access does not count. `tainted` is a free device that a taint (of its driver, or of a DeviceTaintRule) keeps new allocations off; the operator's own
taint on its pools makes no device tainted. Pools that are published incompletely, or whose slices contradict each other, have no true number of
devices: they are counted in `dra_operator_pools` and nowhere else, until they are complete again.

A share of a device is no device: what is left of devices that several claims may share is `dra_operator_shared_capacity` less `dra_operator_shared_capacity_used`, and what is left to
partitions that draw on common counters is `dra_operator_shared_counters` less `dra_operator_shared_counters_used`. Both add up over the pools of a driver, so much may be left in pieces that are too small.

## Which pod has which device

With `metricsOfClaims`, `dra_operator_claim_device_info` ties claims and pods to devices, for joins with what an exporter of the driver measures by device. Standbys tell it, too; so take the maximum first:

```text
max by (namespace, pod, claim, driver, pool, device) (dra_operator_claim_device_info)
```

The PodMonitor has `honorLabels`, so that `namespace` and `pod` are those of the claim; a scrape without it calls them `exported_namespace` and `exported_pod`.
"""

READY = """
## /readyz and /healthz

Both answer in JSON; `status` and `reason` come first. `/readyz` is 200 once decisions are being taken, or could be by a standby, else 503 with what is waited for. `role` is `leader`, `standby`,
or `alone` without an election; `holder` names who leads. It lists each kind: by which
feed it comes, whether it is known as a whole, how many objects there are, when the API server was heard last, and what it said in refusal. It stays 200 while
the API server is away: nobody else could decide anything then; a leader ends when that lasts, and comes back as a standby. It is 503 while the API server refuses our credentials (401), with what to do, and well again by
itself once they are accepted. `refusedWrites` names each kind of write (`patch pods`) that was forbidden the last time. `/healthz` is 500 only where a restart helps: a feed that has stopped working although the API
server answers; a process whose event loop hangs gives no answer. The kubelet puts the status code into the pod's events, not the text; to read that, ask the
Service, for example through the API server: `kubectl get --raw /api/v1/namespaces/dra-operator/services/dra-operator:http/proxy/readyz`.
"""


def page() -> str:
    """The page."""
    used = [(f"`{name}`", text) for name, text in sorted(LABELS.items())]
    alerts = [(f"`{row.full_name}`", row.alert) for row in TABLE if row.alert]
    return joined(
        generated("operator/dra_operator/metrics/table.py"),
        INTRODUCTION,
        table(("metric", "type", "labels", "meaning", "only with"), map(_line, TABLE)),
        "## What to alert on",
        table(("metric", "alert on"), alerts),
        LABEL_TEXT,
        table(("label", "values"), used),
        COUNTING,
        READY,
    )


def _line(row: Row) -> tuple[str, ...]:
    labels = ", ".join(f"`{label}`" for label in row.labels)
    return f"`{row.full_name}`", row.kind.value, labels, row.text, f"`{row.only}`" if row.only else ""
