"""Lists: selectors, pages, versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contract.client import CONFIG, DRA, POD
from tests.contract.objects import config, pod

if TYPE_CHECKING:
    from tests.contract.client import Client


async def _names(api: Client, path: str, **query: str) -> list[str]:
    body = (await api.get(path, **query)).ok().body
    return [item["metadata"]["name"] for item in body["items"]]


async def _five(api: Client) -> None:
    for number in range(5):
        (
            await api.create(CONFIG, config(f"c{number}", labels={"n": str(number), "odd": str(number % 2)}))
        ).ok()


async def test_list_has_kind_version_and_items_in_order(api: Client) -> None:
    await _five(api)
    body = (await api.get(CONFIG, labelSelector="n")).ok().body
    assert (body["kind"], body["apiVersion"]) == ("ConfigMapList", "v1")
    assert int(body["metadata"]["resourceVersion"]) > 0
    assert [item["metadata"]["name"] for item in body["items"]] == ["c0", "c1", "c2", "c3", "c4"]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("n=1", ["c1"]),
        ("n==1", ["c1"]),
        ("n!=1,n", ["c0", "c2", "c3", "c4"]),
        ("n in (1,2)", ["c1", "c2"]),
        ("n,n notin (1,2,3)", ["c0", "c4"]),
        ("odd=1,n=3", ["c3"]),
        ("!n,missing", []),
    ],
)
async def test_label_selectors(api: Client, selector: str, expected: list[str]) -> None:
    await _five(api)
    assert await _names(api, CONFIG, labelSelector=selector) == expected


async def test_label_selector_that_does_not_parse_is_a_bad_request(api: Client) -> None:
    assert (await api.get(CONFIG, labelSelector="a in b")).code == 400


async def test_field_selectors(api: Client) -> None:
    (await api.create(POD, pod("bound", nodeName="n1"))).ok()
    (await api.create(POD, pod("free"))).ok()
    assert await _names(api, POD, fieldSelector="metadata.name=free") == ["free"]
    assert await _names(api, POD, fieldSelector="spec.nodeName=n1") == ["bound"]
    assert await _names(api, POD, fieldSelector="spec.nodeName=") == ["free"]
    assert await _names(api, POD, fieldSelector="spec.nodeName!=n1,status.phase=Pending") == ["free"]


async def test_unknown_field_selector_is_a_bad_request(api: Client) -> None:
    refused = await api.get(POD, fieldSelector="spec.priority=1")
    assert refused.code == 400
    assert "field label not supported: spec.priority" in refused.body["message"]


async def test_slices_are_selectable_by_driver_node_and_pool(api: Client, unique: str) -> None:
    """Cp V-107."""
    driver = f"d{unique}.example.com"
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"s-{unique}"},
        "spec": {
            "driver": driver,
            "nodeName": f"n-{unique}",
            "pool": {"name": f"n-{unique}", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "d0"}],
        },
    }
    path = f"{DRA}/resourceslices"
    (await api.create(path, body)).ok()
    try:
        for selector in (f"spec.driver={driver}", f"spec.nodeName=n-{unique}", f"spec.pool.name=n-{unique}"):
            assert await _names(api, path, fieldSelector=selector) == [f"s-{unique}"]
    finally:
        await api.delete(f"{path}/s-{unique}")


async def test_pages_cover_everything_once_at_one_version(api: Client) -> None:
    await _five(api)
    names: list[str] = []
    versions: set[str] = set()
    query = {"limit": "2", "labelSelector": "n"}
    while True:
        body = (await api.get(CONFIG, **query)).ok().body
        names += [item["metadata"]["name"] for item in body["items"]]
        versions.add(body["metadata"]["resourceVersion"])
        if not body["metadata"].get("continue"):
            break
        query["continue"] = body["metadata"]["continue"]
        (await api.create(CONFIG, config(f"d{len(names)}", labels={"n": "late"}))).ok()
    assert names == ["c0", "c1", "c2", "c3", "c4"]
    assert len(versions) == 1


async def test_first_page_tells_what_remains(api: Client) -> None:
    for number in range(5):  # pods, as a controller puts a ConfigMap into every new namespace
        (await api.create(POD, pod(f"p{number}"))).ok()
    body = (await api.get(POD, limit="2")).ok().body
    assert body["metadata"]["remainingItemCount"] == 3


async def test_continue_token_that_does_not_parse_is_a_bad_request(api: Client) -> None:
    refused = await api.get(CONFIG, **{"continue": "nonsense", "limit": "2"})
    assert (refused.code, refused.reason) == (400, "BadRequest")


async def test_version_of_the_future_is_a_timeout(api: Client) -> None:
    refused = await api.get(CONFIG, resourceVersion="999999999")
    assert (refused.code, refused.reason) == (504, "Timeout")
    assert [cause["reason"] for cause in refused.causes] == ["ResourceVersionTooLarge"]


async def test_version_zero_lists_what_is_there(api: Client) -> None:
    (await api.create(CONFIG, config())).ok()
    assert "metadata" in (await api.get(CONFIG, resourceVersion="0")).ok().body


async def test_table_for_clients_that_print(api: Client) -> None:
    """What kubectl get asks for."""
    (await api.create(POD, pod(gates=("example.com/wait",)))).ok()
    headers = {
        "Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
        "Authorization": f"Bearer {api.server.token}",
    }
    url = api.server.url + POD.format(ns=api.ns)
    async with api._session.get(url, headers=headers, ssl=api.server.ssl) as response:
        body = await response.json()
    assert body["kind"] == "Table"
    names = [column["name"] for column in body["columnDefinitions"] if not column["priority"]]
    assert names == ["Name", "Ready", "Status", "Restarts", "Age"]
    assert body["rows"][0]["cells"][:4] == ["p", "0/1", "SchedulingGated", "0"]
    assert body["rows"][0]["object"]["metadata"]["name"] == "p"
