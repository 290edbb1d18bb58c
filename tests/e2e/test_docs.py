"""The commands of README.md and docs/, run as their readers run them: in order, on one cluster, with the files that the pages show.

Each page goes on where the one before it ended (`tests.docs.commands.STORY`). A command must end well and print what its page shows. The
pages as text are judged by `tests/docs`; which commands cannot be run here stands in `tests.docs.coverage`.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.docs.commands import STORY, Command, commands, matches, pages, steps
from tests.docs.coverage import PROGRAM, REMOVAL, is_for_cluster, is_with_its_own_cluster
from tests.e2e.harness.objects import node
from tests.e2e.harness.operator_process import ROOT
from tests.e2e.harness.podrunner import PodRunner
from tests.e2e.harness.waiting import NotInTimeError, wait_until
from tests.e2e.install_fixtures import NODE, UNINSTALL_TIMEOUT, Installation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.harness.cluster import ControlPlane

USER_PAGES = frozenset({"docs/workload-operator.md"})
"""Read by people who have the role `edit` in one namespace, and nothing else."""

TEAM = "team-a"
TIMEOUT = 120.0
LOOKS = re.compile(r"kubectl ((--\S+ )*(get|describe|events|logs|dra|auth)\b|.*--dry-run=server\b)")
"""Commands that change nothing: their output is looked at again until it is as shown, as events and status come a little later."""

LOOK_TIMEOUT = 30.0

MADE_BY_READERS = (
    "namespaces",
    "validatingadmissionpolicybindings",
    "validatingadmissionpolicies",
    "clusterrolebindings",
    "resourceslices",
    "deviceclasses",
    "nodes",
)
"""What is in no namespace and the removal does not remove, in the order in which it goes."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Who follows the pages.

    Attributes:
        installation: of the operator, and the kubelet that runs it.
        folder: what he has of the clone, and the files that the pages tell him to write.
    """

    installation: Installation
    folder: Path

    def write(self, path: str, text: str) -> None:
        """A file of a page."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def follow(self, command: Command, kubeconfig: Path) -> None:
        """Runs one command.

        Raises:
            AssertionError: it failed, or printed something else than its page shows.
        """
        if LOOKS.match(command.text) and command.output:
            try:
                wait_until(
                    lambda: self._printed(command, kubeconfig),
                    command.text,
                    timeout=LOOK_TIMEOUT,
                    accept=lambda printed: matches(command.output, printed),
                )
            except NotInTimeError as error:
                raise AssertionError(f"$ {command.text}\nshown:\n{command.output}\n{error}") from error
            return
        done = self._run(command, kubeconfig)
        printed = done.stdout
        if command.output:
            assert matches(command.output, printed), f"$ {command.text}\n{printed}\nshown:\n{command.output}"
        else:
            assert done.returncode == 0, f"$ {command.text}\n{printed}"

    def _printed(self, command: Command, kubeconfig: Path) -> str:
        if command.text.endswith("/proxy/readyz"):
            return self._readyz()
        if " logs --selector=" in command.text:
            return self.installation.runner.log_text()
        return self._run(command, kubeconfig).stdout

    def _readyz(self) -> str:
        """What the API server's proxy would bring: there is no pod network here."""
        with urllib.request.urlopen(f"{self.installation.url}/readyz", timeout=10) as answer:
            return str(answer.read().decode())

    def _run(self, command: Command, kubeconfig: Path) -> subprocess.CompletedProcess[str]:
        """With the program's folder first on the PATH, and no kubeconfig but this one."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "KUBECONFIG": str(kubeconfig), "KUBECTL_KUBERC": "false"}
        return subprocess.run(
            ["sh", "-c", command.text],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            text=True,
            timeout=UNINSTALL_TIMEOUT if command.text == REMOVAL else TIMEOUT,
            check=False,
        )


@pytest.fixture(scope="module")
def reader(install_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """A cluster with a node for the operator, and a folder with what of the clone the commands need."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("crds", "manifests", "docs/example"):
        shutil.copytree(ROOT / name, folder / name)
    install_plane.kubectl.apply(node(NODE, labels={"kubernetes.io/os": "linux"}))
    before = names_of_all(install_plane)
    with PodRunner(install_plane, {"DRA_OPERATOR_SETTLE_SECONDS": "1"}) as runner:
        made = Reader(Installation(install_plane, runner), folder)
        yield made
        if made.installation.left():
            print(runner.log_text(), flush=True)
            made.installation.uninstall()
    for kind in MADE_BY_READERS:
        names = [name for name in names_of_all(install_plane)[kind] if name not in before[kind]]
        if names:
            install_plane.kubectl.delete(kind, *names)


def names_of_all(plane: ControlPlane) -> dict[str, list[str]]:
    """Names by kind."""
    return {
        kind: plane.kubectl.run("get", kind, "--output=jsonpath={.items[*].metadata.name}").split()
        for kind in MADE_BY_READERS
    }


def kubeconfig_for(page: str, plane: ControlPlane) -> Path:
    """The page's reader: an admin, or a user of one namespace."""
    if page not in USER_PAGES:
        return plane.kubeconfig
    found = plane.service_account(TEAM, "anna")
    inside = plane.kubectl.in_namespace(TEAM)
    inside.run("create", "rolebinding", "edit", "--clusterrole=edit", f"--serviceaccount={TEAM}:anna")
    return found


@pytest.mark.parametrize("page", STORY)
@pytest.mark.timeout(300)
def test_a_page_is_followed_to_its_end(reader: Reader, page: str) -> None:
    kubeconfig = kubeconfig_for(page, reader.installation.control_plane)
    for step in steps(page):
        if not isinstance(step, Command):
            reader.write(step.path, step.text)
        elif is_for_cluster(step.text) and step.text != REMOVAL:
            reader.follow(step, kubeconfig)


@pytest.mark.timeout(300)
def test_the_command_of_the_pages_removes_it(reader: Reader) -> None:
    """Last, as it is the end of every page that has it."""
    plane = reader.installation.control_plane
    reader.follow(Command(REMOVAL, "", 0), plane.kubeconfig)

    assert reader.installation.left() == []
    assert plane.kubectl.get_all("devicetaintrules") == []


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    "command", [one for page in pages() for one in commands(page) if is_with_its_own_cluster(one.text)]
)
def test_a_program_with_a_control_plane_of_its_own_prints_what_is_shown(command: Command) -> None:
    words = [sys.executable, "-m", *shlex.split(command.text.removeprefix(PROGRAM))]
    done = subprocess.run(
        words, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=170, check=False
    )
    assert done.returncode == 0, done.stderr
    assert matches(command.output, done.stdout), done.stdout
