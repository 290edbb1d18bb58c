"""Node-allocatable resources as Kubernetes 1.36 writes them: one meaning, whatever the form (cp S-100, V-15)."""

from __future__ import annotations

from typing import Any

import pytest

from dra_operator.model import Device, NodeAllocatableResourceClaimStatus, from_object, to_object


def device(mappings: dict[str, Any], **more: Any) -> Device:
    return from_object(Device, {"name": "d", "nodeAllocatableResourceMappings": mappings, **more})


@pytest.mark.parametrize(
    ("mapping", "expected"),
    [
        ({}, {"deviceMultiplier": "1"}),
        ({"allocationMultiplier": "2Gi"}, {"deviceMultiplier": "2Gi"}),
        ({"allocationMultiplier": None}, {"deviceMultiplier": "1"}),
        ({"capacityKey": "mem"}, {"capacityKey": "mem", "capacityMultiplier": "1"}),
        (
            {"capacityKey": "a.test/mem", "allocationMultiplier": 2},
            {"capacityKey": "a.test/mem", "capacityMultiplier": "2"},
        ),
    ],
)
def test_a_mapping_is_read_into_that_of_1_37(mapping: dict[str, Any], expected: dict[str, str]) -> None:
    read = device({"cpu": mapping}).node_allocatable_resources
    today = from_object(
        Device, {"name": "d", "nodeAllocatableResources": {"cpu": {"mapping": expected}}}
    ).node_allocatable_resources

    assert read == today


@pytest.mark.parametrize(
    "mapping", [{"newer": 1}, {"allocationMultiplier": "many"}, {"capacityKey": 1}, {"capacityKey": ["a"]}]
)
def test_one_that_cannot_be_read_leaves_nothing_half_counted(mapping: dict[str, Any]) -> None:
    assert device({"cpu": {}, "memory": mapping}).node_allocatable_resources == {}


def test_todays_form_comes_first() -> None:
    today = {"cpu": {"mapping": {"deviceMultiplier": "3"}}}
    both = device({"cpu": {}}, nodeAllocatableResources=today)

    assert (
        both.node_allocatable_resources
        == device({}, nodeAllocatableResources=today).node_allocatable_resources
    )


def test_the_status_of_a_pod_is_read_and_written_in_both() -> None:
    raw = {"resourceClaimName": "c", "containers": ["main"], "resources": {"memory": "1Gi", "cpu": "2"}}
    read = from_object(NodeAllocatableResourceClaimStatus, raw)

    mapping = [{"name": "cpu", "quantity": "2"}, {"name": "memory", "quantity": "1Gi"}]
    assert to_object(read) == {**raw, "mapping": mapping}
    assert from_object(NodeAllocatableResourceClaimStatus, to_object(read)) == read
