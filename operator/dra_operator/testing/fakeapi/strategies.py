"""Which kind has which defaults and validation: one table, looked up by `machinery` for every write.

Kinds without a row take anything. Custom kinds get theirs from their schema (`schemas`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from dra_operator.testing.fakeapi import schemarules, schemas
from dra_operator.testing.fakeapi.kinds import DRA, STORAGE, Kind
from dra_operator.testing.fakeapi.objects import Obj, dicts, dig
from dra_operator.testing.fakeapi.rules import (
    claimstatus,
    devices,
    events,
    others,
    poddefaults,
    podgroups,
    pods,
    volumes,
)
from dra_operator.validation import claims, classes, slices
from dra_operator.validation.causes import Cause

Defaults = Callable[[Obj, datetime], None]
Check = Callable[[Obj], list[Cause]]
Compare = Callable[[Obj, Obj], list[Cause]]


def _no_defaults(_obj: Obj, _now: datetime) -> None:
    return


def _no_check(_obj: Obj) -> list[Cause]:
    return []


def _no_compare(_new: Obj, _old: Obj) -> list[Cause]:
    return []


@dataclass(frozen=True, slots=True)
class Strategy:
    """What is special about writing one kind. Defaults work in place, on objects that belong to the writer."""

    on_create: Defaults = _no_defaults
    on_write: Defaults = _no_defaults
    check_create: Check = _no_check
    check_update: Compare = _no_compare
    check_status: Compare = _no_compare
    status_keeps_metadata: bool = True
    needs_version: bool = False


def _default_claim(obj: Obj, _now: datetime) -> None:
    claims.default_claim_spec(obj.setdefault("spec", {}))
    for result in dicts(dig(obj, "status", "allocation", "devices", "results")):
        claims.default_tolerations(result)


def _default_template(obj: Obj, _now: datetime) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("metadata", {})
    claims.default_claim_spec(spec.setdefault("spec", {}))


def _default_namespace(obj: Obj, _now: datetime) -> None:
    name = obj["metadata"].get("name", "")
    obj["metadata"]["labels"] = {**(obj["metadata"].get("labels") or {}), "kubernetes.io/metadata.name": name}
    obj["spec"] = {"finalizers": ["kubernetes"]}
    obj["status"] = {"phase": "Active"}


def _check_class_update(new: Obj, _old: Obj) -> list[Cause]:
    return classes.check_class(new)


def _check_rule_update(new: Obj, _old: Obj) -> list[Cause]:
    return classes.check_rule(new)


STRATEGIES: Mapping[tuple[str, str], Strategy] = {
    ("", "Namespace"): Strategy(
        on_create=_default_namespace, check_create=others.check_namespace, status_keeps_metadata=False
    ),
    ("", "Event"): Strategy(check_create=events.check_core_event, check_update=events.check_event_update),
    ("events.k8s.io", "Event"): Strategy(
        check_create=events.check_new_event, check_update=events.check_event_update
    ),
    ("", "Node"): Strategy(status_keeps_metadata=False),
    ("", "Pod"): Strategy(
        on_create=poddefaults.default_pod,
        check_create=pods.check_pod,
        check_update=pods.check_pod_update,
        check_status=pods.check_pod_status,
        status_keeps_metadata=False,
    ),
    (DRA, "ResourceClaim"): Strategy(
        on_write=_default_claim,
        check_create=claims.check_claim,
        check_update=claims.check_spec_unchanged,
        check_status=claimstatus.check_claim_status,
    ),
    (DRA, "ResourceClaimTemplate"): Strategy(
        on_write=_default_template,
        check_create=claims.check_template,
        check_update=claims.check_spec_unchanged,
    ),
    (DRA, "DeviceClass"): Strategy(check_create=classes.check_class, check_update=_check_class_update),
    (DRA, "ResourceSlice"): Strategy(
        on_write=devices.default_slice,
        check_create=slices.check_slice,
        check_update=devices.check_slice_update,
    ),
    (DRA, "DeviceTaintRule"): Strategy(
        on_write=devices.default_rule,
        check_create=classes.check_rule,
        check_update=_check_rule_update,
        needs_version=True,
    ),
    ("", "PersistentVolumeClaim"): Strategy(
        on_create=volumes.default_claim, check_create=volumes.check_claim
    ),
    ("", "PersistentVolume"): Strategy(on_create=volumes.default_volume),
    (STORAGE, "StorageClass"): Strategy(on_create=volumes.default_class, check_create=volumes.check_class),
    ("coordination.k8s.io", "Lease"): Strategy(
        check_create=others.check_lease, check_update=others.check_lease_update, needs_version=True
    ),
    ("scheduling.k8s.io", "PodGroup"): Strategy(
        check_create=podgroups.check_group,
        check_update=podgroups.check_group_update,
        check_status=podgroups.check_group_status,
        needs_version=True,
    ),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): Strategy(
        check_create=others.check_definition, needs_version=True
    ),
}

_PLAIN = Strategy()


def strategy_of(kind: Kind) -> Strategy:
    """The row of `kind`; custom kinds are defaulted and checked by their schema."""
    if kind.custom:
        return _custom(kind.schema or {})
    return STRATEGIES.get((kind.group, kind.kind), _PLAIN)


def _custom(schema: Obj) -> Strategy:
    def default(obj: Obj, _now: datetime) -> None:
        schemas.fill_defaults(schema, obj)

    def compare(new: Obj, old: Obj) -> list[Cause]:
        causes = schemas.check(schema, new)
        if not schemarules.has_rules(schema):
            return causes
        if any(cause.reason in schemarules.BLOCKING for cause in causes):
            return [*causes, schemarules.not_checked()]
        return [*causes, *schemarules.violations(schema, new, old)]

    def check(obj: Obj) -> list[Cause]:
        return compare(obj, {})

    return Strategy(
        on_create=default, on_write=default, check_create=check, check_update=compare, check_status=compare,
        needs_version=True,
    )  # fmt: skip
