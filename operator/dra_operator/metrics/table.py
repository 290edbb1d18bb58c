"""The table of metrics: name, kind, labels, help, what to alert on. One row a metric, nothing else defines one.

`registry.Metrics` builds them; users pass the row itself, so that a misspelt metric is a NameError and not a new series. The
page `docs/metrics.md` is made from this table, and the dashboard may name nothing else.
"""

from __future__ import annotations

from dra_operator.explain.driftkinds import KINDS as FINDINGS

from .row import UPSTREAM, Kind, Row

_FAST = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Seconds of work on the event loop: half a millisecond to what would be an accident."""

_CALLS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Seconds of a request; the last is its time-out."""

BY_POOL, OF_CLAIMS, GENERATING = "metricsByPool", "metricsOfClaims", "generateClaims: always"
"""Settings that make rows appear."""

WAYS = ("gate", "scheduler", "bound")
RESULTS = ("committed", "released", "conflict", "error", "rolled_back", "unsatisfied", "refused", "waiting")
BINDING_RESULTS = ("success", "failed", "timeout")
DECISIONS = ("plan", "unplaced", "refuse", "wait")
DEVICE_STATES = ("free", "allocated", "tainted")
POOL_CONDITIONS = ("complete", "incomplete", "invalid")
CLAIM_STATES = ("pending", "allocated", "reserved", "deleting")
ADMISSION_RESULTS = ("gated", "named", "untouched", "refused")
EVENT_RESULTS = ("written", "dropped", "spam", "failed")

# --------------------------------------------------------------------------- serving pods

ALLOCATIONS = Row(
    Kind.COUNTER,
    "allocations",
    "Attempts to serve a pod by result: committed, released, conflict, error, rolled_back, unsatisfied, refused, waiting.",
    ("result",),
    initial=tuple((result,) for result in RESULTS),
    alert='`result="error"` that goes on for 10 minutes: writes fail; `result="conflict"` above a tenth of all: something else writes the same objects',
)
SERVED = Row(
    Kind.COUNTER,
    "pods_served",
    "Pods that were sent to a node, or got what they wanted on theirs, by the way they came: gate, scheduler, bound.",
    ("way",),
    initial=tuple((way,) for way in WAYS),
)
LATENCY = Row(
    Kind.HISTOGRAM,
    "pod_release_duration_seconds",
    "Seconds from the first sight of a pod that waits for the operator to its release, or to its binding by the operator.",
    # From one event-loop turn to the placement time-out that an admin would still call normal; the bounds are arbitrary.
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 1800.0),
    alert="the 99th percentile above 5 s while no pod waits for devices",
)
PLACEMENT_DURATION = Row(
    Kind.HISTOGRAM,
    "placement_duration_seconds",
    "Seconds that one decision on node and devices took, by result: plan, unplaced, refuse, wait.",
    ("result",),
    buckets=_FAST,
    initial=tuple((result,) for result in DECISIONS),
    alert="the 99th percentile above 1 s: nothing else is done meanwhile",
)
PLACEMENT_STEPS = Row(
    Kind.HISTOGRAM,
    "placement_search_steps",
    "Search steps that one decision on node and devices took, over all nodes.",
    buckets=(1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 1_000_000),
)
PLACEMENT_LIMITS = Row(
    Kind.COUNTER,
    "placement_limits_reached",
    "Searches for one node that were given up at the step limit, which says nothing about whether a solution exists.",
    alert="any increase: claims ask for combinations that are hard to find; the pod's event names them",
)
WAITING_PODS = Row(
    Kind.GAUGE,
    "waiting_pods",
    "Pods that wait for the operator and cannot be served now, by reason.",
    ("reason",),
    initial=(("AllocationFailed",),),
    alert='`reason="AllocationFailed"` for long: too few devices; any other reason for more than an hour: somebody has to change an object',
)
WAITING_OLDEST = Row(
    Kind.GAUGE,
    "oldest_waiting_pod_seconds",
    "Seconds that the pod which has waited longest of those that wait for a reason has waited, as this leader has seen it, for whichever reasons; 0 without one.",
    ("reason",),
    initial=(("AllocationFailed",),),
    alert="above what users are promised, as an hour; kubectl dra explain tells what is short",
)
WAITING_CLAIMS = Row(
    Kind.GAUGE,
    "waiting_claims",
    "Unallocated claims of pods that cannot be served now, by the reason of the pod.",
    ("reason",),
    initial=(("AllocationFailed",),),
)
REFUSED_PODS = Row(
    Kind.GAUGE,
    "refused_pods",
    "Pods that were sent to a node with their devices, and that kube-scheduler does not bind there.",
    initial=((),),
    alert="above 0 for more than 10 minutes: their devices are idle; event PodRefused or NodeGone of the pods has the reason",
)
REPLACED_PODS = Row(
    Kind.COUNTER,
    "pods_replaced",
    "Pods deleted for their controllers to make others, as kube-scheduler did not bind them (replaceRefused).",
    alert="growth that goes on: their successors fare no better",
)
OVERDUE_DUTIES = Row(
    Kind.GAUGE,
    "overdue_duties",
    "Objects for which kube-controller-manager's claim controller has left a duty undone for long: a claim to make out of its template (`generate`), "
    "a bound pod to reserve for (`reserve`), a pod that is gone to strike off (`release`), a generated claim of a done pod to delete (`delete`). "
    "Always 0 where the operator does this itself.",
    ("duty",),
    initial=(("generate",), ("reserve",), ("release",), ("delete",)),
    alert="above 0 for 5 minutes: see whether kube-controller-manager runs, with its resourceclaim-controller",
)
BINDINGS = Row(
    Kind.COUNTER,
    "binding_conditions_allocations",
    "Allocations with binding conditions by how the wait for them ended: success, failed, timeout. kube-scheduler counts its own in "
    "scheduler_dra_bindingconditions_allocations_total.",
    ("result",),
    initial=tuple((result,) for result in BINDING_RESULTS),
    alert='`result="failed"` or `result="timeout"` that goes on: see the driver and what attaches its devices',
)
BINDING_WAIT = Row(
    Kind.HISTOGRAM,
    "binding_conditions_wait_duration_seconds",
    "Seconds from an allocation to the end of the wait for its binding conditions, by how it ended: success, failed, timeout.",
    ("result",),
    # Upstream's bounds (cp M-8), so that both can be compared; they end beyond the default time-out.
    buckets=tuple(0.1 * 2**power for power in range(14)),
)
CLAIMS_GENERATED = Row(
    Kind.COUNTER,
    "claims_generated",
    "Claims created from templates, by status success or failure.",
    ("status",),
    initial=(("success",), ("failure",)),
    alert='`status="failure"` that goes on',
)
UPSTREAM_CREATES = Row(
    Kind.COUNTER,
    "resourceclaim_creates",
    "Claims created from templates, by status and admin access, under the name that kube-controller-manager has for it.",
    ("status", "admin_access"),
    prefix=UPSTREAM,
    only=GENERATING,
)

# --------------------------------------------------------------------------- what there is

DEVICES = Row(
    Kind.GAUGE,
    "devices",
    "Devices in complete pools by driver, owner and state: allocated (a claim holds it, or a share of it, admin access aside), tainted (free, "
    "but a taint other than ours keeps new allocations off), free.",
    ("driver", "owned", "state"),
    alert='no `state="free"` of a driver for long; `state="tainted"` above what maintenance explains',
)
POOLS = Row(
    Kind.GAUGE,
    "pools",
    "Pools by driver, owner and condition: complete, incomplete, invalid. Devices of the latter two are not counted anywhere.",
    ("driver", "owned", "condition"),
    alert='`condition="invalid"`, or `condition="incomplete"` for more than 5 minutes: the driver publishes wrongly',
)
SHARED_CAPACITY = Row(
    Kind.GAUGE,
    "shared_capacity",
    "What there is of a capacity, in its own unit, in devices of complete pools that several claims may share, by driver and capacity.",
    ("driver", "capacity"),
)
SHARED_CAPACITY_USED = Row(
    Kind.GAUGE,
    "shared_capacity_used",
    "What claims have been given of a capacity, in its own unit, of devices of complete pools that several claims may share, by driver and capacity.",
    ("driver", "capacity"),
)
SHARED_COUNTERS = Row(
    Kind.GAUGE,
    "shared_counters",
    "What there is of a counter, in its own unit, in complete pools whose devices draw on counters (partitions), by driver and counter.",
    ("driver", "counter"),
)
SHARED_COUNTERS_USED = Row(
    Kind.GAUGE,
    "shared_counters_used",
    "What allocated devices draw of a counter, in its own unit, in complete pools, by driver and counter.",
    ("driver", "counter"),
)
POOL_DEVICES = Row(
    Kind.GAUGE,
    "pool_devices",
    "Devices of a complete pool by state, as in dra_operator_devices.",
    ("driver", "pool", "state"),
    only=BY_POOL,
)
POOL_CAPACITY = Row(
    Kind.GAUGE,
    "pool_shared_capacity",
    "As dra_operator_shared_capacity, by pool.",
    ("driver", "pool", "capacity"),
    only=BY_POOL,
)
POOL_CAPACITY_USED = Row(
    Kind.GAUGE,
    "pool_shared_capacity_used",
    "As dra_operator_shared_capacity_used, by pool.",
    ("driver", "pool", "capacity"),
    only=BY_POOL,
)
POOL_COUNTERS = Row(
    Kind.GAUGE,
    "pool_shared_counters",
    "As dra_operator_shared_counters, by pool.",
    ("driver", "pool", "counter"),
    only=BY_POOL,
)
POOL_COUNTERS_USED = Row(
    Kind.GAUGE,
    "pool_shared_counters_used",
    "As dra_operator_shared_counters_used, by pool.",
    ("driver", "pool", "counter"),
    only=BY_POOL,
)
POOLS_LEFT_OUT = Row(
    Kind.GAUGE,
    "pools_left_out",
    "Complete pools that have no series of their own, as there are too many; absent where pools have none at all.",
    only=BY_POOL,
    alert="anything but 0: figures by pool are not the whole",
)
CLAIM_DEVICES = Row(
    Kind.GAUGE,
    "claim_device_info",
    "1 for each device that a claim holds or looks on at, and each pod that the claim is reserved for. Each operator tells it: take the maximum by all labels but instance.",
    ("namespace", "pod", "claim", "driver", "pool", "device"),
    only=OF_CLAIMS,
)
CLAIM_DEVICES_LEFT_OUT = Row(
    Kind.GAUGE,
    "claim_devices_left_out",
    "Series that dra_operator_claim_device_info lacks, as there are too many; absent where it has none at all.",
    only=OF_CLAIMS,
    alert="anything but 0: the mapping is not the whole; kubectl dra claims has all",
)
CLAIMS = Row(
    Kind.GAUGE,
    "claims",
    "ResourceClaims of the cluster by state: pending, allocated (no pod uses it), reserved (a pod does), deleting.",
    ("state",),
    initial=tuple((state,) for state in CLAIM_STATES),
    alert='`state="deleting"` that does not go down for 10 minutes: a finalizer is stuck',
)
UPSTREAM_CLAIMS = Row(
    Kind.GAUGE,
    "resource_claims",
    "ResourceClaims by allocation, admin access and source, under the name that kube-controller-manager has for it.",
    ("allocated", "admin_access", "source"),
    prefix=UPSTREAM,
    only=GENERATING,
)
DEVICES_HELD_TWICE = Row(
    Kind.GAUGE,
    "devices_held_twice",
    "Devices that the allocations of two claims hold; anything but 0 is an accident.",
    initial=((),),
    alert="anything but 0, at once",
)
DRIFT = Row(
    Kind.GAUGE,
    "drift",
    "What is left over, lost, stuck or given twice and has been told, by finding; docs/runbook.md explains each.",
    ("finding",),
    initial=tuple((name,) for name in FINDINGS),
    alert="anything but 0 for more than 15 minutes; kubectl dra drift lists the objects",
)
DRIFT_REPAIRS = Row(
    Kind.COUNTER,
    "drift_repairs",
    "What was left over or lost and was repaired, by finding.",
    ("finding",),
    initial=tuple((name,) for name in FINDINGS),
    alert="a steady increase: something leaves things behind again and again; the log names the objects",
)
OBJECTS = Row(Kind.GAUGE, "model_objects", "Objects in the operator's memory, by kind.", ("kind",))

# --------------------------------------------------------------------------- selectors

SELECTOR_ANSWERS = Row(
    Kind.COUNTER,
    "selector_answers",
    "Answers whether a device meets a selector, by result: kept (known from before), evaluated (it, and often all of its slice, had to be evaluated).",
    ("result",),
    initial=(("kept",), ("evaluated",)),
    alert='`result="evaluated"` above a tenth of all for an hour: slices change all the time, or answers are forgotten',
)
SELECTOR_EVALUATIONS = Row(
    Kind.COUNTER,
    "selector_evaluations",
    "Devices that selectors were evaluated on.",
    initial=((),),
)
SELECTORS_KEPT = Row(Kind.GAUGE, "selectors_kept", "Expressions that are kept compiled.", initial=((),))
SELECTOR_VECTORS = Row(
    Kind.GAUGE,
    "selector_vectors",
    "Kept sets of answers, one for each selector and slice, and errors beside them; those of slices that went are counted until there is no room.",
    initial=((),),
)
SELECTORS_FORGOTTEN = Row(
    Kind.COUNTER,
    "selectors_forgotten",
    "Selectors whose answers were forgotten to make room for others.",
    initial=((),),
    alert="growth that goes on: there are more selectors and slices than answers are kept for",
)

# --------------------------------------------------------------------------- work

QUEUE_DEPTH = Row(
    Kind.GAUGE,
    "queue_depth",
    "Keys that wait for a pass, by controller.",
    ("controller",),
    alert="growth over 10 minutes",
)
QUEUE_DELAYED = Row(
    Kind.GAUGE,
    "queue_delayed",
    "Keys that wait for a point in time, such as the end of a back-off, by controller.",
    ("controller",),
)
QUEUE_AGE = Row(
    Kind.GAUGE,
    "queue_oldest_key_age_seconds",
    "Seconds that the key at the head of the queue has waited for a pass, 0 without one, by controller.",
    ("controller",),
    alert="above 30 s: the operator does not keep up, or a pass hangs",
)
QUEUE_WAIT = Row(
    Kind.HISTOGRAM,
    "queue_wait_duration_seconds",
    "Seconds that a key waited for its pass, by controller.",
    ("controller",),
    buckets=_FAST,
)
RECONCILES = Row(Kind.COUNTER, "reconciles", "Passes over one key, by controller.", ("controller",))
RECONCILE_DURATION = Row(
    Kind.HISTOGRAM,
    "reconcile_duration_seconds",
    "Seconds that a pass over one key took, its requests to the API server included, by controller.",
    ("controller",),
    buckets=_CALLS,
)
RECONCILE_ERRORS = Row(
    Kind.COUNTER,
    "reconcile_errors",
    "Passes that failed and are retried, by controller and error.",
    ("controller", "error"),
    alert="errors other than `ApiConflict`, and `WorkLimitReached` (a tenant's costly selectors), that go on for 10 minutes; the log has the words",
)
LOOP_DELAY = Row(
    Kind.HISTOGRAM,
    "event_loop_delay_seconds",
    "Seconds by which the event loop was late for a timer, measured once a second.",
    buckets=_FAST,
    alert="the 99th percentile above 0.5 s: a decision or a list is too large for one turn",
)

# --------------------------------------------------------------------------- the API server

WRITES = Row(
    Kind.COUNTER,
    "writes",
    "Writes to the API server by verb, resource and HTTP code.",
    ("verb", "resource", "code"),
    alert='`code="403"`: rights are missing; `code=~"5..|unavailable"` that goes on',
)
WRITES_IN_FLIGHT = Row(
    Kind.GAUGE,
    "writes_in_flight",
    "Writes that were begun and not answered, those that wait for their turn included.",
    initial=((),),
)
API_DURATION = Row(
    Kind.HISTOGRAM,
    "api_request_duration_seconds",
    "Seconds that the API server took to answer a request of ours, watches and Kopf's own requests aside, by verb and resource.",
    ("verb", "resource"),
    buckets=_CALLS,
    alert="the 99th percentile above 1 s",
)
WATCH_RESTARTS = Row(
    Kind.COUNTER,
    "watch_restarts",
    "Watches of ours that ended, by kind and reason: ended (the ordinary end after some minutes), expired, unavailable, refused.",
    ("kind", "reason"),
    alert="reasons other than `ended` that go on: `refused` is a matter of rights, `unavailable` of the network or the server",
)
FEED_AGE = Row(
    Kind.GAUGE,
    "feed_age_seconds",
    "Seconds since the API server last said anything about a kind: an event, a bookmark, a list.",
    ("kind",),
    alert="above 600 s: the operator decides on old facts. Kinds that Kopf watches are listed every 5 minutes, the others have a bookmark a minute",
)
FEED_LAG = Row(
    Kind.HISTOGRAM,
    "feed_lag_seconds",
    "Seconds from the first word of a version, in an answer to a request of ours, until the watch brought it, by kind.",
    ("kind",),
    buckets=_CALLS,
    alert="the 99th percentile above 5 s",
)
REJECTED_OBJECTS = Row(
    Kind.COUNTER,
    "rejected_objects",
    "Objects that could not be decoded and were left out, by kind.",
    ("kind",),
    alert="any increase: the API server serves a version that the operator does not read; the log names the object",
)
EVENTS = Row(
    Kind.COUNTER,
    "events",
    "Kubernetes Events of the operator by result: written, dropped (too many at once), spam (too many about one object), failed (refused).",
    ("result",),
    initial=tuple((result,) for result in EVENT_RESULTS),
    alert='`result="failed"` that goes on: users do not learn why their pods wait',
)

# --------------------------------------------------------------------------- the gate's webhook

ADMISSIONS = Row(
    Kind.COUNTER,
    "admission_reviews",
    "Questions of the API server about new pods by the answer of the gate's webhook: gated, named (the operator is their scheduler), untouched, "
    "refused (no question that can be read). Stays 0 where the gate is put on by a policy.",
    ("result",),
    initial=tuple((result,) for result in ADMISSION_RESULTS),
    alert='`result="refused"`: somebody else calls the webhook, or the API server asks in a form that this release does not know; with '
    "`failurePolicy: Fail` such pods are refused",
)
CERTIFICATE_EXPIRY = Row(
    Kind.GAUGE,
    "webhook_certificate_expiry_timestamp_seconds",
    "Seconds from 1970 to the end of the certificate that the gate's webhook serves with; absent without one.",
    alert="less than a week ahead: the certificate is not renewed; after its end the API server refuses new pods with claims where the gate is put on",
)

# --------------------------------------------------------------------------- what runs

READY = Row(
    Kind.GAUGE,
    "ready",
    "1 while decisions are taken, or could be at once if the leader went (/readyz answers 200), else 0.",
    initial=((),),
    alert="0 for more than 5 minutes",
)
LEADER = Row(
    Kind.GAUGE,
    "leader",
    "1 while this operator is the one that may write, else 0. Figures of what is done, and of what waits, are the leader's.",
    initial=((),),
    alert="a sum over all pods other than 1 for more than a minute: nobody serves pods",
)
LEASE_TRANSITIONS = Row(
    Kind.COUNTER,
    "lease_transitions",
    "How often the Lease has changed hands since it was made, as this operator has seen it; take the maximum over the pods.",
    initial=((),),
    alert="more than 3 in an hour: leaders crash, or cannot renew in time; the log of the one that ended tells",
)
LEASE_FAILURES = Row(
    Kind.COUNTER,
    "lease_failures",
    "Looks at the Lease, or renewals of it, that failed, by the role of the operator: leader, standby.",
    ("role",),
    initial=(("leader",), ("standby",)),
    alert='`role="leader"` that goes on: the next one may cost the lead; the API server is slow or away, or rights are missing',
)
BUILD_INFO = Row(
    Kind.GAUGE,
    "build_info",
    "1, with the versions of the operator, of Python and of Kopf.",
    ("version", "python", "kopf"),
)
KUBERNETES_INFO = Row(
    Kind.GAUGE,
    "kubernetes_info",
    "1, with the version of the API server as it was at the start.",
    ("version",),
)
SETTINGS_INFO = Row(
    Kind.GAUGE,
    "settings_info",
    "1, with the settings that change what the operator is responsible for.",
    ("mode", "generate_claims"),
)

TABLE: tuple[Row, ...] = (
    ALLOCATIONS,
    SERVED,
    LATENCY,
    PLACEMENT_DURATION,
    PLACEMENT_STEPS,
    PLACEMENT_LIMITS,
    WAITING_PODS,
    WAITING_OLDEST,
    WAITING_CLAIMS,
    REFUSED_PODS,
    REPLACED_PODS,
    OVERDUE_DUTIES,
    BINDINGS,
    BINDING_WAIT,
    CLAIMS_GENERATED,
    UPSTREAM_CREATES,
    DEVICES,
    POOLS,
    SHARED_CAPACITY,
    SHARED_CAPACITY_USED,
    SHARED_COUNTERS,
    SHARED_COUNTERS_USED,
    POOL_DEVICES,
    POOL_CAPACITY,
    POOL_CAPACITY_USED,
    POOL_COUNTERS,
    POOL_COUNTERS_USED,
    POOLS_LEFT_OUT,
    CLAIM_DEVICES,
    CLAIM_DEVICES_LEFT_OUT,
    CLAIMS,
    UPSTREAM_CLAIMS,
    DEVICES_HELD_TWICE,
    DRIFT,
    DRIFT_REPAIRS,
    OBJECTS,
    SELECTOR_ANSWERS,
    SELECTOR_EVALUATIONS,
    SELECTORS_KEPT,
    SELECTOR_VECTORS,
    SELECTORS_FORGOTTEN,
    QUEUE_DEPTH,
    QUEUE_DELAYED,
    QUEUE_AGE,
    QUEUE_WAIT,
    RECONCILES,
    RECONCILE_DURATION,
    RECONCILE_ERRORS,
    LOOP_DELAY,
    WRITES,
    WRITES_IN_FLIGHT,
    API_DURATION,
    WATCH_RESTARTS,
    FEED_AGE,
    FEED_LAG,
    REJECTED_OBJECTS,
    EVENTS,
    ADMISSIONS,
    CERTIFICATE_EXPIRY,
    READY,
    LEADER,
    LEASE_TRANSITIONS,
    LEASE_FAILURES,
    BUILD_INFO,
    KUBERNETES_INFO,
    SETTINGS_INFO,
)
