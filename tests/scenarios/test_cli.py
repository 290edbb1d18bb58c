"""`kubectl dra` as its user runs it: against a server, with a kubeconfig and the rights of a user of one namespace."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from click.testing import CliRunner

from dra_operator.cli import main
from dra_operator.testing.builders import claim, namespace, request
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


async def run(kubeconfig: Path, *arguments: str) -> Result:
    environment = {"KUBECONFIG": str(kubeconfig)}
    return await asyncio.to_thread(CliRunner().invoke, main, ["claims", *arguments], env=environment)


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
