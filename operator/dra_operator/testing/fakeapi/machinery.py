"""Create, update, patch, apply and delete: the rules that hold for all kinds.

Called by `http`, by the stand-ins and by tests in the same process. Every write passes here, so that whoever writes is held to
the same conflicts, defaults, validation, isolation of subresources and finalizers. It does no I/O; time comes from a clock.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from dra_operator.testing.fakeapi import failures
from dra_operator.testing.fakeapi.apply import applied, check_entries
from dra_operator.testing.fakeapi.bodies import (
    check_configuration,
    check_declared,
    check_name,
    check_type,
    managers_so_far,
    payload,
    raise_invalid,
    same,
    set_namespace,
    typed,
    undecodable_patch,
    update_causes,
    without_status,
)
from dra_operator.testing.fakeapi.conversion import presented, to_storage
from dra_operator.testing.fakeapi.deletion import marked_for_deletion, may_go
from dra_operator.testing.fakeapi.granular import missing_rights
from dra_operator.testing.fakeapi.kinds import Kind, Kinds
from dra_operator.testing.fakeapi.managers import Manager, updated
from dra_operator.testing.fakeapi.naming import generated
from dra_operator.testing.fakeapi.objects import (
    Clock,
    Key,
    Obj,
    encoded,
    meta,
    timestamp,
    utc_now,
    with_metadata,
)
from dra_operator.testing.fakeapi.options import DeleteOptions, WriteOptions
from dra_operator.testing.fakeapi.patches import APPLY, patched
from dra_operator.testing.fakeapi.rules.claimstatus import drop_freed_devices
from dra_operator.testing.fakeapi.rules.devices import renew_rule
from dra_operator.testing.fakeapi.rules.metadata import check_metadata
from dra_operator.testing.fakeapi.rules.others import UNDELETABLE
from dra_operator.testing.fakeapi.store import Record, Store
from dra_operator.testing.fakeapi.strategies import strategy_of
from dra_operator.testing.fakeapi.tidy import tidied
from dra_operator.validation.causes import Cause
from dra_operator.validation.checks import immutable

Admission = Callable[[Kind, Obj], None]
"""Changes a new object in place before it is validated."""

_SERVER_FIELDS = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
_DEFAULT_WRITE = WriteOptions()
_DEFAULT_DELETE = DeleteOptions()


class Machinery:
    """The writing half of the server, over one store and one registry of kinds."""

    def __init__(self, store: Store, kinds: Kinds, clock: Clock = utc_now) -> None:
        self.store = store
        self.kinds = kinds
        self.clock = clock
        self.admission: list[Admission] = []

    # --- reading one object

    def get(self, kind: Kind, key: Key) -> Record:
        """The current version of an object.

        Raises:
            StatusError: 404.
        """
        found = self.store.get(kind.resource, key)
        if found is None:
            raise failures.not_found(kind.plural_about(key[1]))
        return presented(kind, found)

    # --- create

    def create(self, kind: Kind, namespace: str, body: Obj, options: WriteOptions = _DEFAULT_WRITE) -> Record:
        """Store a new object.

        Raises:
            StatusError: 400, 403, 404 (namespace), 409 (the name is taken), 422.
        """
        obj = self._new(kind, namespace, body, options)
        return self._insert(kind, obj, options)

    def _new(self, kind: Kind, namespace: str, body: Obj, options: WriteOptions) -> Obj:
        check_type(kind, body)
        if meta(body).get("resourceVersion"):
            raise failures.StatusError(500, "", "resourceVersion should not be set on objects to be created")
        obj = tidied(kind, typed(kind, body, options))
        metadata = obj["metadata"] = dict(obj.get("metadata") or {})
        for field in (*_SERVER_FIELDS, "managedFields", "resourceVersion", "selfLink"):
            metadata.pop(field, None)
        set_namespace(kind, metadata, namespace)
        if not metadata.get("name") and metadata.get("generateName"):
            where = metadata.get("namespace", "")
            metadata["name"] = generated(
                metadata["generateName"],
                lambda name: self.store.get(kind.resource, (where, name)) is not None,
            )
        return obj

    def _insert(self, kind: Kind, obj: Obj, options: WriteOptions) -> Record:
        strategy, now = strategy_of(kind), self.clock()
        metadata = obj["metadata"]
        name = metadata.get("name") or ""
        self._require_namespace(kind, metadata.get("namespace") or "", name)
        metadata["uid"] = str(uuid.uuid4())
        metadata["creationTimestamp"] = timestamp(now)
        if kind.generation or kind.custom:
            metadata["generation"] = 1
        if kind.status and not kind.keeps_status_on_create:
            obj.pop("status", None)
        if kind.shows_empty_status:
            obj["status"] = {}
        for admit in self.admission:
            admit(kind, obj)
        strategy.on_create(obj, now)
        strategy.on_write(obj, now)
        raise_invalid(kind, name, [*check_metadata(kind, obj), *strategy.check_create(obj)])
        if self.store.get(kind.resource, (metadata.get("namespace") or "", name)) is not None:
            raise failures.already_exists(kind.plural_about(name))
        if not metadata.get("managedFields"):
            obj = updated(kind, None, obj, Manager(options.manager), timestamp(now))
        return self._stored(kind, obj, options)

    def _require_namespace(self, kind: Kind, namespace: str, name: str) -> None:
        if not kind.namespaced:
            return
        found = self.store.get(("", "namespaces"), ("", namespace))
        if found is None:
            raise failures.not_found(failures.About("", "namespaces", namespace))
        if "deletionTimestamp" in meta(found.obj):
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            cause = Cause(
                "metadata.namespace", "NamespaceTerminating", f"namespace {namespace} is being terminated"
            )
            raise failures.forbidden(kind.plural_about(name), why, cause)

    # --- update

    def update(self, kind: Kind, key: Key, body: Obj, options: WriteOptions = _DEFAULT_WRITE) -> Record:
        """Replace an object, or its status with `options.subresource`.

        Raises:
            StatusError: 400, 404, 409 (stale resourceVersion, other uid), 422.
        """
        check_type(kind, body)
        live = self.get(kind, key)
        check_name(key[1], body)
        if strategy_of(kind).needs_version and not meta(body).get("resourceVersion"):
            text = "Invalid value: 0: must be specified for an update"
            cause = Cause("metadata.resourceVersion", "FieldValueInvalid", text)
            raise failures.invalid(kind.plural_about(key[1]), [cause])
        uid = meta(body).get("uid")
        if uid and uid != live.uid:
            raise failures.storage_precondition(kind.plural_about(key[1]), key[0], "UID", uid, live.uid)
        return self._replace(kind, live, body, options)

    def _replace(
        self, kind: Kind, live: Record, body: Obj, options: WriteOptions, *, owned: bool = False
    ) -> Record:
        """Store `body` in place of `live`; with `owned` its managedFields are already right."""
        self._check_identity(kind, live, body)
        body = tidied(kind, typed(kind, body, options))
        new = self._carried_over(kind, live.obj, body, options.subresource)
        self._default_update(kind, new, live.obj)
        causes = update_causes(kind, new, live.obj, options.subresource)
        if kind.kind == "ResourceClaim" and options.subresource and options.asker is not None:
            causes = missing_rights(new, live.obj, options.verb, options.asker) or causes
        raise_invalid(kind, live.obj["metadata"]["name"], causes)
        if not owned:
            new = with_metadata(new, managedFields=managers_so_far(new, live.obj))
        if same(new, live.obj):
            return live
        if (kind.generation or kind.custom) and payload(new) != payload(live.obj):
            new = with_metadata(new, generation=meta(live.obj).get("generation", 0) + 1)
        if not owned:
            manager = Manager(options.manager, subresource=options.subresource)
            new = updated(kind, live.obj, new, manager, timestamp(self.clock()))
        if may_go(kind, new):
            self._removed(kind, live, options, last=new)
            # No newer version was ever stored, and the answer says so; the watch event has one.
            last = with_metadata(new, resourceVersion=str(live.version))
            return Record(last, encoded(last), live.version)
        return self._stored(kind, new, options)

    def _check_identity(self, kind: Kind, live: Record, body: Obj) -> None:
        name = live.obj["metadata"]["name"]
        uid, version = meta(body).get("uid"), meta(body).get("resourceVersion")
        if version and version != str(live.version):
            raise failures.stale(kind.plural_about(name))
        if uid and uid != live.uid:
            raise failures.invalid(kind.kind_about(name), [immutable("metadata.uid", uid)])

    def _carried_over(self, kind: Kind, live: Obj, body: Obj, subresource: str) -> Obj:
        """`body` with everything that this write may not change taken from `live` (cp V-3)."""
        if subresource == "status":
            metadata = (
                live["metadata"] if strategy_of(kind).status_keeps_metadata else body.get("metadata") or {}
            )
            new = {**live, "metadata": metadata, "status": body.get("status")}
        else:
            new = {**body, "status": live.get("status")} if kind.status else body
        if new.get("status") is None:
            new = {**new, "status": {}} if kind.shows_empty_status else without_status(new)
        fixed = {
            field: live["metadata"].get(field)
            for field in (*_SERVER_FIELDS, "name", "namespace", "generateName")
        }
        new = with_metadata(new, **fixed, managedFields=meta(body).get("managedFields"))
        if kind.kind == "ResourceClaim" and subresource == "status":
            new = drop_freed_devices(new, live)
        return new

    def _default_update(self, kind: Kind, new: Obj, live: Obj) -> None:
        now = self.clock()
        strategy_of(kind).on_write(new, now)
        if kind.kind == "DeviceTaintRule":
            renew_rule(new, live, now)

    # --- patch and apply

    def patch(
        self, kind: Kind, key: Key, media_type: str, patch: Any, options: WriteOptions
    ) -> tuple[Record, bool]:
        """Patch an object; apply may create it. Returns the result and whether it was created.

        Raises:
            StatusError: 400, 404, 409, 415, 422.
        """
        if media_type == APPLY:
            return self._apply(kind, key, patch, options)
        live = self.get(kind, key)
        new = patched(kind, live.obj, media_type, patch)
        check_type(kind, new)
        check_name(key[1], new)
        try:
            new = typed(kind, new, options)
        except failures.StatusError as error:
            raise undecodable_patch(error, patch) from None
        return self._replace(kind, live, new, options), False

    def _apply(self, kind: Kind, key: Key, config: Any, options: WriteOptions) -> tuple[Record, bool]:
        check_configuration(kind, key[1], config)
        check_declared(kind, config)
        check_entries(kind, config)
        live = self.get(kind, key) if self.store.get(kind.resource, key) else None
        manager = Manager(options.manager, "Apply", options.subresource)
        now = timestamp(self.clock())
        if live is not None:
            self._check_identity(kind, live, config)
            config = with_metadata(config, uid=None, resourceVersion=None)
            result = applied(kind, live.obj, config, manager, force=options.force, time=now)
            return self._replace(kind, live, result, options, owned=True), False
        if options.subresource:
            raise failures.not_found(kind.plural_about(key[1]))
        if meta(config).get("uid"):
            uid = meta(config)["uid"]
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise failures.conflict(kind.plural_about(key[1]), why)
        if options.creating is not None:
            options.creating()
        body = self._new(kind, key[0], with_metadata(config, resourceVersion=None), options)
        return self._insert(kind, applied(kind, None, body, manager, force=True, time=now), options), True

    # --- delete

    def delete(self, kind: Kind, key: Key, options: DeleteOptions = _DEFAULT_DELETE) -> tuple[Record, bool]:
        """Delete an object, or mark it as being deleted. Returns its last state and whether it is gone.

        Raises:
            StatusError: 404, 409 (preconditions).
        """
        live = self.get(kind, key)
        if kind.kind == "Namespace" and key[1] in UNDELETABLE:
            raise failures.forbidden(kind.plural_about(key[1]), "this namespace may not be deleted")
        about = kind.kind_about(key[1])
        if options.uid and options.uid != live.uid:
            raise failures.deletion_precondition(about, "UID", options.uid, live.uid)
        if options.resource_version and options.resource_version != str(live.version):
            raise failures.deletion_precondition(
                about, "ResourceVersion", options.resource_version, str(live.version)
            )
        marked = marked_for_deletion(kind, live.obj, options, self.clock())
        write = WriteOptions(dry_run=options.dry_run)
        if may_go(kind, marked):
            return self._removed(kind, live, write), True
        if same(marked, live.obj):
            return live, False
        return self._stored(kind, marked, write), False

    # --- storing

    def finish(self, kind: Kind, key: Key) -> None:
        """Remove an object whatever its finalizers say: the end of namespaces and custom definitions."""
        if self.store.get(kind.resource, key) is not None:
            self.store.remove(kind.resource, key)

    def _stored(self, kind: Kind, obj: Obj, options: WriteOptions) -> Record:
        obj = to_storage(kind, obj, self.kinds.stored(kind.resource))
        if options.dry_run:
            return Record(obj, encoded(obj), self.store.version)
        return self.store.put(kind.resource, obj)

    def _removed(self, kind: Kind, live: Record, options: WriteOptions, last: Obj | None = None) -> Record:
        if options.dry_run:
            return live
        key = (live.obj["metadata"].get("namespace") or "", live.obj["metadata"]["name"])
        return self.store.remove(kind.resource, key, last)
