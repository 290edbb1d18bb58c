"""Objects of the API become values: what is kept, what is ignored, how faults are named."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dra_operator.errors import InvalidObject
from dra_operator.model import (
    KINDS,
    AllocationPolicy,
    AllocationResult,
    DeviceClass,
    DeviceId,
    DeviceTaintRule,
    Node,
    Pod,
    PoolId,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
    from_json,
    from_object,
    to_object,
)
from dra_operator.model.decode import encode_hook
from dra_operator.quantity import Quantity

GPU_SLICE: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {
        "name": "node-1-gpu",
        "uid": "u-1",
        "resourceVersion": "12",
        "generation": 2,
        "managedFields": [{"manager": "driver"}],
    },
    "spec": {
        "driver": "gpu.example.com",
        "nodeName": "node-1",
        "pool": {"name": "node-1", "generation": 3, "resourceSliceCount": 1},
        "sharedCounters": [{"name": "gpu-0", "counters": {"memory": {"value": "80Gi"}}}],
        "devices": [
            {
                "name": "gpu-0",
                "attributes": {
                    "model": {"string": "A100"},
                    "index": {"int": 0},
                    "ecc": {"bool": True},
                    "driverVersion": {"version": "550.54.15"},
                    "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"},
                    "numa": {"ints": [0, 1]},
                },
                "capacity": {"memory": {"value": "80Gi"}},
                "consumesCounters": [{"counterSet": "gpu-0", "counters": {"memory": {"value": 85899345920}}}],
                "taints": [
                    {"key": "example.com/sick", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}
                ],
            }
        ],
    },
}


def test_a_slice_keeps_what_decisions_read() -> None:
    slice_ = from_object(ResourceSlice, GPU_SLICE)
    (device,) = slice_.spec.devices
    assert slice_.pool_id == PoolId("gpu.example.com", "node-1")
    assert slice_.device_id(device) == DeviceId("gpu.example.com", "node-1", "gpu-0")
    assert device.capacity["memory"].value == Quantity.parse("80Gi")
    assert device.consumes_counters[0].counters["memory"].value == Quantity.parse("80Gi")
    assert [device.attributes[name].string for name in ("model", "index")] == ["A100", None]
    assert device.attributes["index"].int_value == 0
    assert device.attributes["ecc"].bool_value is True
    assert device.attributes["numa"].ints == (0, 1)
    assert slice_.spec.shared_counters[0].counters["memory"].value == Quantity.parse("80Gi")


def test_text_and_parsed_objects_decode_alike() -> None:
    assert from_json(ResourceSlice, msgspec.json.encode(GPU_SLICE)) == from_object(ResourceSlice, GPU_SLICE)


def test_slices_may_be_referenced_weakly_and_are_frozen() -> None:
    slice_ = from_object(ResourceSlice, GPU_SLICE)
    with pytest.raises(AttributeError):
        slice_.metadata = slice_.metadata  # type: ignore[misc] # the point of the test: frozen


def test_a_claim_with_an_allocation() -> None:
    claim = from_object(
        ResourceClaim,
        {
            "metadata": {"name": "c", "namespace": "n"},
            "spec": {
                "devices": {
                    "requests": [
                        {
                            "name": "gpu",
                            "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2},
                        },
                        {"name": "any", "firstAvailable": [{"name": "big", "deviceClassName": "gpu"}]},
                    ],
                    "constraints": [
                        {"requests": ["gpu"], "matchAttribute": "resource.kubernetes.io/pcieRoot"}
                    ],
                }
            },
            "status": {
                "allocation": {
                    "devices": {
                        "results": [
                            {"request": "gpu", "driver": "d", "pool": "p", "device": "x", "shareID": "s-1"}
                        ]
                    }
                },
                "reservedFor": [{"resource": "pods", "name": "p", "uid": "u-9"}],
            },
        },
    )
    assert claim.key == "n/c"
    assert claim.is_allocated
    assert claim.is_reserved_for("u-9")
    assert not claim.is_reserved_for("u-8")
    allocation = claim.status.allocation
    assert allocation is not None
    assert allocation.devices.results[0].device_id == DeviceId("d", "p", "x")
    assert allocation.devices.results[0].share_id == "s-1"
    exactly = claim.spec.devices.requests[0].exactly
    assert exactly is not None
    assert exactly.count == 2
    assert claim.spec.devices.requests[1].first_available[0].name == "big"


OTHERS: list[tuple[type[Any], dict[str, Any], str, Any]] = [
    (DeviceClass, {"spec": {"selectors": [{"cel": {"expression": "true"}}], "extendedResourceName": "example.com/gpu"}}, "spec.extended_resource_name", "example.com/gpu"),
    (ResourceClaimTemplate, {"spec": {"metadata": {"labels": {"a": "b"}}, "spec": {"devices": {}}}}, "spec.metadata.labels", {"a": "b"}),
    (DeviceTaintRule, {"spec": {"deviceSelector": {"driver": "d"}, "taint": {"key": "k", "effect": "NoExecute"}}}, "spec.taint.effect", "NoExecute"),
    (Node, {"spec": {"unschedulable": True}, "status": {"allocatable": {"cpu": "4"}}}, "status.allocatable", {"cpu": Quantity.of(4)}),
    (Pod, {"spec": {"nodeName": "n", "containers": [{"name": "c", "ports": [{"hostIP": "127.0.0.1", "hostPort": 80}]}]}}, "spec.node_name", "n"),
    (AllocationPolicy, {"spec": {"pools": [{"driver": "d"}], "order": "FirstFit"}}, "spec.order", "FirstFit"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "raw", "path", "expected"), OTHERS)
def test_the_other_kinds(kind: type[Any], raw: dict[str, Any], path: str, expected: object) -> None:
    value: Any = from_object(kind, {"metadata": {"name": "x"}, **raw})
    for name in path.split("."):
        value = getattr(value, name)
    assert value == expected


def test_every_kind_decodes_from_its_name_alone() -> None:
    decoded = {name: from_object(kind, {"metadata": {"name": "x"}}) for name, kind in KINDS.items()}
    assert {type(value).__name__ for value in decoded.values()} == set(KINDS)


@pytest.mark.parametrize(
    "name",
    ["labels", "annotations", "finalizers", "ownerReferences", "creationTimestamp", "deletionTimestamp"],
)
def test_nulls_in_metadata_read_as_absent(name: str) -> None:
    expected = from_object(ResourceSlice, {"metadata": {"name": "s"}})
    assert from_object(ResourceSlice, {"metadata": {"name": "s", name: None}}) == expected


def test_nulls_read_as_absent_wherever_go_has_empty_values() -> None:
    raw = {
        "metadata": {"name": "s", "creationTimestamp": None},
        "spec": {
            "driver": "d",
            "devices": [{"name": "a", "attributes": None, "taints": None}],
            "sharedCounters": None,
        },
    }
    slice_ = from_json(ResourceSlice, msgspec.json.encode(raw))
    assert (
        slice_.spec.devices
        == from_object(
            ResourceSlice, {"metadata": {"name": "s"}, "spec": {"devices": [{"name": "a"}]}}
        ).spec.devices
    )
    assert slice_.spec.shared_counters == ()


def test_nulls_inside_opaque_parameters_stay() -> None:
    raw = {
        "metadata": {"name": "c", "labels": None},
        "spec": {"config": [{"opaque": {"driver": "d", "parameters": {"mode": None}}}]},
    }
    opaque = from_object(DeviceClass, raw).spec.config[0].opaque
    assert opaque is not None
    assert opaque.parameters == {"mode": None}


FAULTS: list[tuple[dict[str, Any], str, str, str]] = [
    ({"metadata": {"name": "s"}, "spec": {"driver": 3}}, "ResourceSlice s", "spec.driver", "Expected `str`, got `int`"),
    ({"metadata": {"name": "s", "namespace": "n"}, "spec": {"pool": {"generation": "1"}}}, "ResourceSlice n/s", "spec.pool.generation", "Expected `int`, got `str`"),
    ({"metadata": {"name": "s"}, "spec": {"devices": [{"name": "a"}, {}]}}, "ResourceSlice s", "spec.devices[1]", "missing required field `name`"),
    ({"metadata": {"name": "s"}, "spec": {"devices": [{"name": "a", "capacity": {"m": {"value": "1Q"}}}]}}, "ResourceSlice s", "spec.devices[0].capacity[...].value", "'1Q' is not a quantity"),
    ({"spec": {}}, "ResourceSlice", "", "missing required field `metadata`"),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "ref", "path", "message"), FAULTS)
def test_a_fault_names_the_object_and_the_place(
    raw: dict[str, Any], ref: str, path: str, message: str
) -> None:
    for is_text in (False, True):
        with pytest.raises(InvalidObject) as caught:
            from_json(ResourceSlice, msgspec.json.encode(raw)) if is_text else from_object(ResourceSlice, raw)
        assert (caught.value.ref, caught.value.path) == (ref, path)
        assert message in caught.value.message


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b"null", b"\xff", b'{"metadata": 5, "spe', b'{"x": ' + b"[" * 100_000],
    ids=["empty", "cut off", "a list", "null", "no text", "wrong, then cut off", "nested too deeply"],
)
def test_what_is_no_object_is_a_fault_of_the_kind(text: bytes) -> None:
    with pytest.raises(InvalidObject, match=r"^ResourceSlice"):
        from_json(ResourceSlice, text)


def test_values_encode_to_what_they_were_without_what_is_ignored() -> None:
    encoded = to_object(from_object(ResourceSlice, GPU_SLICE))
    assert encoded["spec"]["pool"] == GPU_SLICE["spec"]["pool"]
    assert encoded["spec"]["devices"][0]["attributes"] == GPU_SLICE["spec"]["devices"][0]["attributes"]
    assert encoded["spec"]["devices"][0]["consumesCounters"] == [
        {"counterSet": "gpu-0", "counters": {"memory": {"value": "85899345920"}}}
    ]
    assert "managedFields" not in encoded["metadata"]
    assert from_object(ResourceSlice, encoded) == from_object(ResourceSlice, GPU_SLICE)


def test_an_allocation_encodes_with_the_names_of_the_api() -> None:
    raw = {
        "devices": {
            "results": [{"request": "r", "driver": "d", "pool": "p", "device": "x", "adminAccess": True}],
            "config": [
                {
                    "source": "FromClass",
                    "requests": ["r"],
                    "opaque": {"driver": "d", "parameters": {"a": None}},
                }
            ],
        },
        "nodeSelector": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
            ]
        },
    }
    assert to_object(from_object(AllocationResult, raw)) == raw


def test_only_quantities_need_help_to_encode() -> None:
    with pytest.raises(NotImplementedError):
        encode_hook(object())


def test_a_pod_is_done_when_it_ended_or_was_deleted_before_it_was_bound() -> None:
    def pod(**parts: Any) -> Pod:
        metadata = {"name": "p", **parts.pop("metadata", {})}
        return from_object(Pod, {"metadata": metadata, **parts})

    deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert [
        pod(status={"phase": "Succeeded"}).is_done,
        pod(metadata=deleted).is_done,
        pod(metadata=deleted, spec={"nodeName": "n"}).is_done,
        pod().is_done,
    ] == [True, True, False, False]
