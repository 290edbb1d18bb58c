"""`kubectl dra` as its user runs it: against a server, with a kubeconfig and the rights of a user of one namespace."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from click.testing import CliRunner

from dra_operator.cli import main
from dra_operator.kube.api import MERGE, Api
from dra_operator.model.marks import MARK
from dra_operator.testing.builders import claim, devices, namespace, node, request, resource_slice
from dra_operator.testing.fakeapi import FakeApi

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from click.testing import Result


@pytest.fixture
async def server() -> AsyncIterator[FakeApi]:
    """Claims in two namespaces; jane may read one of them, as `view` lets her."""
    async with FakeApi(rbac=True) as started:
        for name in ("mine", "theirs"):
            started.create(namespace(name))
        for name in ("mine", "theirs"):
            started.create(claim(f"claim-of-{name}", request("gpu", "gpu.test"), namespace=name))
        for name in ("mine", "default"):
            started.create(binding(name))
        yield started


def binding(where: str) -> dict[str, Any]:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "jane", "namespace": where},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "jane"}],
    }


@pytest.fixture
def kubeconfig(server: FakeApi, tmp_path: Path) -> Path:
    """Jane's, in a context of her namespace."""
    assert server.guard is not None
    document = yaml.safe_load(server.kubeconfig(server.guard.user_token("jane")))
    document["contexts"][0]["context"]["namespace"] = "mine"
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


async def run(kubeconfig: Path, *arguments: str, command: str = "claims") -> Result:
    environment = {"KUBECONFIG": str(kubeconfig)}
    return await asyncio.to_thread(CliRunner().invoke, main, [command, *arguments], env=environment)


def names(shown: Result) -> list[str]:
    assert shown.exit_code == 0, shown.output
    return [row["claim"] for row in json.loads(shown.stdout)]


async def test_the_namespace_is_that_of_the_context_as_everywhere_in_kubectl(kubeconfig: Path) -> None:
    assert names(await run(kubeconfig, "--output=json")) == ["claim-of-mine"]


async def test_a_flag_names_another_namespace_and_none_is_told_with_its_name(kubeconfig: Path) -> None:
    shown = await run(kubeconfig, "--namespace=default")

    assert (shown.exit_code, shown.stdout) == (0, "")
    assert shown.stderr == "No claims found in namespace default.\n"


async def test_the_administrator_sees_all_namespaces(server: FakeApi, tmp_path: Path) -> None:
    admin = server.write_kubeconfig(tmp_path / "admin")

    assert names(await run(admin, "--all-namespaces", "--output=json")) == [
        "claim-of-mine",
        "claim-of-theirs",
    ]


@pytest.mark.parametrize(
    ("flag", "remedy"),
    [
        ("--namespace=theirs", "Name a namespace of yours with --namespace"),
        ("--all-namespaces", "Name a namespace of yours with --namespace instead of --all-namespaces"),
    ],
)
async def test_without_the_right_it_says_whose_right_is_missing_and_what_to_do(
    kubeconfig: Path, flag: str, remedy: str
) -> None:
    shown = await run(kubeconfig, flag)

    assert (shown.exit_code, shown.stdout) == (1, "")
    assert 'User "jane" cannot list resource "resourceclaims"' in shown.stderr
    assert remedy in shown.stderr


# --- drift


async def drift(kubeconfig: Path, *arguments: str, apart: float = 0.0) -> Result:
    return await run(kubeconfig, f"--apart={apart}", *arguments, command="drift")


def half_a_pool(where: str) -> dict[str, Any]:
    """One of two slices."""
    return resource_slice("one", "gpu.test", devices(1), node=where, resourceSliceCount=2)


def marked(name: str, where: str) -> dict[str, Any]:
    """A claim that bears the operator's mark and is not allocated."""
    found = claim(name, request("gpu", "gpu.test"), namespace=where)
    found["metadata"]["annotations"] = {MARK: "feedfacefeedface"}
    return found


async def test_without_drift_nothing_is_printed_and_the_status_is_0(
    kubeconfig: Path, server: FakeApi, tmp_path: Path
) -> None:
    shown = await drift(server.write_kubeconfig(tmp_path / "admin"), "-A")
    assert (shown.exit_code, shown.stdout, shown.stderr) == (0, "", "No drift found in any namespace.\n")

    shown = await drift(kubeconfig)
    assert (shown.exit_code, shown.stdout) == (0, "")
    assert "No drift found in namespace mine." in shown.stderr


async def test_who_may_read_one_namespace_sees_its_findings_and_is_told_what_could_not_be_seen(
    kubeconfig: Path, server: FakeApi
) -> None:
    server.create(marked("left", "mine"))
    server.create(marked("hidden", "theirs"))

    shown = await drift(kubeconfig)

    assert shown.exit_code == 1
    assert [line.split()[:3] for line in shown.stdout.splitlines()[1:]] == [
        ["MarkLeft", "ResourceClaim", "mine/left"]
    ]
    assert "findings that need" in shown.stderr
    assert "ResourceSlice" in shown.stderr
    assert "which you may not list there" in shown.stderr


@pytest.mark.parametrize(
    ("output", "read"), [("json", json.loads), ("yaml", yaml.safe_load)], ids=["json", "yaml"]
)
async def test_findings_for_programs_name_object_text_and_remedy(
    server: FakeApi, tmp_path: Path, output: str, read: Any
) -> None:
    server.create(marked("left", "mine"))
    admin = server.write_kubeconfig(tmp_path / "admin")

    shown = await drift(admin, "-A", f"--output={output}")

    assert shown.exit_code == 1
    (finding,) = read(shown.stdout)["findings"]
    assert (finding["finding"], finding["object"]["name"]) == ("MarkLeft", "left")
    assert set(finding) == {"finding", "object", "text", "others", "remedy", "repair"}
    named = await drift(admin, "-A", "--output=name")
    assert (named.exit_code, named.stdout) == (1, "resourceclaim.resource.k8s.io/left\n")


@pytest.mark.parametrize("name", ["824509e6", "0o17", "12e-3"])
async def test_names_that_are_numbers_to_other_readers_of_yaml_are_quoted(
    server: FakeApi, tmp_path: Path, name: str
) -> None:
    server.create(marked(name, "mine"))

    shown = await drift(server.write_kubeconfig(tmp_path / "admin"), "-A", "--output=yaml")

    assert f"name: '{name}'" in shown.stdout


async def test_what_belongs_to_no_namespace_is_shown_to_who_looks_into_all(
    server: FakeApi, tmp_path: Path
) -> None:
    admin = server.write_kubeconfig(tmp_path / "admin")
    server.create(node("n1"))
    server.create(half_a_pool("n1"))

    shown = await drift(admin, "-A")
    assert (shown.exit_code, "PoolStuck" in shown.stdout) == (1, True)
    assert (await drift(admin, "-n", "mine")).exit_code == 0


async def test_what_is_over_at_the_second_look_is_no_drift(server: FakeApi, tmp_path: Path) -> None:
    server.create(marked("left", "mine"))
    server.create(marked("working", "mine"))
    admin = server.write_kubeconfig(tmp_path / "admin")

    looking = asyncio.create_task(drift(admin, "-A", "--output=name", apart=2.0))
    async with asyncio.timeout(60):
        while not any((call.verb, call.plural) == ("list", "nodes") for call, _ in server.calls):  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0.02)
    async with await Api.connect(str(admin), None) as api:
        path = "/apis/resource.k8s.io/v1/namespaces/mine/resourceclaims/working"
        await api.request("PATCH", path, body={"metadata": {"annotations": None}}, content_type=MERGE)
    shown = await looking

    assert (shown.exit_code, shown.stdout) == (1, "resourceclaim.resource.k8s.io/left\n")


async def test_what_is_left_of_an_operator_is_found_where_its_own_kind_is_gone_too(
    server: FakeApi, tmp_path: Path
) -> None:
    taint = {"key": "dra-operator.io/owned", "effect": "NoSchedule"}
    rule = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "dra-operator-gpus-0123456789", "labels": {"dra-operator.io/policy": "gpus"}},
        "spec": {"deviceSelector": {"driver": "gpu.test"}, "taint": taint},
    }
    gated = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "mine"},
        "spec": {
            "containers": [{"name": "main", "image": "example.com/app:1"}],
            "schedulingGates": [{"name": "dra-operator.io/allocate"}],
        },
    }
    server.create(rule)
    server.create(gated)

    shown = await drift(server.write_kubeconfig(tmp_path / "admin"), "-A")

    assert shown.exit_code == 1
    assert [line.split()[0] for line in shown.stdout.splitlines()[1:]] == ["GateUseless", "RuleStray"]


async def test_an_error_has_another_status_than_findings(kubeconfig: Path, tmp_path: Path) -> None:
    refused = await drift(kubeconfig, "--namespace=theirs")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "Name a namespace of yours" in refused.stderr

    nobody = await drift(tmp_path / "none")
    assert nobody.exit_code == 2
