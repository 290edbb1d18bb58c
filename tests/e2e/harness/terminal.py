"""A person at a terminal: types whole command lines, and reads what they print. Tests of what users see use it.

The commands are the real ones beside the running Python (kubectl with its plugin kubectl-dra), with one kubeconfig, that of the
person. Everything typed and printed is in the test's output, as a person would have it on the screen.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tests.e2e.harness.kubectl import as_documents
from tests.e2e.harness.waiting import wait_until

if TYPE_CHECKING:
    from tests.e2e.harness.workspace import Workspace

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Terminal:
    """One person's shell.

    Attributes:
        kubeconfig: Of the person; its context names the namespace.
        timeout: Seconds for a command; the plugin, a Python program, takes a second of CPU, of which a busy machine may give little.
    """

    kubeconfig: Path
    timeout: float = 120.0

    @classmethod
    def jane(cls, workspace: Workspace, role: str) -> Self:
        """The user jane, with one of Kubernetes' own roles in a workspace's namespace and no other rights; kube-apiserver knows of it."""
        workspace.kubectl.run("create", "rolebinding", "jane", f"--clusterrole={role}", "--user=jane")
        kubeconfig = workspace.control_plane.user_kubeconfig(workspace.namespace)
        looking = workspace.kubectl.as_user(kubeconfig)
        wait_until(lambda: looking.may("get", "resourceclaims.resource.k8s.io"), "jane's role is known")
        return cls(kubeconfig)

    def type(self, line: str, *objects: Object) -> str:
        """Runs a command line that must succeed.

        Args:
            line: As a shell would split it; there is no shell behind it.
            objects: What the command reads from its standard input, as YAML.

        Returns: What it printed, both streams.
        """
        status, text = self._run(line, objects)
        assert status == 0, f"$ {line}\n{text}(exit status {status})"
        return text

    def read(self, line: str) -> Any:
        """What a command line prints as JSON, parsed and not shown: for the test, as no person reads it."""
        status, text = self._run(line, (), quiet=True)
        assert status == 0, f"$ {line}\n{text}(exit status {status})"
        return json.loads(text)

    def refused(self, line: str, *objects: Object) -> str:
        """Runs a command line that must fail; returns what it printed."""
        status, text = self._run(line, objects)
        assert status != 0, f"$ {line}\n{text}(exit status 0)"
        return text

    def shows(self, line: str, *words: str, timeout: float = 30.0) -> str:
        """Types a line again and again until it succeeds and all words are in what it prints; returns that."""
        _, text = wait_until(
            lambda: self._run(line, (), quiet=True),
            f"`{line}` prints {words}",
            timeout=timeout,
            accept=lambda done: done[0] == 0 and all(word in done[1] for word in words),
        )
        _echo(line, text)
        return text

    def _run(self, line: str, objects: tuple[Object, ...], *, quiet: bool = False) -> tuple[int, str]:
        done = subprocess.run(
            shlex.split(line),
            input=as_documents(list(objects)) if objects else "",
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=self.timeout,
            check=False,
        )
        if not quiet:
            _echo(line, done.stdout)
        return done.returncode, done.stdout

    def _environment(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return kept | {"KUBECONFIG": str(self.kubeconfig), "KUBECTL_KUBERC": "false", "PATH": path}


def _echo(line: str, text: str) -> None:
    print(f"$ {line}\n{text}", flush=True)
