"""`dra-operator release` takes a pod for the operator's only if it can be: by what its ServiceAccount may do, not by a label alone.

On an embedded server with access control, as the ServiceAccount of the release Job, with the shipped roles and no other right.
"""

from __future__ import annotations

import socket
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from dra_operator.app.release import give_back
from dra_operator.app.running import running
from dra_operator.kube.api import MERGE, Api
from dra_operator.settings import build
from dra_operator.testing.fakeapi import FakeApi
from dra_operator.testing.fakeapi.failures import StatusError
from dra_operator.testing.fakeapi.faults import Fault

from .objects import pod
from .world import World

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

MANIFESTS = Path(__file__).resolve().parents[3] / "manifests"
ROLES = ("base/rbac.yaml", "release/rbac.yaml")
LABEL = {"app.kubernetes.io/name": "dra-operator"}

Obj = dict[str, Any]


@asynccontextmanager
async def as_the_job() -> AsyncIterator[tuple[FakeApi, Api]]:
    """A server, and a connection to it as the release Job has one."""
    async with FakeApi(rbac=True) as server:
        assert server.guard is not None
        for name in ("dra-operator", "team"):
            server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for file in ROLES:
            for obj in yaml.safe_load_all((MANIFESTS / file).read_text()):
                server.create(obj)
        token = server.guard.account_token("dra-operator", "dra-operator-release", "u1")
        async with Api.at(server.url, token) as api:
            yield server, api


def labelled(namespace: str, name: str, account: str, **status: str) -> Obj:
    made = pod(name, gates=(), serviceAccountName=account)
    made["metadata"] |= {"namespace": namespace, "labels": LABEL}
    return {**made, "status": status} if status else made


async def names(api: Api) -> list[str]:
    return [found.key for found in await running(api)]


async def test_a_pod_counts_if_its_account_may_allocate_everywhere() -> None:
    """Also one of 0.1.0, which had no other label, and one in another namespace, if an admin has bound the role to its account."""
    async with as_the_job() as (server, api):
        server.create(labelled("dra-operator", "operator", "dra-operator"))
        server.create(labelled("team", "theirs", "dra-operator"))
        assert await names(api) == ["dra-operator/operator"]

        binding = next(
            found
            for found in server.objects("clusterrolebindings", "rbac.authorization.k8s.io")
            if found["metadata"]["name"] == "dra-operator"
        )
        subject = {"kind": "ServiceAccount", "name": "dra-operator", "namespace": "team"}
        server.create({**binding, "metadata": {"name": "also-there"}, "subjects": [subject]})

        assert sorted(await names(api)) == ["dra-operator/operator", "team/theirs"]


async def test_a_user_of_one_namespace_cannot_keep_the_operator_from_being_removed() -> None:
    """Whatever names and labels she gives her pod: rights on her own namespace do not make it an operator."""
    async with as_the_job() as (server, api):
        server.create(labelled("team", "decoy", "dra-operator"))
        server.create(
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "RoleBinding",
                "metadata": {"name": "mine", "namespace": "team"},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": "dra-operator",
                },
                "subjects": [{"kind": "ServiceAccount", "name": "dra-operator", "namespace": "team"}],
            }
        )

        assert await give_back(api, build(settle_seconds=0.0), 0.0) == 0


async def test_the_remedy_names_the_namespace_of_the_pod(caplog: pytest.LogCaptureFixture) -> None:
    async with as_the_job() as (server, api):
        server.create(labelled("dra-operator", "operator-7", "dra-operator"))

        assert await give_back(api, build(settle_seconds=0.0), 0.0) == 1

    assert "the operator still runs: pod dra-operator/operator-7" in caplog.text
    assert "kubectl --namespace=dra-operator delete pod operator-7 --force" in caplog.text


async def test_without_the_right_to_ask_the_label_has_to_do() -> None:
    async with as_the_job() as (server, api):
        server.create(labelled("team", "theirs", "default"))
        refused = StatusError(403, "Forbidden", "User cannot create resource")
        server.faults.add(Fault(error=refused, resource="subjectaccessreviews", times=9))

        assert await names(api) == ["team/theirs"]


@pytest.mark.parametrize(
    ("changes", "levels"),
    [
        ({}, ["WARNING"]),
        ({"phase": "Pending"}, []),
        ({"phase": "Succeeded"}, []),
        ({"name": socket.gethostname()}, []),
        ({"account": "default"}, []),
        ({"namespace": "team"}, []),
        ({"ends": "yes"}, []),
    ],
)
async def test_a_second_operator_says_so_at_its_start(
    changes: Mapping[str, str], levels: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Not for a pod that is its own, that ends, or that anybody could have given that label."""
    facts = {
        "namespace": "dra-operator",
        "name": "first",
        "account": "dra-operator",
        "phase": "Running",
        **changes,
    }
    other = labelled(facts["namespace"], facts["name"], facts["account"])
    other["metadata"]["finalizers"] = ["example.com/wait"]
    path = f"/api/v1/namespaces/{facts['namespace']}/pods/{facts['name']}"
    async with World() as here:
        for name in ("team", "dra-operator"):
            here.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        here.add(other)
        await here.user.request(
            "PATCH", f"{path}/status", body={"status": {"phase": facts["phase"]}}, content_type=MERGE
        )
        if "ends" in changes:
            await here.user.request("DELETE", path)
        await here.start()
    found = [record for record in caplog.records if "another operator runs" in record.getMessage()]
    assert [record.levelname for record in found] == levels
    assert all("pod dra-operator/first." in record.getMessage() for record in found)
    assert all("--replicas=0" in record.getMessage() for record in found)
