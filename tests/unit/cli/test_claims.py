"""`kubectl dra claims`: claims and pods in, rows out."""

from __future__ import annotations

from dra_operator.cli.claims import Holding, holdings, table
from dra_operator.model import Pod, ResourceClaim, from_object

HERE = {
    "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]
}


def claim(name: str, *, devices: tuple[str, ...] = (), consumers: tuple[str, ...] = ()) -> ResourceClaim:
    results = [{"request": "r", "driver": "gpu.test", "pool": "n1", "device": device} for device in devices]
    allocation = {"devices": {"results": results}, "nodeSelector": HERE} if devices else None
    reserved = [{"resource": "pods", "name": one, "uid": one} for one in consumers]
    return from_object(
        ResourceClaim,
        {
            "metadata": {"namespace": "a", "name": name},
            "status": {"allocation": allocation, "reservedFor": reserved},
        },
    )


def pod(name: str, claim_name: str, *, node: str = "") -> Pod:
    return from_object(
        Pod,
        {
            "metadata": {"namespace": "a", "name": name},
            "spec": {
                "nodeName": node,
                "resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}],
            },
            "status": {"resourceClaimStatuses": [{"name": "c", "resourceClaimName": claim_name}]},
        },
    )


def test_a_claim_in_use_names_devices_node_and_consumers() -> None:
    rows = holdings([claim("c1", devices=("gpu-0", "gpu-1"), consumers=("p",))], [pod("p", "c1", node="n1")])

    assert rows == [
        Holding("a", "c1", "in use", ("gpu.test/n1/gpu-0", "gpu.test/n1/gpu-1"), "n1", ("p",), ())
    ]


def test_a_pending_claim_names_the_pods_that_wait_for_it() -> None:
    rows = holdings([claim("c1")], [pod("p", "c1"), pod("q", "c1")])

    assert rows == [Holding("a", "c1", "pending", (), "", (), ("p", "q"))]


def test_an_allocation_that_nobody_reserved_is_told_apart() -> None:
    assert [row.state for row in holdings([claim("c1", devices=("gpu-0",))], [])] == ["allocated"]


def test_rows_are_ordered_and_the_table_has_a_line_for_each() -> None:
    rows = holdings([claim("c2"), claim("c1")], [])

    assert [row.claim for row in rows] == ["c1", "c2"]
    assert table(rows).row_count == 2
