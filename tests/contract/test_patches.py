"""Merge, JSON and strategic merge patches, and what guards them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.contract.client import CLAIM, CONFIG, POD
from tests.contract.objects import claim, config, pod

if TYPE_CHECKING:
    from tests.contract.client import Client


async def test_merge_patch_sets_and_deletes(api: Client) -> None:
    (await api.create(CONFIG, config(data={"a": "1", "b": "2"}))).ok()
    patched = (await api.merge(f"{CONFIG}/c", {"data": {"a": None, "c": "3"}})).ok()
    assert patched.body["data"] == {"b": "2", "c": "3"}


async def test_merge_patch_with_a_stale_version_conflicts(api: Client) -> None:
    created = (await api.create(CONFIG, config())).ok()
    (await api.merge(f"{CONFIG}/c", {"data": {"a": "1"}})).ok()
    patch = {"metadata": {"resourceVersion": created.version}, "data": {"a": "2"}}
    refused = await api.merge(f"{CONFIG}/c", patch)
    assert (refused.code, refused.reason) == (409, "Conflict")
    assert refused.body["message"] == (
        'Operation cannot be fulfilled on configmaps "c": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )


async def test_merge_patch_with_the_current_version_and_uid_succeeds(api: Client) -> None:
    created = (await api.create(CONFIG, config())).ok()
    guard = {"resourceVersion": created.version, "uid": created.meta["uid"]}
    (await api.merge(f"{CONFIG}/c", {"metadata": guard, "data": {"a": "2"}})).ok()


async def test_merge_patch_with_another_uid_is_invalid(api: Client) -> None:
    """422, not 409: a uid alone is no good guard for a client that tells the two apart."""
    (await api.create(CLAIM, claim())).ok()
    wrong = "22222222-2222-2222-2222-222222222222"
    for path, body in (
        (f"{CLAIM}/claim", {"labels": {"a": "b"}}),
        (f"{CLAIM}/claim/status", {}),
    ):
        refused = await api.merge(path, {"metadata": {"uid": wrong, **body}})
        assert (refused.code, refused.reason) == (422, "Invalid")
        assert [cause["field"] for cause in refused.causes] == ["metadata.uid"]


async def test_merge_patch_for_a_replaced_object_conflicts(api: Client) -> None:
    """With the uid and version of a predecessor, as the operator sends them, the answer is 409."""
    first = (await api.create(CLAIM, claim())).ok()
    (await api.delete(f"{CLAIM}/claim")).ok()
    (await api.create(CLAIM, claim())).ok()
    guard = {"uid": first.meta["uid"], "resourceVersion": first.version}
    for path in (f"{CLAIM}/claim", f"{CLAIM}/claim/status"):
        refused = await api.merge(path, {"metadata": guard})
        assert (refused.code, refused.reason) == (409, "Conflict")


async def test_patch_of_a_missing_object_is_not_found(api: Client) -> None:
    assert (await api.merge(f"{CONFIG}/nope", {"data": {}})).code == 404


async def test_json_patch_applies_operations_in_order(api: Client) -> None:
    (await api.create(CONFIG, config(data={"a": "1"}))).ok()
    operations = [
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "add", "path": "/data/b", "value": "2"},
        {"op": "remove", "path": "/data/a"},
    ]
    patched = (await api.json_patch(f"{CONFIG}/c", operations)).ok()
    assert patched.body["data"] == {"b": "2"}


async def test_json_patch_whose_test_fails_is_unprocessable(api: Client) -> None:
    """Not 409: this is why decisions carry a resourceVersion instead (cp I-56)."""
    (await api.create(CONFIG, config(data={"a": "1"}))).ok()
    refused = await api.json_patch(f"{CONFIG}/c", [{"op": "test", "path": "/data/a", "value": "2"}])
    assert (refused.code, refused.reason) == (422, "Invalid")
    assert refused.body["message"] == "the server rejected our request due to an error in our request"


async def test_json_patch_that_cannot_be_done_is_unprocessable(api: Client) -> None:
    (await api.create(CONFIG, config(data={"a": "1"}))).ok()
    for operation in (
        {"op": "remove", "path": "/data/nope"},
        {"op": "add", "path": "/no/such/place", "value": 1},
        {"op": "invent", "path": "/data"},
    ):
        refused = await api.json_patch(f"{CONFIG}/c", [operation])
        assert (refused.code, refused.reason) == (422, "Invalid")


async def test_json_patch_with_a_stale_version_conflicts(api: Client) -> None:
    created = (await api.create(CONFIG, config())).ok()
    (await api.merge(f"{CONFIG}/c", {"data": {"a": "1"}})).ok()
    operations = [
        {"op": "replace", "path": "/metadata/resourceVersion", "value": created.version},
        {"op": "replace", "path": "/data/a", "value": "2"},
    ]
    assert (await api.json_patch(f"{CONFIG}/c", operations)).code == 409


async def test_strategic_patch_merges_lists_by_key(api: Client) -> None:
    (await api.create(POD, pod(gates=("example.com/a", "example.com/b")))).ok()
    drop = {"spec": {"schedulingGates": [{"name": "example.com/a", "$patch": "delete"}]}}
    patched = (await api.strategic(f"{POD}/p", drop)).ok()
    assert patched.body["spec"]["schedulingGates"] == [{"name": "example.com/b"}]


async def test_merge_patch_of_gates_wipes_those_of_others(api: Client) -> None:
    """Why the operator removes its gate by name."""
    (await api.create(POD, pod(gates=("example.com/a", "example.com/b")))).ok()
    patched = (await api.merge(f"{POD}/p", {"spec": {"schedulingGates": []}})).ok()
    assert not patched.body["spec"].get("schedulingGates")


async def test_strategic_patch_unites_finalizers_and_deletes_one(api: Client) -> None:
    (await api.create(CLAIM, claim(finalizers=["example.com/a"]))).ok()
    more = (await api.strategic(f"{CLAIM}/claim", {"metadata": {"finalizers": ["example.com/b"]}})).ok()
    assert sorted(more.meta["finalizers"]) == ["example.com/a", "example.com/b"]
    less = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}}
    assert (await api.strategic(f"{CLAIM}/claim", less)).ok().meta["finalizers"] == ["example.com/b"]


async def test_strategic_patch_replaces_atomic_lists_and_maps_on_demand(api: Client) -> None:
    (await api.create(CONFIG, config(data={"a": "1"}))).ok()
    patched = (await api.strategic(f"{CONFIG}/c", {"data": {"$patch": "replace", "b": "2"}})).ok()
    assert patched.body["data"] == {"b": "2"}


async def test_strategic_patch_merges_status_conditions_by_type(api: Client) -> None:
    (await api.create(POD, pod())).ok()
    for name in ("A", "B", "A"):
        condition = {"type": name, "status": "True", "reason": f"Seen{name}"}
        (await api.strategic(f"{POD}/p/status", {"status": {"conditions": [condition]}})).ok()
    found = (await api.get(f"{POD}/p")).body["status"]["conditions"]
    assert sorted(condition["type"] for condition in found) == ["A", "B"]


async def test_unknown_patch_format_is_refused_by_media_type(api: Client) -> None:
    (await api.create(CONFIG, config())).ok()
    refused = await api.call("PATCH", f"{CONFIG}/c", {"data": {}}, kind="application/json")
    assert (refused.code, refused.reason) == (415, "UnsupportedMediaType")


async def test_merge_patch_cannot_change_the_name(api: Client) -> None:
    (await api.create(CONFIG, config())).ok()
    refused = await api.merge(f"{CONFIG}/c", {"metadata": {"name": "d"}})
    assert refused.code in (400, 422)
