"""`kubectl dra claims`: claims and pods in, rows out."""

from __future__ import annotations

import pytest

from dra_operator.cli.claims import Holding, fold_devices, holdings, table
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


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        ((), ""),
        (("n1/gpu-0",), "d/n1/gpu-0"),
        (tuple(f"n1/gpu-{at}" for at in range(8)), "d/n1/gpu-0…gpu-7"),
        (("n1/gpu-0", "n1/gpu-1"), "d/n1/gpu-0,gpu-1"),
        (tuple(f"n1/gpu-{at}" for at in (9, 10, 8, 2)), "d/n1/gpu-2,gpu-8…gpu-10"),
        (tuple(f"n1/g{at:02}" for at in range(8, 12)), "d/n1/g08…g11"),
        (("n1/gpu-0", "n1/gpu-2", "n1/gpu-4"), "d/n1/gpu-0,gpu-2,gpu-4"),
        (("n1/a", "n1/b", "n1/c"), "d/n1/a,b,c"),
        (
            ("n2/0", "n2/1", "n2/2", "n1/0"),
            "d/n2/0…2, d/n1/0",
        ),
    ],
)
def test_devices_of_one_pool_are_folded_in_the_table(names: tuple[str, ...], folded: str) -> None:
    assert fold_devices(f"d/{name}" for name in names) == folded


def test_the_json_form_names_every_device_and_pod() -> None:
    names = tuple(f"gpu-{at}" for at in range(8))
    row = holdings([claim("c", devices=names, consumers=tuple("pqrstu"))], [])[0]
    cells = [next(iter(column.cells)) for column in table([row]).columns]

    assert row.to_object()["devices"] == tuple(f"gpu.test/n1/{name}" for name in names)
    assert (cells[3], cells[5]) == ("gpu.test/n1/gpu-0…gpu-7", "p, q, r, s and 2 more")
