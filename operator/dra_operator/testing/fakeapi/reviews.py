"""Questions about rights: `kubectl auth can-i`, `auth whoami`, and tokens of ServiceAccounts.

Called by `http`. These kinds are asked and answered, never stored.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi import failures
from dra_operator.testing.fakeapi.access import Access, Action, Identity, service_account
from dra_operator.testing.fakeapi.guard import Guard
from dra_operator.testing.fakeapi.objects import Obj, timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dra_operator.testing.fakeapi.guard import Door
    from dra_operator.testing.fakeapi.machinery import Machinery
    from dra_operator.testing.fakeapi.requests import Target

_ALL: list[Obj] = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
_ALL_PATHS: list[Obj] = [{"verbs": ["*"], "nonResourceURLs": ["*"]}]


def review(door: Door, who: Identity, found: Target, body: Obj) -> Obj | None:
    """The answered review, or None where `found` is none.

    Raises:
        StatusError: 400, nothing that can be answered is asked for.
    """
    answer = _REVIEWS.get((found.group, found.plural))
    if answer is None:
        return None
    api_version, kind = f"{found.group}/{found.version}", _KINDS[found.plural]
    status = answer(door, who, body.get("spec") or {})
    return {
        "kind": kind,
        "apiVersion": api_version,
        "metadata": {},
        "spec": body.get("spec") or {},
        "status": status,
    }


def _self_access(door: Door, who: Identity, spec: Obj) -> Obj:
    return {"allowed": door.allows(who, _asked(spec))}


def _other_access(door: Door, _who: Identity, spec: Obj) -> Obj:
    user = spec.get("user", "")
    if user.startswith("system:serviceaccount:") and not spec.get("groups"):
        _, _, namespace, name = user.split(":", 3)
        return {"allowed": door.allows(service_account(namespace, name), _asked(spec))}
    return {"allowed": door.allows(Identity(user, tuple(spec.get("groups") or ())), _asked(spec))}


def _asked(spec: Obj) -> Action:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if path:
        return Action(path.get("verb", ""), path=path.get("path", ""))
    if not resource:
        raise failures.bad_request(
            "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        )
    plural, below = resource.get("resource", ""), resource.get("subresource", "")
    return Action(
        resource.get("verb", ""),
        resource.get("group", ""),
        f"{plural}/{below}" if below else plural,
        resource.get("namespace", ""),
        resource.get("name", ""),
    )


def _rules(door: Door, who: Identity, spec: Obj) -> Obj:
    if not isinstance(door, Guard):
        return {"resourceRules": _ALL, "nonResourceRules": _ALL_PATHS, "incomplete": False}
    found = list(Access(door.store).rules(who, spec.get("namespace", "")))
    return {
        "resourceRules": [rule for rule in found if rule.get("resources")],
        "nonResourceRules": [rule for rule in found if rule.get("nonResourceURLs")],
        "incomplete": False,
    }


def _who_am_i(_door: Door, who: Identity, _spec: Obj) -> Obj:
    return {"userInfo": who.as_dict()}


_AUTHORIZATION, _AUTHENTICATION = "authorization.k8s.io", "authentication.k8s.io"
REVIEWING = frozenset({_AUTHORIZATION, _AUTHENTICATION})
_REVIEWS: Mapping[tuple[str, str], Callable[[Door, Identity, Obj], Obj]] = {
    (_AUTHORIZATION, "selfsubjectaccessreviews"): _self_access,
    (_AUTHORIZATION, "subjectaccessreviews"): _other_access,
    (_AUTHORIZATION, "localsubjectaccessreviews"): _other_access,
    (_AUTHORIZATION, "selfsubjectrulesreviews"): _rules,
    (_AUTHENTICATION, "selfsubjectreviews"): _who_am_i,
}
_KINDS = {
    "selfsubjectaccessreviews": "SelfSubjectAccessReview",
    "subjectaccessreviews": "SubjectAccessReview",
    "localsubjectaccessreviews": "LocalSubjectAccessReview",
    "selfsubjectrulesreviews": "SelfSubjectRulesReview",
    "selfsubjectreviews": "SelfSubjectReview",
}


def account_token(door: Door, machinery: Machinery, found: Target, body: Obj) -> Obj:
    """The answered TokenRequest for the ServiceAccount of the path.

    Raises:
        StatusError: 404.
    """
    account = machinery.get(machinery.kinds.named("serviceaccounts"), found.key)
    spec = body.get("spec") or {}
    ends = machinery.clock() + timedelta(seconds=int(spec.get("expirationSeconds") or 3600))
    made = door.account_token(found.namespace, found.name, account.uid) if isinstance(door, Guard) else "any"
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": found.name, "namespace": found.namespace},
        "spec": spec,
        "status": {"token": made, "expirationTimestamp": timestamp(ends)},
    }
