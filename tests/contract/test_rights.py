"""Rights: how roles and bindings are read, what a refusal says, and what a claim's status asks for beyond them.

Users are impersonated by the administrator, who may do everything.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.client import CLAIM, CONFIG, DRA, POD
from tests.contract.objects import allocation, claim, config, consumer, pod

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.contract.client import Answer, Client, Obj

RBAC = "/apis/rbac.authorization.k8s.io/v1"
ROLES, BINDINGS = f"{RBAC}/namespaces/{{ns}}/roles", f"{RBAC}/namespaces/{{ns}}/rolebindings"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
READ = ["get", "list", "watch"]


class Cluster:
    """Makes roles and bindings, and removes those that outlive the namespace."""

    def __init__(self, api: Client, unique: str) -> None:
        self._api = api
        self.unique = unique
        self._made: list[str] = []

    async def role(self, name: str, *rules: Obj, **metadata: Any) -> None:
        """A ClusterRole."""
        await self._create("clusterroles", name, {"rules": list(rules)}, **metadata)

    async def bind(self, role: str, *subjects: Obj) -> None:
        """A ClusterRoleBinding of the same name as its role, plus a suffix of its own."""
        name = f"{role}.{len(self._made)}"
        await self._create(
            "clusterrolebindings", name, {"roleRef": _ref("ClusterRole", role), "subjects": list(subjects)}
        )

    async def _create(self, plural: str, name: str, body: Obj, **metadata: Any) -> None:
        kind = {"clusterroles": "ClusterRole", "clusterrolebindings": "ClusterRoleBinding"}[plural]
        about = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind}
        (
            await self._api.create(
                f"{RBAC}/{plural}", {**about, "metadata": {"name": name, **metadata}, **body}
            )
        ).ok()
        self._made.append(f"{RBAC}/{plural}/{name}")

    async def clean(self) -> None:
        for path in self._made:
            await self._api.delete(path)


@pytest.fixture
async def cluster(api: Client, unique: str) -> AsyncIterator[Cluster]:
    made = Cluster(api, unique)
    yield made
    await made.clean()


def _ref(kind: str, name: str) -> Obj:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}


def _user(name: str) -> Obj:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}


def _group(name: str) -> Obj:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": name}


def _rule(group: str, resources: str, verbs: list[str], *names: str) -> Obj:
    rule = {"apiGroups": [group], "resources": resources.split(), "verbs": verbs}
    return {**rule, "resourceNames": list(names)} if names else rule


async def _grant(api: Client, name: str, rules: list[Obj], *subjects: Obj) -> None:
    """A Role and its RoleBinding in the test's namespace."""
    head = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name}}
    (await api.create(ROLES, {**head, "kind": "Role", "rules": rules})).ok()
    binding = {**head, "kind": "RoleBinding", "roleRef": _ref("Role", name), "subjects": list(subjects)}
    (await api.create(BINDINGS, binding)).ok()


async def _allowed(who: Client, path: str, **query: str) -> Answer:
    """The answer of a read once the right that was just given is known to the server."""
    async with asyncio.timeout(20):
        while (answer := await who.get(path, **query)).code == 403:  # noqa: ASYNC110 - another process learns of it
            await asyncio.sleep(0.05)
    return answer


async def _in_force(who: Client, verb: str, group: str, resource: str, **more: str) -> None:
    """Wait until the server knows a right: its view of roles lags behind what was stored."""
    asked = {"verb": verb, "group": group, "resource": resource, **more}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": asked},
    }
    async with asyncio.timeout(20):
        while not (await who.create(REVIEWS, body)).ok().body["status"]["allowed"]:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.05)


# --- what a refusal says


@pytest.mark.parametrize(
    ("method", "path", "said"),
    [
        ("GET", CONFIG, 'configmaps is forbidden: User "jane" cannot list resource "configmaps" in API group "" in the namespace "{ns}"'),
        ("GET", f"{CONFIG}/c", 'configmaps "c" is forbidden: User "jane" cannot get resource "configmaps" in API group "" in the namespace "{ns}"'),
        ("GET", "/api/v1/nodes", 'nodes is forbidden: User "jane" cannot list resource "nodes" in API group "" at the cluster scope'),
        (
            "GET",
            f"{DRA}/resourceclaims",
            'resourceclaims.resource.k8s.io is forbidden: User "jane" cannot list resource "resourceclaims" in API group "resource.k8s.io" at the cluster scope',
        ),
        (
            "PATCH",
            f"{CLAIM}/c/status",
            'resourceclaims.resource.k8s.io "c" is forbidden: User "jane" cannot patch resource "resourceclaims/status" in API group "resource.k8s.io" in the namespace "{ns}"',
        ),
        (
            "POST",
            f"{POD}/p/binding",
            'pods "p" is forbidden: User "jane" cannot create resource "pods/binding" in API group "" in the namespace "{ns}"',
        ),
        ("DELETE", CONFIG, 'configmaps is forbidden: User "jane" cannot deletecollection resource "configmaps" in API group "" in the namespace "{ns}"'),
        ("GET", "/metrics", 'forbidden: User "jane" cannot get path "/metrics"'),
    ],
)  # fmt: skip
async def test_refusal_names_user_verb_resource_and_scope(
    api: Client, method: str, path: str, said: str
) -> None:
    """What the operator shows when a right is missing."""
    body: Obj | None = None if method in ("GET", "DELETE") else {}
    refused = await api.as_user("jane").call(method, path, body, kind="application/merge-patch+json")
    assert (refused.code, refused.reason) == (403, "Forbidden")
    assert refused.body["message"] == said.format(ns=api.ns)


async def test_watch_of_one_forbidden_kind_is_refused_before_it_opens(api: Client) -> None:
    refused = await api.as_user("jane").get(CLAIM, watch="1")
    assert (refused.code, refused.reason) == (403, "Forbidden")
    assert 'cannot watch resource "resourceclaims"' in refused.body["message"]


async def test_refusal_tells_nothing_of_what_exists(api: Client) -> None:
    """Rights come first: a missing object, a bad body and a missing namespace are all just forbidden."""
    jane = api.as_user("jane")
    assert (await jane.get(f"{CONFIG}/none")).code == 403
    assert (await jane.create(CONFIG, {"kind": "Nonsense"})).code == 403
    assert (await jane.get("/api/v1/namespaces/no-such-one/pods")).code == 403


async def test_unknown_token_is_unauthorized(api: Client) -> None:
    headers = {"Authorization": "Bearer no-such-token"}
    url = f"{api.server.url}/api/v1/namespaces/{api.ns}/pods"
    async with api._session.get(url, headers=headers, ssl=api.server.ssl) as response:
        body = await response.json()
    assert (response.status, body["reason"], body["message"]) == (401, "Unauthorized", "Unauthorized")


async def test_everybody_who_is_known_may_ask_for_discovery_and_for_his_rights(api: Client) -> None:
    jane = api.as_user("jane")
    for path in ("/api", "/apis", DRA, "/version", "/healthz", "/openapi/v3"):
        assert (await jane.get(path)).code == 200
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "list", "resource": "pods", "namespace": api.ns}},
    }
    answer = await jane.create(REVIEWS, body)
    assert (answer.code, answer.body["status"]["allowed"]) == (201, False)


# --- how roles are read


async def test_role_holds_in_its_namespace_and_nowhere_else(api: Client) -> None:
    await _grant(api, "r", [_rule("", "configmaps", READ)], _user("jane"))
    jane = api.as_user("jane")
    await _allowed(jane, CONFIG)
    assert (await jane.get("/api/v1/namespaces/default/configmaps")).code == 403
    assert (await jane.get("/api/v1/configmaps")).code == 403
    assert (await jane.create(CONFIG, config())).code == 403


async def test_cluster_role_through_a_role_binding_holds_in_that_namespace(
    api: Client, cluster: Cluster
) -> None:
    role = f"c{cluster.unique}"
    await cluster.role(role, _rule("", "configmaps nodes", READ))
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "b"},
        "roleRef": _ref("ClusterRole", role),
        "subjects": [_user("jane")],
    }
    (await api.create(BINDINGS, binding)).ok()
    jane = api.as_user("jane")
    await _allowed(jane, CONFIG)
    assert (await jane.get("/api/v1/configmaps")).code == 403
    assert (await jane.get("/api/v1/nodes")).code == 403


async def test_cluster_role_binding_holds_everywhere(api: Client, cluster: Cluster) -> None:
    role, user = f"c{cluster.unique}", f"u{cluster.unique}"
    await cluster.role(role, _rule("", "configmaps nodes", READ))
    await cluster.bind(role, _user(user))
    await _allowed(api.as_user(user), "/api/v1/nodes")
    assert (await api.as_user(user).get(CONFIG)).code == 200


async def test_rights_go_to_groups_and_service_accounts(api: Client) -> None:
    subjects = [_group("team"), {"kind": "ServiceAccount", "name": "robot", "namespace": api.ns}]
    await _grant(api, "r", [_rule("", "configmaps", READ)], *subjects)
    await _allowed(api.as_user("jane", "team"), CONFIG)
    await _allowed(api.as_account("robot"), CONFIG)
    assert (await api.as_user("jane").get(CONFIG)).code == 403
    assert (await api.as_account("other").get(CONFIG)).code == 403


async def test_resource_names_narrow_a_rule_to_objects(api: Client) -> None:
    await _grant(api, "r", [_rule("", "configmaps", [*READ, "update"], "mine")], _user("jane"))
    for name in ("mine", "other"):
        (await api.create(CONFIG, config(name))).ok()
    jane = api.as_user("jane")
    await _allowed(jane, f"{CONFIG}/mine")
    assert (await jane.get(f"{CONFIG}/other")).code == 403
    assert (await jane.get(CONFIG)).code == 403
    found = (await jane.get(CONFIG, fieldSelector="metadata.name=mine")).ok()
    assert [item["metadata"]["name"] for item in found.body["items"]] == ["mine"]


async def test_right_to_an_object_is_none_to_its_status(api: Client) -> None:
    await _grant(api, "r", [_rule("resource.k8s.io", "resourceclaims", ["get", "patch"])], _user("jane"))
    (await api.create(CLAIM, claim())).ok()
    jane = api.as_user("jane")
    await _allowed(jane, f"{CLAIM}/claim")
    (await jane.merge(f"{CLAIM}/claim", {"metadata": {"labels": {"a": "b"}}})).ok()
    assert (await jane.merge(f"{CLAIM}/claim/status", {"status": {}})).code == 403
    assert (await jane.get(f"{CLAIM}/claim/status")).code == 403


async def test_apply_is_a_patch_and_creates_only_with_the_right_to_create(api: Client) -> None:
    await _grant(api, "r", [_rule("", "configmaps", ["get", "patch"])], _user("jane"))
    jane = api.as_user("jane")
    (await api.create(CONFIG, config())).ok()
    await _allowed(jane, f"{CONFIG}/c")
    body: Obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}}
    (await jane.apply(f"{CONFIG}/c", body, "jane")).ok()
    refused = await jane.apply(f"{CONFIG}/d", {**body, "metadata": {"name": "d"}}, "jane")
    assert (refused.code, refused.reason) == (403, "Forbidden")
    assert 'cannot create resource "configmaps"' in refused.body["message"]


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, f"{CLAIM}/claim/status"),
        ({"apiGroups": [""], "resources": ["pods/*"], "verbs": ["get"]}, None),
        (
            {"apiGroups": ["resource.k8s.io"], "resources": ["*/status"], "verbs": ["get"]},
            f"{CLAIM}/claim/status",
        ),
    ],
)
async def test_wildcards(api: Client, rule: Obj, path: str | None) -> None:
    """`*` is every resource with its subresources, `*/status` every status, and `pods/*` is no wildcard at all."""
    await _grant(api, "r", [rule, _rule("", "secrets", ["list"])], _user("jane"))
    (await api.create(CLAIM, claim())).ok()
    (await api.create(POD, pod())).ok()
    jane = api.as_user("jane")
    await _allowed(jane, "/api/v1/namespaces/{ns}/secrets")
    if path:
        assert (await jane.get(path)).code == 200
    else:
        assert (await jane.get(f"{POD}/p/status")).code == 403


async def test_paths_that_are_no_resources(api: Client, cluster: Cluster) -> None:
    """How Prometheus is let in to the API server's own metrics."""
    role, user = f"c{cluster.unique}", f"u{cluster.unique}"
    await cluster.role(role, {"nonResourceURLs": ["/metrics/*", "/livez/ping"], "verbs": ["get"]})
    await cluster.bind(role, _user(user))
    jane = api.as_user(user)
    async with asyncio.timeout(20):
        while (await jane.get("/metrics/slis")).code == 403:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.05)
    assert (await jane.get("/metrics")).code == 403


async def test_aggregated_role_follows_the_labels_of_others(api: Client, cluster: Cluster) -> None:
    """How `dra-operator-view` becomes part of `view`."""
    base, user, label = f"c{cluster.unique}", f"u{cluster.unique}", f"example.com/aggregate-{cluster.unique}"
    selector = {"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]}
    await cluster._create("clusterroles", base, {"aggregationRule": selector, "rules": []})
    await cluster.bind(base, _user(user))
    assert (await api.as_user(user).get(CONFIG)).code == 403
    await cluster.role(f"{base}-part", _rule("", "configmaps", READ), labels={label: "true"})
    await _allowed(api.as_user(user), CONFIG)
    rules = (await api.get(f"{RBAC}/clusterroles/{base}")).body["rules"]
    assert rules == [_rule("", "configmaps", READ)]


@pytest.mark.parametrize(
    ("role", "may"),
    [("view", [True, False, False]), ("edit", [True, True, False]), ("admin", [True, True, True])],
)
async def test_default_roles_for_people_cover_claims(api: Client, role: str, may: list[bool]) -> None:
    """`view` reads claims and templates of a namespace, `edit` makes them, `admin` gives roles away; none of them reads slices."""
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "b"},
        "roleRef": _ref("ClusterRole", role),
        "subjects": [_user("jane")],
    }
    (await api.create(BINDINGS, binding)).ok()
    jane = api.as_user("jane")
    await _allowed(jane, POD)
    answers = [
        (await jane.get(CLAIM)).code,
        (await jane.create(CLAIM, claim())).code,
        (await jane.get(ROLES)).code,
    ]
    assert [code < 300 for code in answers] == may
    assert (await jane.get(f"{DRA}/resourceslices")).code == 403


# --- rights within a claim's status (cp V-77 to V-81)


async def _claim_writer(api: Client, cluster: Cluster, *more: Obj) -> Client:
    """Somebody who may write the status of claims in the namespace, and what else is given everywhere."""
    user = f"u{cluster.unique}"
    await _grant(
        api,
        "status",
        [_rule("resource.k8s.io", "resourceclaims resourceclaims/status", ["get", "patch", "update"])],
        _user(user),
    )
    who = api.as_user(user)
    if more:
        await cluster.role(f"c{cluster.unique}", *more)
        await cluster.bind(f"c{cluster.unique}", _user(user))
    await _in_force(who, "patch", "resource.k8s.io", "resourceclaims", subresource="status", namespace=api.ns)
    return who


def _needs_binding(cluster: Cluster, verb: str) -> list[Obj]:
    """The causes; the operator reads this text (`kube.failures.MISSING_RIGHT`)."""
    text = (
        'Forbidden: changing status.allocation or status.reservedFor requires resource="resourceclaims/binding",'
        f' verb="{verb}" permission: resourceclaims.resource.k8s.io is forbidden: User "u{cluster.unique}" cannot {verb} resource "resourceclaims/binding" in API group'
        ' "resource.k8s.io" at the cluster scope'
    )
    return [{"reason": "FieldValueForbidden", "message": text, "field": "status.allocation"}]


def _needs_driver(api: Client, user: str, verbs: str, verb: str) -> Obj:
    text = (
        f'Forbidden: changing status.devices requires resource="resourceclaims/driver", verb="{verbs}" permission:'
        f' resourceclaims.resource.k8s.io "gpu.example.com" is forbidden: User "{user}" cannot {verb} resource'
        f' "resourceclaims/driver" in API group "resource.k8s.io" in the namespace "{api.ns}"'
    )
    return {"reason": "FieldValueForbidden", "message": text, "field": "status.devices"}


@pytest.mark.parametrize("field", ["allocation", "both"])
async def test_allocating_needs_the_right_to_bind(api: Client, cluster: Cluster, field: str) -> None:
    """Cp V-78."""
    who = await _claim_writer(api, cluster)
    (await api.create(CLAIM, claim())).ok()
    status: Obj = {"allocation": allocation()}
    if field == "both":
        status["reservedFor"] = [consumer()]
    refused = await who.merge(f"{CLAIM}/claim/status", {"status": status})
    assert refused.causes == _needs_binding(cluster, "patch")
    assert (refused.code, refused.reason) == (422, "Invalid")


async def test_the_right_to_bind_is_that_of_the_verb(api: Client, cluster: Cluster) -> None:
    """Cp V-78: a replace needs `update`, a patch needs `patch`."""
    who = await _claim_writer(api, cluster, _rule("resource.k8s.io", "resourceclaims/binding", ["patch"]))
    await _in_force(who, "patch", "resource.k8s.io", "resourceclaims", subresource="binding")
    made = (await api.create(CLAIM, claim())).ok().body
    made["status"] = {"allocation": allocation()}
    refused = await who.replace(f"{CLAIM}/claim/status", made)
    assert refused.causes == _needs_binding(cluster, "update")
    (await who.merge(f"{CLAIM}/claim/status", {"status": {"allocation": allocation()}})).ok()


async def test_a_role_binding_never_gives_the_right_to_bind(api: Client, cluster: Cluster) -> None:
    """Cp V-78: it is asked for without a namespace."""
    who = await _claim_writer(api, cluster)
    await _grant(
        api,
        "bind",
        [_rule("resource.k8s.io", "resourceclaims/binding", ["patch"])],
        _user(f"u{cluster.unique}"),
    )
    await _in_force(
        who, "patch", "resource.k8s.io", "resourceclaims", subresource="binding", namespace=api.ns
    )
    (await api.create(CLAIM, claim())).ok()
    refused = await who.merge(f"{CLAIM}/claim/status", {"status": {"allocation": allocation()}})
    assert (refused.code, refused.reason) == (422, "Invalid")


async def test_reserving_and_deallocating_need_the_right_to_bind_too(api: Client, cluster: Cluster) -> None:
    """Cp V-78, V-81."""
    who = await _claim_writer(api, cluster)
    (await api.create(CLAIM, claim())).ok()
    (await api.merge(f"{CLAIM}/claim/status", {"status": {"allocation": allocation()}})).ok()
    for change in ({"reservedFor": [consumer()]}, {"allocation": None}):
        refused = await who.merge(f"{CLAIM}/claim/status", {"status": change})
        assert refused.causes == _needs_binding(cluster, "patch")


async def test_status_write_that_changes_no_decision_needs_no_more(api: Client, cluster: Cluster) -> None:
    """Cp V-77: only the difference counts."""
    who = await _claim_writer(api, cluster)
    (await api.create(CLAIM, claim())).ok()
    (await api.merge(f"{CLAIM}/claim/status", {"status": {"allocation": allocation()}})).ok()
    (await who.merge(f"{CLAIM}/claim/status", {"status": {"allocation": allocation()}})).ok()


async def test_device_status_needs_the_right_to_the_driver(api: Client, cluster: Cluster) -> None:
    """Cp V-79: the driver's own right, on nodes at will or on its own node."""
    who = await _claim_writer(api, cluster)
    (await api.create(CLAIM, claim())).ok()
    (await api.merge(f"{CLAIM}/claim/status", {"status": {"allocation": allocation()}})).ok()
    entry = {"driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}
    refused = await who.merge(f"{CLAIM}/claim/status", {"status": {"devices": [entry]}})
    assert (refused.code, refused.reason) == (422, "Invalid")
    assert refused.causes == [
        _needs_driver(api, f"u{cluster.unique}", "[arbitrary-node:patch]", "arbitrary-node:patch")
    ]
    verb = "arbitrary-node:patch"
    rule = _rule("resource.k8s.io", "resourceclaims/driver", [verb], "gpu.example.com")
    await _grant(api, "driver", [rule], _user(f"u{cluster.unique}"))
    await _in_force(
        who,
        verb,
        "resource.k8s.io",
        "resourceclaims",
        subresource="driver",
        namespace=api.ns,
        name="gpu.example.com",
    )
    (await who.merge(f"{CLAIM}/claim/status", {"status": {"devices": [entry]}})).ok()


async def test_driver_on_its_own_node_needs_the_narrower_right_only(api: Client) -> None:
    """Cp V-80: the token names the node that the allocation is pinned to, in the canonical form."""
    (await api.create(CLAIM, claim())).ok()
    (await api.merge(f"{CLAIM}/claim/status", {"status": {"allocation": allocation(node="n1")}})).ok()
    robot = {"kind": "ServiceAccount", "name": "driver", "namespace": api.ns}
    rules = [
        _rule("resource.k8s.io", "resourceclaims resourceclaims/status", ["get", "patch"]),
        _rule("resource.k8s.io", "resourceclaims/driver", ["associated-node:patch"]),
    ]
    await _grant(api, "driver", rules, robot)
    change = {"status": {"devices": [{"driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}]}}
    at_home, abroad = (api.as_account("driver").on_node(name) for name in ("n1", "n2"))
    await _allowed(at_home, f"{CLAIM}/claim")
    refused = await abroad.merge(f"{CLAIM}/claim/status", change)
    user = f"system:serviceaccount:{api.ns}:driver"
    assert refused.causes == [_needs_driver(api, user, "[arbitrary-node:patch]", "arbitrary-node:patch")]
    (await at_home.merge(f"{CLAIM}/claim/status", change)).ok()


async def test_operator_role_as_it_is_installed_suffices(api: Client, cluster: Cluster) -> None:
    """Cp V-82: `resourceclaims/binding` with patch, cluster-wide, beside the status."""
    rules = [
        _rule("resource.k8s.io", "resourceclaims/status", ["patch"]),
        _rule("resource.k8s.io", "resourceclaims/binding", ["patch"]),
    ]
    who = await _claim_writer(api, cluster, *rules)
    await _in_force(who, "patch", "resource.k8s.io", "resourceclaims", subresource="binding")
    made = (await api.create(CLAIM, claim())).ok()
    guard = {"uid": made.meta["uid"], "resourceVersion": made.version}
    status = {"allocation": allocation(), "reservedFor": [consumer()]}
    (await who.merge(f"{CLAIM}/claim/status", {"metadata": guard, "status": status})).ok()


# --- tokens and reviews


async def test_token_of_a_service_account_is_that_account(api: Client) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
    (await api.create("/api/v1/namespaces/{ns}/serviceaccounts", account)).ok()
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 600},
    }
    made = (await api.create("/api/v1/namespaces/{ns}/serviceaccounts/robot/token", body)).ok()
    headers = {"Authorization": f"Bearer {made.body['status']['token']}"}
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    url = f"{api.server.url}/apis/authentication.k8s.io/v1/selfsubjectreviews"
    async with api._session.post(url, json=review, headers=headers, ssl=api.server.ssl) as response:
        found = (await response.json())["status"]["userInfo"]
    assert found["username"] == f"system:serviceaccount:{api.ns}:robot"
    assert "system:serviceaccounts" in found["groups"]


async def test_impersonating_needs_the_right_to(api: Client) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
    (await api.create("/api/v1/namespaces/{ns}/serviceaccounts", account)).ok()
    made = (await api.create("/api/v1/namespaces/{ns}/serviceaccounts/robot/token", {"spec": {}})).ok()
    headers = {"Authorization": f"Bearer {made.body['status']['token']}", "Impersonate-User": "jane"}
    url = f"{api.server.url}/api/v1/namespaces/{api.ns}/pods"
    async with api._session.get(url, headers=headers, ssl=api.server.ssl) as response:
        body = await response.json()
    assert (response.status, body["reason"]) == (403, "Forbidden")
    assert body["message"] == (
        f'pods is forbidden: User "system:serviceaccount:{api.ns}:robot" cannot impersonate-on:user-info:list'
        f' resource "pods" in API group "" in the namespace "{api.ns}"'
    )
