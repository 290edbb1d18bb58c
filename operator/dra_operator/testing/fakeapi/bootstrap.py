"""Roles that a server with access control has from the start, and the aggregation of ClusterRoles.

Called by `server`. Of Kubernetes' default roles only those are here that people and the operator's manifests build on; `admin`,
`edit` and `view` gather what is labelled for them, as the controller of a real control plane sees to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi.access import (
    AUTHENTICATED,
    MASTERS,
    RBAC,
    UNAUTHENTICATED,
    aggregated_rules,
)
from dra_operator.testing.fakeapi.objects import Obj, copied

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dra_operator.testing.fakeapi.machinery import Machinery

_API = f"{RBAC}/v1"
_LABEL = "rbac.authorization.k8s.io/aggregate-to-"
_READ, _WRITE = ["get", "list", "watch"], ["create", "delete", "deletecollection", "patch", "update"]
_DOCUMENTS = ["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"]
_HEALTH = ["/healthz", "/livez", "/readyz", "/version", "/version/"]

_USED: Sequence[tuple[str, list[str]]] = (
    ("", ["configmaps", "events", "pods", "pods/status", "serviceaccounts", "services"]),
    ("apps", ["deployments", "deployments/status", "replicasets"]),
    ("batch", ["jobs", "jobs/status"]),
    ("resource.k8s.io", ["resourceclaims", "resourceclaims/status", "resourceclaimtemplates"]),
)
_CHANGED: Sequence[tuple[str, list[str]]] = (
    ("", ["configmaps", "pods", "secrets", "serviceaccounts", "services"]),
    ("apps", ["deployments", "replicasets"]),
    ("batch", ["jobs"]),
    ("resource.k8s.io", ["resourceclaims", "resourceclaimtemplates"]),
)


def default_roles() -> Iterator[Obj]:
    """ClusterRoles and ClusterRoleBindings, ready to be created."""
    yield _role(
        "cluster-admin", [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, _paths(["*"], "*")]
    )
    yield _binding("cluster-admin", MASTERS)
    yield _role("system:discovery", [_paths([*_DOCUMENTS, *_HEALTH], "get")])
    yield _binding("system:discovery", AUTHENTICATED)
    reviews = ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]
    yield _role(
        "system:basic-user",
        [
            {"apiGroups": ["authorization.k8s.io"], "resources": reviews, "verbs": ["create"]},
            {
                "apiGroups": ["authentication.k8s.io"],
                "resources": ["selfsubjectreviews"],
                "verbs": ["create"],
            },
        ],
    )
    yield _binding("system:basic-user", AUTHENTICATED)
    yield _role("system:public-info-viewer", [_paths(_HEALTH, "get")])
    yield _binding("system:public-info-viewer", AUTHENTICATED, UNAUTHENTICATED)
    yield from _user_facing()


def _user_facing() -> Iterator[Obj]:
    """`view` reads, `edit` writes, `admin` gives roles of its namespace away; each is the sum of what is labelled for it."""
    yield _role("system:aggregate-to-view", [_rule(*item, _READ) for item in _USED], "view")
    secrets = _rule("", ["secrets"], _READ)
    yield _role("system:aggregate-to-edit", [*(_rule(*item, _WRITE) for item in _CHANGED), secrets], "edit")
    giving = [_rule(RBAC, ["roles", "rolebindings"], [*_READ, *_WRITE])]
    yield _role("system:aggregate-to-admin", giving, "admin")
    yield _sum("view", {"aggregate-to-view": "true"}, ["edit"])
    yield _sum("edit", {"aggregate-to-edit": "true"}, ["admin"])
    yield _sum("admin", {"aggregate-to-admin": "true"}, [])


def _rule(group: str, resources: list[str], verbs: list[str]) -> Obj:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs}


def _paths(urls: list[str], verb: str) -> Obj:
    return {"nonResourceURLs": urls, "verbs": [verb]}


def _role(name: str, rules: list[Obj], part_of: str = "") -> Obj:
    labels = {"kubernetes.io/bootstrapping": "rbac-defaults"}
    if part_of:
        labels[f"{_LABEL}{part_of}"] = "true"
    return {
        "apiVersion": _API,
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": labels},
        "rules": rules,
    }


def _sum(name: str, selector: Obj, parts_of: list[str]) -> Obj:
    wanted = {f"rbac.authorization.k8s.io/{key}": value for key, value in selector.items()}
    role = _role(name, [])
    role["metadata"]["labels"] |= {f"{_LABEL}{part}": "true" for part in parts_of}
    role["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": wanted}]}
    return role


def _binding(role: str, *groups: str) -> Obj:
    subjects = [{"apiGroup": RBAC, "kind": "Group", "name": group} for group in groups]
    return {
        "apiVersion": _API,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": role},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": subjects,
    }


def aggregate(machinery: Machinery) -> None:
    """Bring the rules of every ClusterRole with an aggregationRule up to date; sums of sums take more than one round."""
    changed = True
    while changed:
        roles = _roles(machinery)
        changed = any(_added_up(machinery, role, roles) for role in roles)


def _roles(machinery: Machinery) -> list[Obj]:
    return [record.obj for record in machinery.store.items((RBAC, "clusterroles"))]


def _added_up(machinery: Machinery, role: Obj, roles: list[Obj]) -> bool:
    """Whether the rules of `role` were not what they ought to be."""
    if not role.get("aggregationRule"):
        return False
    rules = aggregated_rules(role, roles)
    if rules == (role.get("rules") or []):
        return False
    kind = machinery.kinds.named("clusterroles", RBAC)
    body = {**copied(role), "rules": rules}
    body["metadata"].pop("resourceVersion")
    machinery.update(kind, ("", role["metadata"]["name"]), body)
    return True
