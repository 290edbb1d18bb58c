"""Who wrote an allocation, as the API server recorded it."""

from __future__ import annotations

from typing import Any

from dra_operator.controllers.strangers import writers


def entry(manager: str, *names: str, subresource: str = "status") -> dict[str, Any]:
    fields: dict[str, Any] = (
        {"f:status": {f"f:{name}": {} for name in names}} if names else {"f:metadata": {}}
    )
    return {"manager": manager, "operation": "Update", "subresource": subresource, "fieldsV1": fields}


def test_those_who_wrote_the_allocation_are_named() -> None:
    fields = [
        entry("kube-controller-manager", "reservedFor"),
        entry("another-scheduler", "allocation", "reservedFor"),
        entry("dra-operator"),
        {"manager": "odd"},
    ]
    assert list(writers({"metadata": {"managedFields": fields}})) == ["another-scheduler"]


def test_a_claim_without_the_record_names_nobody() -> None:
    assert list(writers({"metadata": {}})) == []
    assert list(writers({"metadata": {"managedFields": None}})) == []
