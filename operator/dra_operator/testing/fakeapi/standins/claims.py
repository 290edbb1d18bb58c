"""Stand-in for kube-controller-manager's claim controller: generates claims from templates, releases them.

Rules: cp C-10 to C-45 (generate and record), C-61 to C-65 and C-69 (release), C-50 (reserve for pods that are bound). Off by
default, and off in the demo, where the operator does this itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi.failures import StatusError
from dra_operator.testing.fakeapi.objects import Key, Obj, Resource, controller_of, copied, dicts, dig, meta
from dra_operator.testing.fakeapi.options import DeleteOptions, WriteOptions
from dra_operator.testing.fakeapi.standins.base import StandIn
from dra_operator.testing.fakeapi.standins.events import warn
from dra_operator.testing.fakeapi.standins.index import claims_by_owner, pods_by_claim, pods_by_template
from dra_operator.testing.fakeapi.standins.resources import (
    CLAIMS,
    FINALIZER,
    POD_CLAIM_NAME,
    PODS,
    TEMPLATES,
    claim_name,
    consumer_of,
    done,
    owned_by,
    pod_claims,
    reserved_for,
)

if TYPE_CHECKING:
    from dra_operator.testing.fakeapi.machinery import Machinery
    from dra_operator.testing.fakeapi.store import Change, Record

_BASE_LIMIT = 57


def generate_name(pod: str, claim: str) -> str:
    """The generateName of a claim (cp C-27)."""
    base = f"{pod}-{claim}-"
    if len(base) <= _BASE_LIMIT:
        return base
    length = len(base)
    return f"{pod[: len(pod) * _BASE_LIMIT // length]}-{claim[: len(claim) * _BASE_LIMIT // length]}"


class Claims(StandIn):
    """Generates, records, reserves for bound pods, releases."""

    name = "ResourceClaimController"
    watches = (PODS, CLAIMS, TEMPLATES)

    def __init__(self, machinery: Machinery) -> None:
        super().__init__(machinery)
        self._pods = pods_by_claim(self.store)
        self._pods_of_template = pods_by_template(self.store)
        self._claims = claims_by_owner(self.store)

    def changed(self, resource: Resource, change: Change) -> None:
        """Touch the object, and what hangs on it."""
        obj = change.record.obj
        namespace, name = meta(obj).get("namespace", ""), meta(obj)["name"]
        if resource == TEMPLATES:
            self._touch_pods(self._pods_of_template.keys(namespace, name))
            return
        self.touch(resource, (namespace, name))
        if resource == CLAIMS:
            self._touch_pods(self._pods.keys(namespace, name))
            return
        for entry in pod_claims(obj):
            claim, _known = claim_name(obj, entry)
            if claim:
                self.touch(CLAIMS, (namespace, claim))

    def _touch_pods(self, keys: list[Key]) -> None:
        for key in keys:
            self.touch(PODS, key)

    def look(self, resource: Resource, key: Key) -> None:
        """Sync one pod or one claim."""
        record = self.store.get(resource, key)
        if record is None:
            return
        if resource == CLAIMS:
            self._release(record.obj, key)
        elif "deletionTimestamp" not in meta(record.obj) and not done(record.obj):
            self._serve(record, key)

    # --- pods

    def _serve(self, record: Record, key: Key) -> None:
        statuses: list[Obj] = []
        for entry in pod_claims(record.obj):
            if not entry.get("resourceClaimTemplateName"):
                continue
            try:
                statuses.append(
                    {"name": entry["name"], "resourceClaimName": self._claim_for(record.obj, entry)}
                )
            except StatusError as error:
                text = f"PodResourceClaim {entry['name']}: {error.message}"
                warn(self.machinery, record.obj, "FailedResourceClaimCreation", text, "resource_claim")
                return
        self._record(record, key, statuses)
        if dig(record.obj, "spec", "nodeName"):
            self._reserve(record.obj)

    def _claim_for(self, pod: Obj, entry: Obj) -> str | None:
        namespace = meta(pod)["namespace"]
        name, known = claim_name(pod, entry)
        if known and name is None:
            return None
        claim = self.store.get(CLAIMS, (namespace, name)) if name else None
        if claim is not None and owned_by(claim.obj, pod):
            return name
        for key in self._claims.keys(meta(pod)["uid"]):
            own = self.store.get(CLAIMS, key)
            if own and (meta(own.obj).get("annotations") or {}).get(POD_CLAIM_NAME) == entry["name"]:
                return key[1]
        return self._generate(pod, entry)

    def _generate(self, pod: Obj, entry: Obj) -> str:
        namespace, template_name = meta(pod)["namespace"], entry["resourceClaimTemplateName"]
        template = self.machinery.get(self.machinery.kinds.stored(TEMPLATES), (namespace, template_name)).obj
        inner = dig(template, "spec", "metadata") or {}
        owner = {"apiVersion": "v1", "kind": "Pod", "name": meta(pod)["name"], "uid": meta(pod)["uid"]}
        claim: Obj = {
            "metadata": {
                "generateName": generate_name(meta(pod)["name"], entry["name"]),
                "labels": dict(inner.get("labels") or {}),
                "annotations": {**(inner.get("annotations") or {}), POD_CLAIM_NAME: entry["name"]},
                "ownerReferences": [{**owner, "controller": True}],
            },
            "spec": copied(template["spec"]["spec"]),
        }
        kind = self.machinery.kinds.stored(CLAIMS)
        return str(self.machinery.create(kind, namespace, claim, self.options).obj["metadata"]["name"])

    def _record(self, record: Record, key: Key, statuses: list[Obj]) -> None:
        if not statuses or statuses == dig(record.obj, "status", "resourceClaimStatuses"):
            return
        pod = copied(record.obj)
        pod.setdefault("status", {})["resourceClaimStatuses"] = statuses
        options = WriteOptions(self.name, "status")
        self.machinery.update(self.machinery.kinds.stored(PODS), key, pod, options)

    def _reserve(self, pod: Obj) -> None:
        for entry in pod_claims(pod):
            name, _known = claim_name(pod, entry)
            claim = self.store.get(CLAIMS, (meta(pod)["namespace"], name)) if name else None
            if (
                claim is None
                or dig(claim.obj, "status", "allocation") is None
                or reserved_for(claim.obj, pod)
            ):
                continue
            reserved = [*(dig(claim.obj, "status", "reservedFor") or ()), consumer_of(pod)]
            self._write_status(claim.obj, reserved, keep=True)

    # --- claims

    def _release(self, claim: Obj, key: Key) -> None:
        consumers = list(dicts(dig(claim, "status", "reservedFor")))
        remaining = [consumer for consumer in consumers if self._keeps(consumer, key[0])]
        protected = FINALIZER in (meta(claim).get("finalizers") or ())
        if len(remaining) != len(consumers):
            claim = self._write_status(claim, remaining, keep=bool(remaining) or not protected)
        elif (
            "deletionTimestamp" in meta(claim)
            and not consumers
            and dig(claim, "status", "allocation")
            and protected
        ):
            claim = self._write_status(claim, [], keep=False)
        elif not (protected and "deletionTimestamp" in meta(claim) and not consumers):
            self._drop_if_done(claim, key, remaining)
            return
        if protected and not remaining and dig(claim, "status", "allocation") is None:
            self._unprotect(claim, key)
        self._drop_if_done(claim, key, remaining)

    def _keeps(self, consumer: Obj, namespace: str) -> bool:
        if consumer.get("apiGroup") or consumer.get("resource") != "pods":
            return True
        pod = self.store.get(PODS, (namespace, consumer["name"]))
        return pod is not None and pod.uid == consumer["uid"] and not done(pod.obj)

    def _write_status(self, claim: Obj, reserved: list[Obj], *, keep: bool) -> Obj:
        new = copied(claim)
        status = new.setdefault("status", {})
        status["reservedFor"] = reserved
        if not reserved:
            del status["reservedFor"]
        if not keep:
            status.pop("allocation", None)
        key = (meta(claim)["namespace"], meta(claim)["name"])
        options = WriteOptions(self.name, "status")
        return self.machinery.update(self.machinery.kinds.stored(CLAIMS), key, new, options).obj

    def _unprotect(self, claim: Obj, key: Key) -> None:
        new = copied(claim)
        new["metadata"]["finalizers"] = [name for name in new["metadata"]["finalizers"] if name != FINALIZER]
        self.machinery.update(self.machinery.kinds.stored(CLAIMS), key, new, self.options)

    def _drop_if_done(self, claim: Obj, key: Key, remaining: list[Obj]) -> None:
        """Delete a generated claim whose pod is done or was replaced (cp C-65)."""
        owner = controller_of(claim)
        live = self.store.get(CLAIMS, key)
        if remaining or owner is None or owner.get("kind") != "Pod" or live is None:
            return
        pod = self.store.get(PODS, (key[0], owner["name"]))
        if pod is None or "deletionTimestamp" in meta(live.obj):
            return
        if pod.uid != owner["uid"] or done(pod.obj):
            options = DeleteOptions(uid=live.uid)
            self.machinery.delete(self.machinery.kinds.stored(CLAIMS), key, options)
