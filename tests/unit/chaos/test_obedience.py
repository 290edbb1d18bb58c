"""What the last look of the storm finds in allocations."""

from __future__ import annotations

from typing import Any

from tests.chaos.obedience import disobeyed

Object = dict[str, Any]

CLASS: Object = {"metadata": {"name": "any"}, "spec": {}}
NODES: list[Object] = [{"metadata": {"name": name}} for name in ("n", "m")]
SLICE: Object = {
    "metadata": {"name": "s"},
    "spec": {
        "driver": "d",
        "nodeName": "n",
        "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "x", "taints": [{"key": "k", "effect": "NoSchedule"}]}, {"name": "y"}],
    },
}


def claim(name: str, device: str, node: str = "n", count: int = 1) -> Object:
    exactly = {"deviceClassName": "any", "allocationMode": "ExactCount", "count": count}
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}] if node else []
    allocation = {
        "devices": {"results": [{"request": "r", "driver": "d", "pool": "n", "device": device}]},
        **({"nodeSelector": {"nodeSelectorTerms": [{"matchFields": fields}]}} if node else {}),
    }
    return {
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
        "status": {"allocation": allocation} if device else {},
    }


def rules(*claims: Object) -> list[str]:
    return [text.split(":")[0] for text in disobeyed(claims, [SLICE], [CLASS], NODES)]


def test_allocations_by_the_rules_are_at_rest_and_taints_may_come_later() -> None:
    assert rules(claim("a", "x"), claim("b", "y"), claim("c", "")) == []


def test_rules_that_are_broken_are_told() -> None:
    assert rules(claim("a", "x"), claim("b", "x")) == ["rule double"]
    assert rules(claim("a", "x", count=2)) == ["rule count"]
    assert rules(claim("a", "x", node="m")) == ["rule device"]


def test_an_allocation_that_names_no_node_that_there_is_is_not_judged() -> None:
    assert rules(claim("a", "x", node="gone"), claim("b", "x", node="")) == []
