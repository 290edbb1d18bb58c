"""The operator on an embedded server with access control: as its ServiceAccount, with the shipped roles or all of them but one right."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Self

from dra_operator.kube.api import MERGE, Api
from dra_operator.testing.fakeapi import FakeApi
from tests.e2e.harness.rights import BASE, Right, rights_in, shipped

from .world import World

if TYPE_CHECKING:
    from .objects import Obj

NAMESPACE = ACCOUNT = "dra-operator"
CLUSTER_ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"


def without(role: Obj, right: Right) -> Obj:
    """A role that gives all but that right."""
    rules = []
    for rule in role["rules"]:
        for found in rights_in(rule):
            if found != right:
                one = {"apiGroups": [found.group], "resources": [found.resource], "verbs": [found.verb]}
                rules.append({**rule, **one})
    return {**role, "rules": rules}


class Guarded(World):
    """A world whose server lets the operator do what its roles say.

    Args:
        standins: of the embedded server.
        files: of manifests with the operator's roles.
        lacks: a right that is taken out of all of them.
        flags: the operator's settings.
    """

    def __init__(
        self, *standins: str, files: tuple[str, ...] = (BASE,), lacks: Right | None = None, **flags: Any
    ) -> None:
        super().__init__(*standins, **{"lease_namespace": NAMESPACE, **flags})
        self.server = FakeApi(standins, rbac=True)
        self._files, self._lacks = files, lacks

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        for obj in (obj for file in self._files for obj in shipped(file)):
            is_role = obj["kind"] in {"ClusterRole", "Role"}
            self.add(without(obj, self._lacks) if is_role and self._lacks else obj)
        return self

    async def grant(self, lacks: Right | None = None) -> None:
        """From now on the ClusterRoles give all but that right."""
        for role in (obj for file in self._files for obj in shipped(file) if obj["kind"] == "ClusterRole"):
            rules = (without(role, lacks) if lacks else role)["rules"]
            path = f"{CLUSTER_ROLES}/{role['metadata']['name']}"
            await self.user.request("PATCH", path, body={"rules": rules}, content_type=MERGE)

    def connection(self) -> Api:
        """As the ServiceAccount."""
        assert self.server.guard is not None
        return Api.at(self.server.url, self.server.guard.account_token(NAMESPACE, ACCOUNT, "u1"))

    def asked(self, right: Right) -> list[int]:
        """The codes of the answers to requests that need a right; a user's count, too, but are never refused."""
        return [
            code
            for call, code in self.server.calls
            if (call.group, call.resource, call.verb) == (right.group, right.resource, right.verb)
        ]

    def says(self) -> str:
        """All that the operator tells: /readyz, then events."""
        assert self.operator is not None
        told = [str(event["message"]) for event in self.events]
        return "\n".join((json.dumps(self.operator.vitals.readiness()), *told))
