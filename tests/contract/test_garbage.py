"""Owners and dependents, namespaces and their content."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.contract.client import CLAIM, CONFIG, POD
from tests.contract.objects import claim, config, pod

if TYPE_CHECKING:
    from tests.contract.client import Answer, Client, Obj


def _owner(answer: Answer, **more: bool) -> Obj:
    body = answer.body
    return {
        "apiVersion": body["apiVersion"],
        "kind": body["kind"],
        "name": answer.meta["name"],
        "uid": answer.meta["uid"],
        **more,
    }


async def _gone(api: Client, path: str) -> None:
    """Wait until the object is gone: collection is asynchronous, and by another process on a real cluster."""
    async with asyncio.timeout(30):
        while (await api.get(path)).code != 404:  # noqa: ASYNC110 - no event of ours to wait for
            await asyncio.sleep(0.05)


async def test_generated_claim_follows_its_pod(api: Client) -> None:
    owner = (await api.create(POD, pod())).ok()
    (await api.create(CLAIM, claim(ownerReferences=[_owner(owner, controller=True)]))).ok()
    (await api.delete(f"{POD}/p")).ok()
    await _gone(api, f"{CLAIM}/claim")


async def test_protected_claim_of_a_gone_pod_is_only_marked(api: Client) -> None:
    """Real control plane 6d: the device stays taken until somebody removes the finalizer."""
    owner = (await api.create(POD, pod())).ok()
    owners = [_owner(owner, controller=True)]
    created = (await api.create(CLAIM, claim(ownerReferences=owners, finalizers=["example.com/hold"]))).ok()
    watch = await api.watch(CLAIM, resourceVersion=created.version)
    (await api.delete(f"{POD}/p")).ok()
    event = await watch.next()
    assert event["type"] == "MODIFIED"
    assert "deletionTimestamp" in event["object"]["metadata"]
    (await api.merge(f"{CLAIM}/claim", {"metadata": {"finalizers": None}})).ok()
    assert (await api.get(f"{CLAIM}/claim")).code == 404


async def test_object_whose_owner_never_existed_is_collected(api: Client) -> None:
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "ghost",
        "uid": "22222222-2222-2222-2222-222222222222",
    }
    (await api.create(CONFIG, config(ownerReferences=[owner]))).ok()
    await _gone(api, f"{CONFIG}/c")


async def test_object_lives_as_long_as_one_owner_does(api: Client) -> None:
    first = (await api.create(CONFIG, config("first"))).ok()
    second = (await api.create(CONFIG, config("second"))).ok()
    owners = [_owner(first), _owner(second)]
    created = (await api.create(CONFIG, config("c", ownerReferences=owners))).ok()
    watch = await api.watch(CONFIG, resourceVersion=created.version, fieldSelector="metadata.name=c")
    (await api.delete(f"{CONFIG}/first")).ok()
    event = await watch.next()
    assert event["type"] == "MODIFIED"
    assert [owner["name"] for owner in event["object"]["metadata"]["ownerReferences"]] == ["second"]
    (await api.delete(f"{CONFIG}/second")).ok()
    await _gone(api, f"{CONFIG}/c")


async def test_orphaned_dependents_lose_their_owner_and_stay(api: Client) -> None:
    owner = (await api.create(CONFIG, config("owner"))).ok()
    created = (await api.create(CONFIG, config("c", ownerReferences=[_owner(owner)]))).ok()
    watch = await api.watch(CONFIG, resourceVersion=created.version, fieldSelector="metadata.name=c")
    (await api.delete(f"{CONFIG}/owner", {"propagationPolicy": "Orphan"})).ok()
    event = await watch.next()
    assert not event["object"]["metadata"].get("ownerReferences")
    await _gone(api, f"{CONFIG}/owner")
    assert (await api.get(f"{CONFIG}/c")).code == 200


async def test_foreground_deletion_takes_dependents_first(api: Client) -> None:
    owner = (await api.create(CONFIG, config("owner"))).ok()
    blocking = [_owner(owner, blockOwnerDeletion=True)]
    (await api.create(CONFIG, config("c", ownerReferences=blocking, finalizers=["example.com/hold"]))).ok()
    marked = (await api.delete(f"{CONFIG}/owner", {"propagationPolicy": "Foreground"})).ok()
    assert marked.meta["finalizers"] == ["foregroundDeletion"]
    async with asyncio.timeout(30):
        while "deletionTimestamp" not in (await api.get(f"{CONFIG}/c")).meta:  # noqa: ASYNC110 - as in _gone
            await asyncio.sleep(0.05)
    assert (await api.get(f"{CONFIG}/owner")).code == 200
    (await api.merge(f"{CONFIG}/c", {"metadata": {"finalizers": None}})).ok()
    await _gone(api, f"{CONFIG}/owner")


async def test_deleted_namespace_takes_its_content_along(api: Client) -> None:
    name = f"{api.ns}-b"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    created = (await api.create("/api/v1/namespaces", body)).ok()
    assert created.meta["labels"] == {"kubernetes.io/metadata.name": name}
    path = f"/api/v1/namespaces/{name}/configmaps"
    (await api.create(path, config(finalizers=["example.com/hold"]))).ok()
    (await api.delete(f"/api/v1/namespaces/{name}")).ok()
    refused = await api.create(path, config("late"))
    assert (refused.code, refused.reason) == (403, "Forbidden")
    assert "because it is being terminated" in refused.body["message"]
    async with asyncio.timeout(30):
        while "deletionTimestamp" not in (await api.get(f"{path}/c")).meta:  # noqa: ASYNC110 - as in _gone
            await asyncio.sleep(0.05)
    assert (await api.get(f"/api/v1/namespaces/{name}")).body["status"]["phase"] == "Terminating"
    (await api.merge(f"{path}/c", {"metadata": {"finalizers": None}})).ok()
    await _gone(api, f"/api/v1/namespaces/{name}")
