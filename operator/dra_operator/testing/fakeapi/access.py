"""Role-based access control: who may do what, out of the stored Roles and bindings.

Called by `guard` for each request, and by `machinery` for the rights that a claim's status asks for. Pure but for reading the store;
no HTTP. The group `system:masters` may do everything, as on a real server. Left out against the real thing: the check that
nobody grants more than he holds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi import failures
from dra_operator.testing.fakeapi.objects import Obj, Resource, dicts, dig, meta

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from dra_operator.testing.fakeapi.store import Store

RBAC = "rbac.authorization.k8s.io"
MASTERS = "system:masters"
AUTHENTICATED, UNAUTHENTICATED = "system:authenticated", "system:unauthenticated"

_ACCOUNT = "system:serviceaccount:"
_ROLES: Mapping[str, Resource] = {"ClusterRole": (RBAC, "clusterroles"), "Role": (RBAC, "roles")}


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks: authentication.k8s.io/v1 UserInfo."""

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict, hash=False)

    def as_dict(self) -> Obj:
        """The UserInfo of reviews."""
        pairs = {"username": self.user, "uid": self.uid, "groups": list(self.groups)}
        extra = {key: list(values) for key, values in self.extra.items()}
        return {key: value for key, value in {**pairs, "extra": extra}.items() if value}


ADMIN = Identity("admin", (MASTERS, AUTHENTICATED))


def service_account(namespace: str, name: str, uid: str = "") -> Identity:
    """The identity behind a token of a ServiceAccount."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
    return Identity(f"{_ACCOUNT}{namespace}:{name}", groups, uid)


@dataclass(frozen=True, slots=True)
class Action:
    """What is asked for: a verb on a resource (`plural` or `plural/subresource`), or on a `path` that is none."""

    verb: str
    group: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class Asker:
    """Who writes, and what else he may do; for checks within a write."""

    who: Identity
    allows: Callable[[Identity, Action], bool]

    def refusal(self, *actions: Action) -> str:
        """Why none of `actions` is allowed, in the words for the first; empty if one is."""
        if any(self.allows(self.who, action) for action in actions):
            return ""
        return denied(self.who, actions[0]).message


def denied(who: Identity, action: Action) -> failures.StatusError:
    """403 in the words of a real server."""
    if action.path:
        message = f'forbidden: User "{who.user}" cannot {action.verb} path "{action.path}"'
        return failures.StatusError(403, "Forbidden", message, empty_details=True)
    scope = f'in the namespace "{action.namespace}"' if action.namespace else "at the cluster scope"
    plural = action.resource.partition("/")[0]
    about = failures.About(action.group, plural, action.name)
    what = f'{about.qualified} "{action.name}"' if action.name else about.qualified
    message = (
        f'{what} is forbidden: User "{who.user}" cannot {action.verb} resource "{action.resource}"'
        f' in API group "{action.group}" {scope}'
    )
    return failures.StatusError(403, "Forbidden", message, about)


class Access:
    """The rights that the stored roles give."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def allows(self, who: Identity, action: Action) -> bool:
        """Whether `who` may do `action`."""
        if MASTERS in who.groups:
            return True
        return any(_covers(rule, action) for rule in self.rules(who, action.namespace))

    def rules(self, who: Identity, namespace: str = "") -> Iterator[Obj]:
        """All policy rules of `who` in a namespace, those that hold everywhere included."""
        for binding in self._bindings("clusterrolebindings", ""):
            if _binds(binding, who, ""):
                yield from self._role_rules(binding, "")
        if namespace:
            for binding in self._bindings("rolebindings", namespace):
                if _binds(binding, who, namespace):
                    yield from self._role_rules(binding, namespace)

    def _bindings(self, plural: str, namespace: str) -> Iterator[Obj]:
        return (record.obj for record in self._store.items((RBAC, plural), namespace))

    def _role_rules(self, binding: Obj, namespace: str) -> Iterator[Obj]:
        reference = binding.get("roleRef") or {}
        resource = _ROLES.get(reference.get("kind", ""))
        if resource is None:
            return
        where = namespace if reference["kind"] == "Role" else ""
        record = self._store.get(resource, (where, reference.get("name", "")))
        if record is not None:
            yield from dicts(record.obj.get("rules"))


def _binds(binding: Obj, who: Identity, namespace: str) -> bool:
    return any(_is(subject, who, namespace) for subject in dicts(binding.get("subjects")))


def _is(subject: Obj, who: Identity, namespace: str) -> bool:
    name = subject.get("name", "")
    match subject.get("kind"):
        case "User":
            return bool(who.user == name)
        case "Group":
            return name in who.groups
        case "ServiceAccount":
            home = subject.get("namespace") or namespace
            return bool(home) and who.user == f"{_ACCOUNT}{home}:{name}"
    return False


def _covers(rule: Obj, action: Action) -> bool:
    if not _any(rule, "verbs", action.verb):
        return False
    if action.path:
        return any(_path_matches(url, action.path) for url in rule.get("nonResourceURLs") or ())
    names = rule.get("resourceNames") or ()
    return (
        _any(rule, "apiGroups", action.group)
        and _resource_matches(rule.get("resources") or (), action.resource)
        and (not names or action.name in names)
    )


def _any(rule: Obj, field_name: str, value: str) -> bool:
    listed = rule.get(field_name) or ()
    return "*" in listed or value in listed


def _resource_matches(listed: Sequence[str], resource: str) -> bool:
    _, slash, subresource = resource.partition("/")
    return "*" in listed or resource in listed or (bool(slash) and f"*/{subresource}" in listed)


def _path_matches(url: str, path: str) -> bool:
    return url in ("*", path) or (url.endswith("*") and path.startswith(url[:-1]))


def aggregated_rules(role: Obj, others: Sequence[Obj]) -> list[Obj]:
    """The rules of a ClusterRole with an aggregationRule: those of all that its selectors match, by name."""
    selectors = [
        s.get("matchLabels") or {} for s in dicts(dig(role, "aggregationRule", "clusterRoleSelectors"))
    ]
    found: list[Obj] = []
    for other in sorted(others, key=lambda item: str(meta(item)["name"])):
        labels = meta(other).get("labels") or {}
        if meta(other)["name"] != meta(role)["name"] and any(s.items() <= labels.items() for s in selectors):
            found += [rule for rule in dicts(other.get("rules")) if rule not in found]
    return found
