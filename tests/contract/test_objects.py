"""Create, read, replace, delete: what holds for every kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.contract.client import CLAIM, CONFIG, POD
from tests.contract.objects import claim, config, pod

if TYPE_CHECKING:
    from tests.contract.client import Client


async def test_created_object_has_uid_version_and_creation_time(api: Client) -> None:
    created = (await api.create(CONFIG, config())).ok()
    assert created.code == 201
    assert {"uid", "resourceVersion", "creationTimestamp", "namespace", "name"} <= created.meta.keys()
    assert created.meta["namespace"] == api.ns
    assert (await api.get(f"{CONFIG}/c")).body["metadata"] == created.body["metadata"]


async def test_generate_name_appends_five_characters(api: Client) -> None:
    body = config()
    body["metadata"] = {"generateName": "some-"}
    first, second = (await api.create(CONFIG, body)).ok(), (await api.create(CONFIG, body)).ok()
    assert first.meta["name"].startswith("some-")
    assert len(first.meta["name"]) == len("some-") + 5
    assert first.meta["name"] != second.meta["name"]
    assert first.meta["generateName"] == "some-"


async def test_long_generate_name_is_cut_to_58_characters(api: Client) -> None:
    """Cp C-27: the server's own cap."""
    body = config()
    body["metadata"] = {"generateName": "x" * 70}
    created = (await api.create(CONFIG, body)).ok()
    assert len(created.meta["name"]) == 63


async def test_second_create_of_a_name_is_already_exists(api: Client) -> None:
    (await api.create(CONFIG, config())).ok()
    again = await api.create(CONFIG, config())
    assert (again.code, again.reason) == (409, "AlreadyExists")
    assert again.body["message"] == 'configmaps "c" already exists'
    assert again.body["details"] == {"name": "c", "kind": "configmaps"}


async def test_missing_object_is_not_found_with_details(api: Client) -> None:
    missing = await api.get(f"{CLAIM}/nope")
    assert (missing.code, missing.reason) == (404, "NotFound")
    assert missing.body["message"] == 'resourceclaims.resource.k8s.io "nope" not found'
    assert missing.body["details"] == {"name": "nope", "group": "resource.k8s.io", "kind": "resourceclaims"}
    assert missing.body["status"] == "Failure"


async def test_create_in_a_missing_namespace_is_not_found(api: Client) -> None:
    refused = await api.create("/api/v1/namespaces/no-such-namespace/configmaps", config())
    assert (refused.code, refused.body["message"]) == (404, 'namespaces "no-such-namespace" not found')


async def test_create_without_a_name_is_invalid(api: Client) -> None:
    body = config()
    body["metadata"] = {}
    refused = await api.create(CONFIG, body)
    assert (refused.code, refused.reason) == (422, "Invalid")
    assert [cause["field"] for cause in refused.causes] == ["metadata.name"]


async def test_create_with_a_bad_name_is_invalid(api: Client) -> None:
    refused = await api.create(CLAIM, claim(name="Not_A_Name"))
    assert (refused.code, refused.reason) == (422, "Invalid")
    assert refused.body["details"]["kind"] == "ResourceClaim"
    assert [(cause["field"], cause["reason"]) for cause in refused.causes] == [
        ("metadata.name", "FieldValueInvalid")
    ]


async def test_create_with_a_resource_version_is_refused(api: Client) -> None:
    """With 500, of all codes."""
    refused = await api.create(CONFIG, config(resourceVersion="1"))
    assert (refused.code, refused.body["message"]) == (
        500,
        "resourceVersion should not be set on objects to be created",
    )


async def test_create_of_another_namespace_is_a_bad_request(api: Client) -> None:
    refused = await api.create(CONFIG, config(namespace="other"))
    assert (refused.code, refused.reason) == (400, "BadRequest")
    assert refused.body["message"] == (
        "the namespace of the provided object does not match the namespace sent on the request"
    )


async def test_create_clears_status(api: Client) -> None:
    """Cp V-3."""
    body = claim()
    body["status"] = {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}
    created = (await api.create(CLAIM, body)).ok()
    assert created.body.get("status", {}) == {}


async def test_dry_run_stores_nothing(api: Client) -> None:
    (await api.create(CONFIG, config(), dryRun="All")).ok()
    assert (await api.get(f"{CONFIG}/c")).code == 404


async def test_replace_with_the_current_version_succeeds_and_bumps_it(api: Client) -> None:
    created = (await api.create(CONFIG, config())).ok()
    created.body["data"] = {"a": "1"}
    replaced = (await api.replace(f"{CONFIG}/c", created.body)).ok()
    assert int(replaced.version) > int(created.version)
    assert replaced.meta["uid"] == created.meta["uid"]


async def test_replace_with_a_stale_version_conflicts(api: Client) -> None:
    created = (await api.create(CONFIG, config())).ok()
    (await api.merge(f"{CONFIG}/c", {"data": {"a": "1"}})).ok()
    created.body["data"] = {"a": "2"}
    refused = await api.replace(f"{CONFIG}/c", created.body)
    assert (refused.code, refused.reason) == (409, "Conflict")
    assert refused.body["message"] == (
        'Operation cannot be fulfilled on configmaps "c": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )


async def test_replace_without_a_version_is_unconditional_for_claims(api: Client) -> None:
    """Cp V-5."""
    (await api.create(CLAIM, claim())).ok()
    (await api.replace(f"{CLAIM}/claim", claim(labels={"a": "b"}))).ok()


async def test_replace_with_another_uid_conflicts(api: Client) -> None:
    created = (await api.create(CONFIG, config())).ok()
    created.body["metadata"]["uid"] = "22222222-2222-2222-2222-222222222222"
    refused = await api.replace(f"{CONFIG}/c", created.body)
    assert (refused.code, refused.reason) == (409, "Conflict")
    assert "Precondition failed: UID in precondition: 22222222" in refused.body["message"]


async def test_replace_under_another_name_is_a_bad_request(api: Client) -> None:
    (await api.create(CONFIG, config())).ok()
    refused = await api.replace(f"{CONFIG}/c", config("d"))
    assert (refused.code, refused.body["message"]) == (
        400,
        "the name of the object (d) does not match the name on the URL (c)",
    )


async def test_replace_of_a_missing_claim_is_not_found(api: Client) -> None:
    """Cp V-4: updates create nothing."""
    assert (await api.replace(f"{CLAIM}/claim", claim())).code == 404


async def test_write_that_changes_nothing_keeps_the_version(api: Client) -> None:
    created = (await api.create(CONFIG, config(data={"a": "1"}))).ok()
    same = (await api.merge(f"{CONFIG}/c", {"data": {"a": "1"}})).ok()
    assert same.version == created.version


async def test_server_fields_of_metadata_cannot_be_changed(api: Client) -> None:
    created = (await api.create(CONFIG, config())).ok()
    changed = dict(created.body, metadata={**created.meta, "creationTimestamp": "2001-01-01T00:00:00Z"})
    replaced = (await api.replace(f"{CONFIG}/c", changed)).ok()
    assert replaced.meta["creationTimestamp"] == created.meta["creationTimestamp"]


async def test_delete_of_a_plain_object_removes_it(api: Client) -> None:
    created = (await api.create(CONFIG, config())).ok()
    deleted = (await api.delete(f"{CONFIG}/c")).ok()
    assert (deleted.body["kind"], deleted.body["status"]) == ("Status", "Success")
    assert deleted.body["details"] == {"name": "c", "kind": "configmaps", "uid": created.meta["uid"]}
    assert (await api.get(f"{CONFIG}/c")).code == 404


async def test_delete_of_a_claim_returns_the_claim(api: Client) -> None:
    created = (await api.create(CLAIM, claim())).ok()
    deleted = (await api.delete(f"{CLAIM}/claim")).ok()
    assert (deleted.body["kind"], deleted.meta["uid"]) == ("ResourceClaim", created.meta["uid"])


async def test_delete_with_a_wrong_uid_conflicts(api: Client) -> None:
    (await api.create(CONFIG, config())).ok()
    wrong = {"preconditions": {"uid": "22222222-2222-2222-2222-222222222222"}}
    refused = await api.delete(f"{CONFIG}/c", wrong)
    assert (refused.code, refused.reason) == (409, "Conflict")
    assert (await api.get(f"{CONFIG}/c")).code == 200


async def test_delete_with_a_stale_version_conflicts(api: Client) -> None:
    (await api.create(CONFIG, config())).ok()
    refused = await api.delete(f"{CONFIG}/c", {"preconditions": {"resourceVersion": "1"}})
    assert (refused.code, refused.reason) == (409, "Conflict")


async def test_finalizer_turns_delete_into_a_mark(api: Client) -> None:
    (await api.create(CLAIM, claim(finalizers=["example.com/hold"]))).ok()
    marked = (await api.delete(f"{CLAIM}/claim")).ok()
    assert "deletionTimestamp" in marked.meta
    assert marked.meta["deletionGracePeriodSeconds"] == 0
    assert (await api.get(f"{CLAIM}/claim")).code == 200


async def test_last_finalizer_removed_ends_the_object(api: Client) -> None:
    """The answer is the object without finalizer in the version that it had: no newer one was ever stored."""
    (await api.create(CLAIM, claim(finalizers=["example.com/hold"]))).ok()
    marked = (await api.delete(f"{CLAIM}/claim")).ok()
    answer = (await api.merge(f"{CLAIM}/claim", {"metadata": {"finalizers": None}})).ok()
    assert (answer.meta.get("finalizers"), answer.meta["resourceVersion"]) == (
        None,
        marked.meta["resourceVersion"],
    )
    assert (await api.get(f"{CLAIM}/claim")).code == 404


async def test_object_being_deleted_gets_no_new_finalizer(api: Client) -> None:
    (await api.create(CLAIM, claim(finalizers=["example.com/hold"]))).ok()
    (await api.delete(f"{CLAIM}/claim")).ok()
    more = {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}
    refused = await api.merge(f"{CLAIM}/claim", more)
    assert (refused.code, refused.reason) == (422, "Invalid")
    assert refused.causes == [
        {
            "reason": "FieldValueForbidden",
            "message": "Forbidden: no new finalizers can be added if the object is being deleted, "
            'found new finalizers []string{"example.com/more"}',
            "field": "metadata.finalizers",
        }
    ]


async def test_finalizer_needs_a_domain(api: Client) -> None:
    refused = await api.create(CLAIM, claim(finalizers=["hold"]))
    assert [(cause["field"], cause["reason"]) for cause in refused.causes] == [
        ("metadata.finalizers[0]", "FieldValueInvalid")
    ]


async def test_second_delete_changes_nothing(api: Client) -> None:
    (await api.create(CLAIM, claim(finalizers=["example.com/hold"]))).ok()
    first = (await api.delete(f"{CLAIM}/claim")).ok()
    second = (await api.delete(f"{CLAIM}/claim")).ok()
    assert second.meta["deletionTimestamp"] == first.meta["deletionTimestamp"]


async def test_unbound_pod_goes_at_once(api: Client) -> None:
    (await api.create(POD, pod())).ok()
    gone = (await api.delete(f"{POD}/p")).ok()
    assert gone.body["kind"] == "Pod"
    assert (await api.get(f"{POD}/p")).code == 404


async def test_bound_pod_keeps_its_grace_period(api: Client) -> None:
    (await api.create(POD, pod(nodeName="n1", terminationGracePeriodSeconds=7))).ok()
    marked = (await api.delete(f"{POD}/p")).ok()
    assert marked.meta["deletionGracePeriodSeconds"] == 7
    assert (await api.get(f"{POD}/p")).code == 200
    (await api.delete(f"{POD}/p", {"gracePeriodSeconds": 0})).ok()
    assert (await api.get(f"{POD}/p")).code == 404


async def test_delete_collection_takes_what_is_selected(api: Client) -> None:
    (await api.create(CONFIG, config("a", labels={"x": "1"}))).ok()
    (await api.create(CONFIG, config("b"))).ok()
    (await api.delete(CONFIG, labelSelector="x=1")).ok()
    assert (await api.get(f"{CONFIG}/a")).code == 404
    assert (await api.get(f"{CONFIG}/b")).code == 200


async def test_unknown_resource_is_404(api: Client) -> None:
    assert (await api.get("/apis/resource.k8s.io/v1/nosuchthings")).code == 404
    assert (await api.get("/apis/no.such.group/v1/things")).code == 404


async def test_body_that_is_no_json_is_a_bad_request(api: Client) -> None:
    refused = await api.call("PATCH", f"{CONFIG}/c", ["no object"], kind="application/merge-patch+json")
    assert refused.code in (400, 404)
