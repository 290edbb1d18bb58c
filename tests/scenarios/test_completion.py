"""Completion as shells and kubectl ask for it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from dra_operator.cli import main

KUBECTL = Path(sys.executable).parent / "kubectl"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder for the PATH with the programs that pyproject.toml names."""
    for name, where, what in (
        ("kubectl-dra", "dra_operator.cli", "main"),
        ("kubectl_complete-dra", "dra_operator.cli.completion", "complete"),
    ):
        path = tmp_path / name
        path.write_text(f"#!{sys.executable}\nfrom {where} import {what}\n{what}()\n")
        path.chmod(0o755)
    return tmp_path


def kubectl(programs: Path, *words: str) -> list[str]:
    """What kubectl's own completion is told for `kubectl dra …`."""
    done = subprocess.run(
        [KUBECTL, "__complete", "dra", *words],
        env={"PATH": f"{programs}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def test_kubectl_completes_commands_flags_and_values_without_files(programs: Path) -> None:
    *commands, directive = kubectl(programs, "p")
    assert [line.split("\t")[0] for line in commands] == ["pools"]
    assert directive == ":4"
    assert kubectl(programs, "devices", "--state", "t") == ["tainted", ":4"]
    assert [line.split("\t")[0] for line in kubectl(programs, "claims", "--sel")] == ["--selector", ":4"]


def test_kubectl_completes_names_of_files_where_a_file_is_wanted(programs: Path) -> None:
    assert kubectl(programs, "pools", "--from", "") == [":0"]


def test_bash_completes_by_the_script_that_the_command_prints(programs: Path) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    script = CliRunner().invoke(main, ["completion", "bash"]).stdout
    asked = 'COMP_WORDS=(kubectl-dra po) COMP_CWORD=1; _kubectl_dra_completion kubectl-dra; echo "${COMPREPLY[@]}"'

    done = subprocess.run(
        [bash, "-c", f"{script}\n{asked}"],
        env={"PATH": f"{programs}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.split() == ["pools"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_there_is_a_script_for_other_shells(shell: str) -> None:
    shown = CliRunner().invoke(main, ["completion", shell])

    assert shown.exit_code == 0
    assert f"_KUBECTL_DRA_COMPLETE={shell}_complete" in shown.stdout
