"""What the labels of metrics hold, and how many values those may have that users and drivers choose."""

from __future__ import annotations

from dra_operator.explain.driftkinds import KINDS as FINDINGS

DRIVER_LIMIT = 50
"""Drivers with series of their own. Arbitrary; clusters have a handful, and whoever may write ResourceSlices must not fill Prometheus."""

OTHER_DRIVERS = "other"

NAME_LIMIT = 20
"""Capacities, and counters, of one driver that have series; those beyond are left out, as amounts of different units cannot be added. Arbitrary."""

POOL_LIMIT = 1_000
"""Pools that have series where `metricsByPool` is on. Arbitrary: up to 3,000 series of devices, which a scrape copies on the event loop in some milliseconds."""

CLAIM_LIMIT = 5_000
"""Series of claims, pods and devices where `metricsOfClaims` is on. Arbitrary, by the same measure."""

LABELS: dict[str, str] = {
    "admin_access": "`true` if a request of the claim is for admin access, else `false`",
    "allocated": "`true` or `false`",
    "capacity": f"name of a capacity of a driver's devices; the first {NAME_LIMIT} of a driver by name have series, the others are left out",
    "claim": "name of a ResourceClaim",
    "code": "HTTP status as text, or `unavailable` when there was no answer",
    "condition": "`complete`; `incomplete` (the driver has not published all slices); `invalid` (slices contradict each other)",
    "controller": "name of one of our controllers",
    "counter": f"name of a counter of a driver's pools, summed over counter sets; the first {NAME_LIMIT} of a driver by name have series, the others are left out",
    "device": "name of a device in its pool",
    "driver": f"name of a DRA driver; the first {DRIVER_LIMIT} by name have series of their own, all further ones together are `{OTHER_DRIVERS}`",
    "duty": "`generate`, `reserve`, `release` or `delete`",
    "error": "class name of one of our errors",
    "finding": "kind of drift: `" + "`, `".join(FINDINGS) + "`",
    "generate_claims": "`true` or `false`",
    "kind": "kind of the Kubernetes API that the operator reads",
    "kopf": "version of Kopf",
    "mode": "`cooperate` or `replace`",
    "namespace": "namespace of a claim and its pod",
    "owned": "`true` if an AllocationPolicy gives the pool to the operator, else `false`",
    "pod": "name of a pod that the claim is reserved for; empty if there is none",
    "pool": f"name of a pool; the first {POOL_LIMIT:,} by driver and name have series of their own",
    "python": "version of Python",
    "reason": "for pods and claims, the reason of the pod's event (docs/runbook.md lists them), or `ClaimInFlight`, `BoundConsumer` where another pod has to "
    "get the claim first; for watches `ended`, `expired`, `unavailable`, `refused`",
    "resource": "plural of a kind that the operator uses, with its subresource; `other` for discovery",
    "result": "one word of a fixed set, listed with the metric",
    "role": "`leader` or `standby`",
    "source": "`resource_claim_template` for a claim made from a template, `extended_resource` for one of kube-scheduler's for an extended resource, else empty",
    "state": "one word of a fixed set, listed with the metric",
    "status": "`success` or `failure`",
    "verb": "verb of the Kubernetes API: get, list, create, patch, apply, delete",
    "version": "a version",
    "way": "`gate` (pinned and released), `scheduler` (bound by the operator, as `spec.schedulerName` says), `bound` (was on its node already)",
}
"""What each label holds. Sets that are not fixed by code are capped."""
