"""What guards a write: uid and resourceVersion, for each kind of patch, on the object and on its status.

The operator's writes are computed from what it saw; each must fail when the object is no longer that one (architecture, section 5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.client import APPLY, CLAIM, JSON, MERGE, POD, STRATEGIC
from tests.contract.objects import allocation, claim, consumer, pod

if TYPE_CHECKING:
    from tests.contract.client import Answer, Client, Obj

OTHER_UID = "22222222-2222-2222-2222-222222222222"
MEDIA = {"merge": MERGE, "strategic": STRATEGIC, "apply": APPLY, "json": JSON}
WHERE = ["", "/status"]
STALE = (
    'Operation cannot be fulfilled on resourceclaims.resource.k8s.io "claim": the object has been modified;'
    " please apply your changes to the latest version and try again"
)


def _body(media: str, where: str, **guard: str) -> Any:
    """A patch that changes something, guarded by what is given."""
    if media == "json":
        steps: list[Obj] = [
            {"op": "replace", "path": f"/metadata/{field}", "value": value} for field, value in guard.items()
        ]
        value: Any = {"allocation": allocation()} if where else {"changed": "yes"}
        return [
            *steps,
            {"op": "add", "path": "/status" if where else "/metadata/annotations", "value": value},
        ]
    metadata: Obj = dict(guard)
    body: Obj = {"metadata": metadata}
    if where:
        body["status"] = {"allocation": allocation()}
    else:
        metadata["annotations"] = {"changed": "yes"}
    if media == "apply":
        metadata["name"] = "claim"
        body |= {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
    return body


async def _patch(api: Client, media: str, where: str, **guard: str) -> Answer:
    query = {"fieldManager": "guard"}
    return await api.call(
        "PATCH", f"{CLAIM}/claim{where}", _body(media, where, **guard), kind=MEDIA[media], **query
    )


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("media", MEDIA)
async def test_current_uid_and_version_pass(api: Client, media: str, where: str) -> None:
    made = (await api.create(CLAIM, claim())).ok()
    written = (await _patch(api, media, where, uid=made.meta["uid"], resourceVersion=made.version)).ok()
    assert int(written.version) > int(made.version)


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("media", MEDIA)
async def test_patch_without_a_guard_is_unconditional(api: Client, media: str, where: str) -> None:
    """Cp V-5: whoever decides must send a version."""
    (await api.create(CLAIM, claim())).ok()
    (await _patch(api, media, where)).ok()


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("media", MEDIA)
async def test_stale_version_conflicts(api: Client, media: str, where: str) -> None:
    made = (await api.create(CLAIM, claim())).ok()
    (await api.merge(f"{CLAIM}/claim", {"metadata": {"labels": {"a": "b"}}})).ok()
    refused = await _patch(api, media, where, resourceVersion=made.version)
    assert (refused.code, refused.reason, refused.body["message"]) == (409, "Conflict", STALE)
    assert refused.body["details"] == {"name": "claim", "group": "resource.k8s.io", "kind": "resourceclaims"}


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("media", MEDIA)
async def test_current_uid_does_not_heal_a_stale_version(api: Client, media: str, where: str) -> None:
    made = (await api.create(CLAIM, claim())).ok()
    (await api.merge(f"{CLAIM}/claim", {"metadata": {"labels": {"a": "b"}}})).ok()
    refused = await _patch(api, media, where, uid=made.meta["uid"], resourceVersion=made.version)
    assert (refused.code, refused.reason) == (409, "Conflict")


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("media", MEDIA)
async def test_uid_and_version_of_a_predecessor_conflict(api: Client, media: str, where: str) -> None:
    first = (await api.create(CLAIM, claim())).ok()
    (await api.delete(f"{CLAIM}/claim")).ok()
    (await api.create(CLAIM, claim())).ok()
    refused = await _patch(api, media, where, uid=first.meta["uid"], resourceVersion=first.version)
    assert (refused.code, refused.reason) == (409, "Conflict")


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("media", MEDIA)
async def test_another_uid_alone_is_invalid_and_says_so(api: Client, media: str, where: str) -> None:
    """The operator reads this text (`kube.failures.OTHER_OBJECT`): it is a conflict under another name."""
    made = (await api.create(CLAIM, claim())).ok()
    refused = await _patch(api, media, where, uid=OTHER_UID)
    assert (refused.code, refused.reason) == (422, "Invalid")
    assert refused.causes == [
        {
            "reason": "FieldValueInvalid",
            "message": f'Invalid value: "{OTHER_UID}": field is immutable',
            "field": "metadata.uid",
        }
    ]
    assert "metadata.uid: Invalid value" in refused.body["message"]
    assert (await api.get(f"{CLAIM}/claim")).version == made.version


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("media", MEDIA)
async def test_another_uid_with_the_current_version_is_invalid(api: Client, media: str, where: str) -> None:
    made = (await api.create(CLAIM, claim())).ok()
    refused = await _patch(api, media, where, uid=OTHER_UID, resourceVersion=made.version)
    assert (refused.code, refused.reason) == (422, "Invalid")


@pytest.mark.parametrize("media", ["merge", "strategic", "json"])
async def test_patch_of_a_missing_object_is_not_found(api: Client, media: str) -> None:
    refused = await _patch(api, media, "")
    assert (refused.code, refused.reason) == (404, "NotFound")
    assert refused.body["message"] == 'resourceclaims.resource.k8s.io "claim" not found'


async def test_apply_with_a_uid_never_creates(api: Client) -> None:
    """Cp C-42: a pod that is gone is not made again by the status of its claims."""
    refused = await _patch(api, "apply", "", uid=OTHER_UID)
    assert (refused.code, refused.reason) == (409, "Conflict")
    assert refused.body["message"] == (
        'Operation cannot be fulfilled on resourceclaims.resource.k8s.io "claim":'
        f" uid mismatch: the provided object specified uid {OTHER_UID}, and no existing object was found"
    )
    assert (await api.get(f"{CLAIM}/claim")).code == 404


async def test_apply_with_a_version_creates_all_the_same(api: Client) -> None:
    """Only the uid keeps an apply from making an object anew: a version is no guard against that."""
    made = await _patch(api, "apply", "", resourceVersion="1")
    assert made.code == 201


async def test_patch_that_changes_nothing_keeps_the_version(api: Client) -> None:
    made = (await api.create(CLAIM, claim(annotations={"changed": "yes"}))).ok()
    for media in ("merge", "strategic", "json"):
        assert (await _patch(api, media, "")).ok().version == made.version


async def test_replace_of_the_status_with_a_stale_version_conflicts(api: Client) -> None:
    made = (await api.create(CLAIM, claim())).ok()
    (await api.merge(f"{CLAIM}/claim", {"metadata": {"labels": {"a": "b"}}})).ok()
    made.body["status"] = {"allocation": allocation()}
    refused = await api.replace(f"{CLAIM}/claim/status", made.body)
    assert (refused.code, refused.body["message"]) == (409, STALE)


async def test_second_of_two_writers_conflicts_and_changes_nothing(api: Client) -> None:
    """Two allocators on one claim: the first status write wins, the second is told so (cp V-53)."""
    made = (await api.create(CLAIM, claim())).ok()
    guard = {"uid": made.meta["uid"], "resourceVersion": made.version}
    first = {"allocation": allocation("gpu-0"), "reservedFor": [consumer()]}
    second = {"allocation": allocation("gpu-1"), "reservedFor": [consumer("q", OTHER_UID)]}
    (await api.merge(f"{CLAIM}/claim/status", {"metadata": guard, "status": first})).ok()
    refused = await api.merge(f"{CLAIM}/claim/status", {"metadata": guard, "status": second})
    assert (refused.code, refused.reason) == (409, "Conflict")
    kept = (await api.get(f"{CLAIM}/claim")).body["status"]
    assert kept["allocation"]["devices"]["results"][0]["device"] == "gpu-0"
    assert kept["reservedFor"] == [consumer()]


async def test_stale_pod_is_neither_pinned_nor_released(api: Client) -> None:
    """The patch that releases a pod names the version that was looked at."""
    made = (await api.create(POD, pod(gates=("dra-operator.io/allocate",)))).ok()
    (await api.merge(f"{POD}/p", {"metadata": {"labels": {"a": "b"}}})).ok()
    guard = {"uid": made.meta["uid"], "resourceVersion": made.version}
    gate = {"name": "dra-operator.io/allocate", "$patch": "delete"}
    patch = {"metadata": guard, "spec": {"schedulingGates": [gate]}}
    refused = await api.strategic(f"{POD}/p", patch)
    assert (refused.code, refused.reason) == (409, "Conflict")
    assert (await api.get(f"{POD}/p")).body["spec"]["schedulingGates"] == [
        {"name": "dra-operator.io/allocate"}
    ]


async def test_delete_takes_the_one_with_that_uid_and_version(api: Client) -> None:
    made = (await api.create(CLAIM, claim())).ok()
    guard = {"uid": made.meta["uid"], "resourceVersion": made.version}
    (await api.delete(f"{CLAIM}/claim", {"preconditions": guard})).ok()
    assert (await api.get(f"{CLAIM}/claim")).code == 404


async def test_delete_of_a_predecessor_tells_which_uid_is_there(api: Client) -> None:
    made = (await api.create(CLAIM, claim())).ok()
    refused = await api.delete(f"{CLAIM}/claim", {"preconditions": {"uid": OTHER_UID}})
    assert (refused.code, refused.reason) == (409, "Conflict")
    assert refused.body["message"] == (
        'Operation cannot be fulfilled on ResourceClaim.resource.k8s.io "claim": the UID in the precondition'
        f" ({OTHER_UID}) does not match the UID in record ({made.meta['uid']})."
        " The object might have been deleted and then recreated"
    )


async def test_delete_of_a_missing_object_is_not_found(api: Client) -> None:
    refused = await api.delete(f"{CLAIM}/claim", {"preconditions": {"uid": OTHER_UID}})
    assert (refused.code, refused.reason) == (404, "NotFound")
