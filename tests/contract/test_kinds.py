"""Other kinds that the operator reads and writes: slices, classes, taint rules, leases, events, nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.client import DRA

if TYPE_CHECKING:
    from tests.contract.client import Answer, Client, Obj

SLICES, CLASSES, RULES = f"{DRA}/resourceslices", f"{DRA}/deviceclasses", f"{DRA}/devicetaintrules"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
NEW_EVENTS, CORE_EVENTS = "/apis/events.k8s.io/v1/namespaces/{ns}/events", "/api/v1/namespaces/{ns}/events"


def _errors(answer: Answer) -> list[tuple[str, str]]:
    return [(cause["field"], cause["reason"]) for cause in answer.causes]


def _slice(name: str) -> Obj:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0", "taints": [{"key": "example.com/t", "effect": "NoSchedule"}]}],
        },
    }


def _rule(name: str) -> Obj:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": name},
        "spec": {
            "deviceSelector": {"driver": f"{name}.example.com"},
            "taint": {"key": "dra-operator.io/owned", "effect": "NoSchedule"},
        },
    }


async def test_slice_taints_get_a_time_and_generation_counts(api: Client, unique: str) -> None:
    """Cp V-6, V-14."""
    try:
        created = (await api.create(SLICES, _slice(unique))).ok()
        assert created.meta["generation"] == 1
        assert created.body["spec"]["devices"][0]["taints"][0]["timeAdded"].endswith("Z")
        changed = (await api.merge(f"{SLICES}/{unique}", {"spec": {"devices": [{"name": "gpu-0"}]}})).ok()
        assert changed.meta["generation"] == 2
    finally:
        await api.delete(f"{SLICES}/{unique}")


async def test_slice_driver_pool_and_node_are_immutable(api: Client, unique: str) -> None:
    """Cp V-90."""
    try:
        (await api.create(SLICES, _slice(unique))).ok()
        for change, field in (
            ({"driver": "other.example.com"}, "spec.driver"),
            ({"pool": {"name": "other"}}, "spec.pool.name"),
            ({"nodeName": "other"}, "spec.nodeName"),
        ):
            refused = await api.merge(f"{SLICES}/{unique}", {"spec": change})
            assert _errors(refused) == [(field, "FieldValueInvalid")]
    finally:
        await api.delete(f"{SLICES}/{unique}")


async def test_slice_needs_exactly_one_place(api: Client, unique: str) -> None:
    """Cp V-91."""
    body = _slice(unique)
    body["spec"]["allNodes"] = True
    assert _errors(await api.create(SLICES, body)) == [("spec", "FieldValueInvalid")]
    del body["spec"]["allNodes"], body["spec"]["nodeName"]
    assert _errors(await api.create(SLICES, body)) == [("spec", "FieldValueRequired")]


async def test_class_spec_is_mutable_and_generation_counts(api: Client, unique: str) -> None:
    """Cp V-6, V-86."""
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": unique},
        "spec": {"selectors": [{"cel": {"expression": "true"}}]},
    }
    try:
        created = (await api.create(CLASSES, body)).ok()
        changed = (await api.merge(f"{CLASSES}/{unique}", {"spec": {"selectors": None}})).ok()
        assert (created.meta["generation"], changed.meta["generation"]) == (1, 2)
    finally:
        await api.delete(f"{CLASSES}/{unique}")


async def test_taint_rule_defaults_generation_and_renewed_time(api: Client, unique: str) -> None:
    """Cp T-20."""
    try:
        created = (await api.create(RULES, _rule(unique))).ok()
        assert created.meta["generation"] == 1
        assert created.body["status"] == {}
        assert created.body["spec"]["taint"]["timeAdded"].endswith("Z")
        changed = (await api.merge(f"{RULES}/{unique}", {"spec": {"taint": {"effect": "None"}}})).ok()
        assert changed.meta["generation"] == 2
    finally:
        await api.delete(f"{RULES}/{unique}")


async def test_taint_rule_and_lease_need_a_version_for_replace(api: Client, unique: str) -> None:
    """Cp V-5."""
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {}}
    try:
        (await api.create(RULES, _rule(unique))).ok()
        (await api.create(LEASES, lease)).ok()
        for path, body in ((f"{RULES}/{unique}", _rule(unique)), (f"{LEASES}/l", lease)):
            refused = await api.replace(path, body)
            assert _errors(refused) == [("metadata.resourceVersion", "FieldValueInvalid")]
    finally:
        await api.delete(f"{RULES}/{unique}")


async def test_taint_rule_status_keeps_spec(api: Client, unique: str) -> None:
    """Cp V-3."""
    condition = {
        "type": "EvictionInProgress",
        "status": "False",
        "reason": "NotStarted",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    try:
        created = (await api.create(RULES, _rule(unique))).ok()
        body = {"spec": {"taint": {"effect": "None"}}, "status": {"conditions": [condition]}}
        written = (await api.merge(f"{RULES}/{unique}/status", body)).ok()
        assert written.body["spec"] == created.body["spec"]
        assert written.body["status"]["conditions"] == [condition]
        assert written.meta["generation"] == 1
    finally:
        await api.delete(f"{RULES}/{unique}")


async def test_bad_taint_rule_is_invalid(api: Client, unique: str) -> None:
    """Cp V-98, V-121."""
    body = _rule(unique)
    body["spec"]["taint"]["effect"] = "Sometimes"
    assert _errors(await api.create(RULES, body)) == [("spec.taint.effect", "FieldValueNotSupported")]


async def test_lease_is_taken_over_only_with_the_version_that_was_read(api: Client) -> None:
    spec = {"holderIdentity": "one", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.123456Z"}
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": spec}
    created = (await api.create(LEASES, body)).ok()
    assert created.body["spec"] == spec
    body["metadata"] = {"name": "l", "resourceVersion": created.version}
    body["spec"] = {**spec, "holderIdentity": "two", "leaseTransitions": 1}
    (await api.replace(f"{LEASES}/l", body)).ok()
    assert (await api.replace(f"{LEASES}/l", body)).code == 409


async def test_event_is_the_same_object_in_both_groups(api: Client) -> None:
    created = (await api.create(NEW_EVENTS, _event(api.ns))).ok()
    core = (await api.get(f"{CORE_EVENTS}/e")).ok()
    assert core.body["kind"] == "Event"
    assert core.meta["uid"] == created.meta["uid"]
    assert core.body["message"] == "no device is free"
    assert core.body["reportingComponent"] == "dra-operator"
    assert core.body["involvedObject"]["name"] == "p"
    found = await api.get(
        CORE_EVENTS, fieldSelector="involvedObject.name=p,involvedObject.uid=u,type=Warning"
    )
    assert [item["metadata"]["name"] for item in found.body["items"]] == ["e"]
    assert (await api.get(f"{NEW_EVENTS}/e")).body["note"] == "no device is free"
    series = {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:01:00.000000Z"}}
    patched = (await api.merge(f"{NEW_EVENTS}/e", series)).ok()
    assert patched.body["series"]["count"] == 2


def _event(namespace: str, **fields: Any) -> Obj:
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "dra-operator",
        "reportingInstance": "dra-operator-0",
        "action": "Allocating",
        "reason": "NoSolution",
        "note": "no device is free",
        "type": "Warning",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": "p", "uid": "u"},
        **fields,
    }
    return {key: value for key, value in event.items() if value is not None}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"eventTime": None}, ("eventTime", "FieldValueRequired")),
        ({"reportingController": "no name"}, ("reportingController", "FieldValueInvalid")),
        ({"reportingInstance": ""}, ("reportingInstance", "FieldValueRequired")),
        ({"action": ""}, ("action", "FieldValueRequired")),
        ({"reason": "r" * 129}, ("reason", "FieldValueInvalid")),
        ({"note": "n" * 1025}, ("message", "FieldValueInvalid")),
        ({"type": "Error"}, ("type", "FieldValueInvalid")),
        ({"regarding": {"kind": "Node", "name": "n"}}, ("involvedObject.namespace", "FieldValueInvalid")),
        (
            {"series": {"count": 1, "lastObservedTime": "2026-01-01T00:00:00.000000Z"}},
            ("series.count", "FieldValueInvalid"),
        ),
    ],
)
async def test_bad_event_is_invalid(api: Client, fields: Obj, expected: tuple[str, str]) -> None:
    assert _errors(await api.create(NEW_EVENTS, _event(api.ns, **fields))) == [expected]


async def test_core_event_lives_in_the_namespace_of_its_object(api: Client) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "namespace": "other", "name": "p"},
        "reason": "R",
        "message": "m",
        "type": "Normal",
    }
    refused = await api.create(CORE_EVENTS, body)
    assert _errors(refused) == [("involvedObject.namespace", "FieldValueInvalid")]
    (await api.create(CORE_EVENTS, {**body, "involvedObject": {"namespace": api.ns, "name": "p"}})).ok()


async def test_event_about_a_cluster_scoped_object_lives_in_default(api: Client, unique: str) -> None:
    path = "/apis/events.k8s.io/v1/namespaces/default/events"
    about = {"apiVersion": "v1", "kind": "Node", "name": "n"}
    body = _event("default", regarding=about, metadata={"name": unique})
    try:
        (await api.create(path, body)).ok()
    finally:
        await api.delete(f"{path}/{unique}")


async def test_written_event_changes_only_its_series(api: Client) -> None:
    (await api.create(NEW_EVENTS, _event(api.ns))).ok()
    refused = await api.merge(f"{NEW_EVENTS}/e", {"note": "other"})
    assert _errors(refused) == [("message", "FieldValueInvalid")]
    series = {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:01:00.000000Z"}}
    (await api.merge(f"{NEW_EVENTS}/e", series)).ok()


@pytest.mark.parametrize("time", ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.123Z", "yesterday"])
async def test_micro_times_have_six_digits(api: Client, time: str) -> None:
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}}
    refused = await api.create(LEASES, {**lease, "spec": {"renewTime": time}})
    assert (refused.code, refused.reason) == (400, "BadRequest")
    assert f'parsing time "{time}"' in refused.body["message"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"leaseDurationSeconds": 0}, "spec.leaseDurationSeconds"),
        ({"leaseTransitions": -1}, "spec.leaseTransitions"),
    ],
)
async def test_bad_lease_is_invalid(api: Client, spec: Obj, field: str) -> None:
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": spec}
    assert _errors(await api.create(LEASES, lease)) == [(field, "FieldValueInvalid")]


async def test_namespace_names_and_the_namespaces_that_stay(api: Client) -> None:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a.b"}}
    assert _errors(await api.create("/api/v1/namespaces", body)) == [("metadata.name", "FieldValueInvalid")]
    refused = await api.delete("/api/v1/namespaces/default")
    assert (refused.code, refused.body["message"]) == (
        403,
        'namespaces "default" is forbidden: this namespace may not be deleted',
    )


async def test_node_keeps_its_status_on_creation(api: Client, unique: str) -> None:
    resources = {"cpu": "8", "memory": "32Gi"}
    body = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": unique},
        "status": {"capacity": resources, "allocatable": resources},
    }
    try:
        created = (await api.create("/api/v1/nodes", body)).ok()
        assert created.body["status"]["allocatable"] == resources
        (await api.merge(f"/api/v1/nodes/{unique}", {"spec": {"unschedulable": True}})).ok()
    finally:
        await api.delete(f"/api/v1/nodes/{unique}")
