"""Validation and defaults of pods, as far as claims, gates and placement go (cp V-130, V-131, cp I-20 to I-26).

Called through `strategies`. Containers are hardly looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dra_operator.testing.fakeapi.objects import Obj, copied, dicts, dig
from dra_operator.validation.checks import (
    dns_label,
    dns_subdomain,
    forbidden,
    label_key,
    repeated,
    required,
    wrong,
)
from dra_operator.validation.nodeselectors import check_node_selector
from dra_operator.validation.podclaims import check_pod_claims

if TYPE_CHECKING:
    from dra_operator.validation.causes import Cause

_REQUIRED = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
REQUIRED_PATH = f"spec.{'.'.join(_REQUIRED)}"

_NO_OTHER_FIELDS = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def required_terms(spec: Obj) -> list[Obj]:
    """The terms of the required node affinity."""
    return list(dicts(dig(spec, *_REQUIRED, "nodeSelectorTerms")))


def check_pod(pod: Obj) -> list[Cause]:
    """A new pod."""
    spec = pod.get("spec") or {}
    causes = _check_containers(spec)
    causes += check_pod_claims(spec, "spec")
    gates = [gate.get("name") for gate in dicts(spec.get("schedulingGates"))]
    for index, gate in enumerate(gates):
        causes += label_key(f"spec.schedulingGates[{index}]", gate or "")
    causes += repeated("spec.schedulingGates", gates)
    if gates and spec.get("nodeName"):
        causes.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    if dig(spec, *_REQUIRED) is not None:
        causes += check_node_selector(dig(spec, *_REQUIRED), REQUIRED_PATH)
    return causes


def _check_containers(spec: Obj) -> list[Cause]:
    containers = list(dicts(spec.get("containers")))
    if not containers:
        return [required("spec.containers")]
    causes: list[Cause] = []
    for index, container in enumerate(containers):
        causes += dns_label(f"spec.containers[{index}].name", container.get("name"))
        if not container.get("image"):
            causes.append(required(f"spec.containers[{index}].image"))
    return [*causes, *repeated("spec.containers", [item.get("name") for item in containers], ".name")]


def check_pod_status(new: Obj, _old: Obj) -> list[Cause]:
    """A status update: resourceClaimStatuses names claims of the spec, each once (cp V-130)."""
    path = "status.resourceClaimStatuses"
    known = {claim.get("name") for claim in dicts(dig(new, "spec", "resourceClaims"))}
    entries = list(dicts(dig(new, "status", "resourceClaimStatuses")))
    causes: list[Cause] = []
    for index, entry in enumerate(entries):
        name = entry.get("name")
        if name not in known:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            causes.append(wrong(f"{path}[{index}].name", name, detail))
        if entry.get("resourceClaimName") is not None:
            causes += dns_subdomain(f"{path}[{index}].resourceClaimName", entry["resourceClaimName"])
    return [*causes, *repeated(path, [entry.get("name") for entry in entries], ".name")]


def check_pod_update(new: Obj, old: Obj) -> list[Cause]:
    """An update of the main resource: only gates, and with gates also placement, may change (cp I-22 to I-25)."""
    after, before = new.get("spec") or {}, old.get("spec") or {}
    causes = _check_gates(after, before)
    expected = copied(before)
    _accept(expected, after, "schedulingGates", "activeDeadlineSeconds")
    _accept_images(expected, after)
    _accept_tolerations(expected, after)
    if before.get("schedulingGates"):
        causes += _check_node_selector_labels(after, before)
        causes += _check_required(after, before)
        _accept(expected, after, "nodeSelector")
        _accept_node_affinity(expected, after)
        if dig(after, *_REQUIRED) is not None:
            causes += check_node_selector(dig(after, *_REQUIRED), REQUIRED_PATH)
    if not causes and expected != after:
        causes.append(forbidden("spec", _NO_OTHER_FIELDS))
    return causes


def _check_gates(after: Obj, before: Obj) -> list[Cause]:
    known = {gate.get("name") for gate in dicts(before.get("schedulingGates"))}
    return [
        forbidden(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
        )
        for index, gate in enumerate(dicts(after.get("schedulingGates")))
        if gate.get("name") not in known
    ]


def _check_node_selector_labels(after: Obj, before: Obj) -> list[Cause]:
    now = after.get("nodeSelector") or {}
    for key, value in (before.get("nodeSelector") or {}).items():
        if now.get(key) != value:
            detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            return [wrong("spec.nodeSelector", now, detail)]
    return []


def _check_required(after: Obj, before: Obj) -> list[Cause]:
    old_terms, new_terms = required_terms(before), required_terms(after)
    path = f"{REQUIRED_PATH}.nodeSelectorTerms"
    if not old_terms:
        return []
    if len(old_terms) != len(new_terms):
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [wrong(path, new_terms, detail)]
    return [
        wrong(f"{path}[{index}]", now, "only additions are allowed (no mutations or deletions)")
        for index, (was, now) in enumerate(zip(old_terms, new_terms, strict=True))
        if not _only_appended(was, now)
    ]


def _only_appended(was: Obj, now: Obj) -> bool:
    if not was.get("matchExpressions") and not was.get("matchFields"):
        return not now.get("matchExpressions") and not now.get("matchFields")
    for field in ("matchExpressions", "matchFields"):
        before = was.get(field) or []
        if (now.get(field) or [])[: len(before)] != before:
            return False
    return True


def _accept(expected: Obj, after: Obj, *fields: str) -> None:
    for field in fields:
        expected.pop(field, None)
        if field in after:
            expected[field] = after[field]


def _accept_images(expected: Obj, after: Obj) -> None:
    for field in ("containers", "initContainers"):
        for mine, theirs in zip(dicts(expected.get(field)), dicts(after.get(field)), strict=False):
            _accept(mine, theirs, "image")


def _accept_tolerations(expected: Obj, after: Obj) -> None:
    wanted: list[Any] = after.get("tolerations") or []
    if all(toleration in wanted for toleration in expected.get("tolerations") or ()):
        _accept(expected, after, "tolerations")


def _accept_node_affinity(expected: Obj, after: Obj) -> None:
    affinity = after.get("affinity")
    mine = expected.get("affinity") or {}
    others = {key: value for key, value in mine.items() if key != "nodeAffinity"}
    theirs = {key: value for key, value in (affinity or {}).items() if key != "nodeAffinity"}
    if others == theirs:
        _accept(expected, after, "affinity")
