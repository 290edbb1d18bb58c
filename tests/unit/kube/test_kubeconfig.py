"""A kubeconfig that cannot be used is refused in words about the file, and what works is let through."""

from __future__ import annotations

import base64
import copy
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from dra_operator.errors import InvalidSettings
from dra_operator.kube.kubeconfig import examine

if TYPE_CHECKING:
    from pathlib import Path

PEM = base64.b64encode(b"-----BEGIN CERTIFICATE-----\n").decode()
GOOD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "here",
    "clusters": [{"name": "c", "cluster": {"server": "https://x", "certificate-authority-data": PEM}}],
    "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
    "users": [
        {"name": "other", "user": {"exec": {"apiVersion": "v1", "command": "no-such-plug-in"}}},
        {"name": "u", "user": {"client-certificate-data": PEM, "client-key-data": f"{PEM[:8]}\n{PEM[8:]}\n"}},
    ],
}


def refusal(file: Path, text: str) -> str:
    """What is said of a file, without the file's name and the remedy that is the same for all."""
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidSettings) as caught:
        examine(str(file))
    assert caught.value.path == "kubeconfig"
    start, _, words = caught.value.message.partition(f"{file}: ")
    told, _, remedy = words.rpartition("; mend the file")
    assert start == "cannot use "
    assert f"kubectl config view --kubeconfig={file}" in remedy
    return told


def changed(path: str, value: Any) -> str:
    """The good one with another value at a path, as `users.1.user.token`."""
    config = copy.deepcopy(GOOD)
    *way, last = [int(step) if step.isdigit() else step for step in path.split("/")]
    at: Any = config
    for step in way:
        at = at[step]
    at[last] = value
    return yaml.safe_dump(config)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("foo", "it has to be a map with clusters, contexts and users, and is text"),
        ("", "it has to be a map with clusters, contexts and users, and is empty"),
        ("- a", "it has to be a map with clusters, contexts and users, and is a list"),
        ("5", "it has to be a map with clusters, contexts and users, and is a number or a date"),
        ("a: b: c", "line 1 is not YAML: mapping values are not allowed here"),
        ("a: \x00", "it is not YAML text"),
    ],
)
def test_what_is_no_kubeconfig_at_all(text: str, words: str, tmp_path: Path) -> None:
    assert refusal(tmp_path / "config", text) == words


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("clusters", 5, "clusters has to be a list, and is a number or a date"),
        ("current-context", ["a"], "current-context has to be text, and is a list"),
        ("clusters/0", "c", "clusters[0] has to be a map with name and cluster, and is text"),
        ("clusters/0/cluster", "c", "clusters[0].cluster has to be a map, and is text"),
        (
            "clusters/0/cluster/server",
            5,
            "clusters[0].cluster.server has to be text, and is a number or a date",
        ),
        ("contexts/0/context", None, "contexts[0].context is missing"),
        ("users/1/name", None, "users[1].name is missing"),
        (
            "users/1/user/client-certificate-data",
            "abc",
            "users[1].user.client-certificate-data is not base64; kubectl config set-credentials writes it",
        ),
        (
            "users/1/user/client-key-data",
            "YWJj",
            "users[1].user.client-key-data has to be the base64 of PEM text, which has -----BEGIN … in it",
        ),
        (
            "clusters/0/cluster/certificate-authority-data",
            "?",
            "clusters[0].cluster.certificate-authority-data is not base64; kubectl config set-credentials writes it",
        ),
        ("users/1/user/exec", "run", "users[1].user.exec has to be a map, and is text"),
        (
            "users/1/user/exec",
            {"apiVersion": "v1", "command": "no-such-plug-in"},
            "users[1].user.exec.command: there is no program no-such-plug-in to be run; install the plug-in",
        ),
        (
            "users/1/user/exec",
            {"apiVersion": "v1", "command": "sh", "env": [{"name": "A"}]},
            "users[1].user.exec.env[0] has to be a map with name and value, both text",
        ),
    ],
)
def test_what_is_wrong_is_named_by_its_path(path: str, value: object, words: str, tmp_path: Path) -> None:
    assert refusal(tmp_path / "config", changed(path, value)) == words


def test_a_file_that_cannot_be_read_and_the_one_of_several_that_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "good").write_text(yaml.safe_dump(GOOD), encoding="utf-8")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InvalidSettings, match=r"cannot use .*/folder: it cannot be read: Is a directory"):
        examine(f"{tmp_path}/good:{tmp_path}/missing:{tmp_path}/folder")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("apiVersion", "v1"),
        ("users/1/user", {}),
        (
            "users/1/user",
            {"exec": {"apiVersion": "v1", "command": "sh", "args": ["-c", "true"], "env": None}},
        ),
        ("users", None),
        ("clusters/0/cluster/certificate-authority-data", ""),
    ],
)
def test_what_can_be_used_is_let_through(path: str, value: object, tmp_path: Path) -> None:
    """Also a plug-in of a user whom the context does not name need not be there."""
    file = tmp_path / "config"
    file.write_text(changed(path, value), encoding="utf-8")
    examine(str(file))
