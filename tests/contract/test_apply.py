"""Server-side apply: ownership, conflicts, force, removal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.contract.client import CLAIM, CONFIG, POD
from tests.contract.objects import claim, config, pod

if TYPE_CHECKING:
    from tests.contract.client import Client, Obj


def _applied(**data: str) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}


async def test_apply_creates_then_updates(api: Client) -> None:
    created = await api.apply(f"{CONFIG}/c", _applied(a="1"), "one")
    assert created.code == 201
    updated = await api.apply(f"{CONFIG}/c", _applied(a="2"), "one")
    assert (updated.code, updated.body["data"]) == (200, {"a": "2"})


async def test_apply_of_the_same_changes_nothing(api: Client) -> None:
    first = (await api.apply(f"{CONFIG}/c", _applied(a="1"), "one")).ok()
    second = (await api.apply(f"{CONFIG}/c", _applied(a="1"), "one")).ok()
    assert first.version == second.version


async def test_apply_removes_what_the_manager_no_longer_names(api: Client) -> None:
    (await api.apply(f"{CONFIG}/c", _applied(a="1", b="2"), "one")).ok()
    left = (await api.apply(f"{CONFIG}/c", _applied(a="1"), "one")).ok()
    assert left.body["data"] == {"a": "1"}


async def test_apply_keeps_what_others_own(api: Client) -> None:
    (await api.apply(f"{CONFIG}/c", _applied(a="1"), "one")).ok()
    (await api.apply(f"{CONFIG}/c", _applied(b="2"), "two")).ok()
    assert (await api.get(f"{CONFIG}/c")).body["data"] == {"a": "1", "b": "2"}


async def test_field_shared_by_two_survives_until_both_drop_it(api: Client) -> None:
    (await api.apply(f"{CONFIG}/c", _applied(a="1"), "one")).ok()
    (await api.apply(f"{CONFIG}/c", _applied(a="1", b="2"), "two")).ok()
    kept = (await api.apply(f"{CONFIG}/c", _applied(b="2"), "two")).ok()
    assert kept.body["data"] == {"a": "1", "b": "2"}


async def test_apply_against_another_value_conflicts_and_names_the_manager(api: Client) -> None:
    (await api.apply(f"{CONFIG}/c", _applied(a="1"), "one")).ok()
    refused = await api.apply(f"{CONFIG}/c", _applied(a="2"), "two")
    assert (refused.code, refused.reason) == (409, "Conflict")
    assert refused.body["message"] == 'Apply failed with 1 conflict: conflict with "one": .data.a'
    assert refused.causes == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.a"}
    ]


async def test_apply_with_force_takes_the_field(api: Client) -> None:
    (await api.apply(f"{CONFIG}/c", _applied(a="1"), "one")).ok()
    forced = (await api.apply(f"{CONFIG}/c", _applied(a="2"), "two", force="true")).ok()
    assert forced.body["data"] == {"a": "2"}
    refused = await api.apply(f"{CONFIG}/c", _applied(a="3"), "one")
    assert refused.code == 409


async def test_updates_own_fields_too(api: Client) -> None:
    (await api.create(CONFIG, config(data={"a": "1"}), fieldManager="creator")).ok()
    refused = await api.apply(f"{CONFIG}/c", _applied(a="2"), "two")
    assert refused.code == 409
    assert refused.causes[0]["message"] == 'conflict with "creator" using v1'


async def test_configuration_says_what_it_is(api: Client) -> None:
    for body, said in (
        ({"metadata": {"name": "c"}}, "invalid object type: /, Kind="),
        (
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "d"}},
            "the name of the object (d) does not match the name on the URL (c)",
        ),
    ):
        refused = await api.apply(f"{CONFIG}/c", body, "one")
        assert (refused.code, refused.body["message"]) == (400, said)


async def test_apply_needs_a_field_manager(api: Client) -> None:
    refused = await api.call("PATCH", f"{CONFIG}/c", _applied(a="1"), kind="application/apply-patch+yaml")
    assert (refused.code, refused.reason) == (422, "Invalid")


async def test_apply_of_claim_statuses_keeps_entries_of_the_same_apply_only(api: Client) -> None:
    """Cp C-40, C-41: an entry that is left out of the next apply of the same manager is dropped."""
    claims = (
        {"name": "a", "resourceClaimTemplateName": "t"},
        {"name": "b", "resourceClaimTemplateName": "t"},
    )
    (await api.create(POD, pod(claims=claims))).ok()

    def body(*entries: Obj) -> Obj:
        metadata = {"name": "p", "namespace": api.ns}
        status = {"resourceClaimStatuses": list(entries)}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": status}

    first, second = {"name": "a", "resourceClaimName": "p-a"}, {"name": "b", "resourceClaimName": "p-b"}
    (await api.apply(f"{POD}/p/status", body(first), "claims", force="true")).ok()
    both = (await api.apply(f"{POD}/p/status", body(first, second), "claims", force="true")).ok()
    assert both.body["status"]["resourceClaimStatuses"] == [first, second]
    one = (await api.apply(f"{POD}/p/status", body(second), "claims", force="true")).ok()
    assert one.body["status"]["resourceClaimStatuses"] == [second]
    assert one.body["status"]["phase"] == "Pending"


async def test_apply_to_the_status_of_a_missing_object_is_not_found(api: Client) -> None:
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "status": {"phase": "Running"}}
    assert (await api.apply(f"{POD}/p/status", body, "one")).code == 404


async def test_managed_fields_tell_manager_operation_and_fields(api: Client) -> None:
    (await api.apply(f"{CONFIG}/c", _applied(a="1"), "one")).ok()
    patched = (await api.merge(f"{CONFIG}/c", {"metadata": {"labels": {"x": "y"}}}, fieldManager="two")).ok()
    entries = {entry["manager"]: entry for entry in patched.meta["managedFields"]}
    assert entries["one"]["operation"] == "Apply"
    assert "f:a" in entries["one"]["fieldsV1"]["f:data"]
    assert entries["two"]["operation"] == "Update"
    assert "f:x" in entries["two"]["fieldsV1"]["f:metadata"]["f:labels"]


async def test_applied_finalizers_are_a_set(api: Client) -> None:
    (await api.create(CLAIM, claim(finalizers=["example.com/a"]))).ok()
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "claim", "finalizers": ["example.com/b"]},
    }
    both = (await api.apply(f"{CLAIM}/claim", body, "one")).ok()
    assert sorted(both.meta["finalizers"]) == ["example.com/a", "example.com/b"]
    del body["metadata"]["finalizers"]  # type: ignore[attr-defined]  # a dictionary, whatever its values
    back = (await api.apply(f"{CLAIM}/claim", body, "one")).ok()
    assert back.meta["finalizers"] == ["example.com/a"]


async def test_defaults_make_an_atomic_list_conflict_with_its_creator(api: Client) -> None:
    """Apply compares with the defaulted object: an undefaulted configuration of another manager differs."""
    (await api.create(CLAIM, claim(), fieldManager="creator")).ok()
    refused = await api.apply(f"{CLAIM}/claim", claim(), "two")
    assert refused.causes == [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "creator" using resource.k8s.io/v1',
            "field": ".spec.devices.requests",
        }
    ]


async def test_managed_fields_can_be_handed_over_by_patch(api: Client) -> None:
    """What kubectl does when it moves from client-side to server-side apply."""
    created = (await api.create(CONFIG, config(data={"a": "1"}), fieldManager="old")).ok()
    entry = {**created.meta["managedFields"][0], "manager": "new", "operation": "Apply"}
    (
        await api.json_patch(
            f"{CONFIG}/c", [{"op": "replace", "path": "/metadata/managedFields", "value": [entry]}]
        )
    ).ok()
    left = (await api.apply(f"{CONFIG}/c", _applied(b="2"), "new")).ok()
    assert left.body["data"] == {"b": "2"}


async def test_re_apply_of_a_claim_without_its_defaults_is_no_change(api: Client) -> None:
    """The spec is immutable (cp V-20), and lists of requests are atomic: defaults must not make them differ."""
    body = claim()
    (await api.apply(f"{CLAIM}/claim", body, "one")).ok()
    (await api.apply(f"{CLAIM}/claim", body, "one")).ok()
