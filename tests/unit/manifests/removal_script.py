"""`manifests/uninstall.sh` on a machine whose kubectl follows a script: for the ways in which clusters fail, which no server plays on demand.

What kubectl does without a cluster (jsonpath, patches, kustomize) is done by the real one.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tests.unit.manifests.build import MANIFESTS, built, one

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SCRIPT = MANIFESTS / "uninstall.sh"
REAL = Path(sys.executable).parent / "kubectl"
KINDS = (
    "pods",
    "clusterroles.rbac.authorization.k8s.io",
    "mutatingadmissionpolicies.admissionregistration.k8s.io",
    "devicetaintrules.resource.k8s.io",
)

Obj = dict[str, Any]


def failing(words: str = "the server is currently unable to handle the request") -> str:
    """A rule's answer: kubectl fails."""
    return f"echo {shlex.quote(words)} >&2; exit 1"


def printing(text: str) -> str:
    """A rule's answer: kubectl prints something."""
    return f"printf '%s\\n' {shlex.quote(text)}"


@dataclass(slots=True)
class Machine:
    """A kubectl and a script to run on it.

    Attributes:
        folder: Empty at first.
        deployment: The operator's, as kubectl has it; None if it is gone, which is faster.
        rules: What kubectl does, by a glob on its arguments; the first that matches. A healthy cluster comes after them.
    """

    folder: Path
    deployment: Obj | None = None
    rules: dict[str, str] = field(default_factory=dict)

    def run(
        self, *flags: str, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Runs the shipped script; its exit status and words."""
        self._write()
        path = f"{self.folder / 'bin'}:/usr/bin:/bin"
        return subprocess.run(
            ["sh", str(SCRIPT), *flags],
            env={"PATH": path, **(environment or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    @property
    def calls(self) -> list[str]:
        """The arguments of each call of kubectl, joined by spaces."""
        return (self.folder / "calls").read_text().splitlines()

    def deleted(self) -> set[str]:
        """All that kubectl was told to delete, as `kind/name`."""
        found: set[str] = set()
        for call in self.calls:
            words = [word for word in call.split() if not word.startswith("-")]
            if words[:1] == ["delete"]:
                found |= set(_objects(words[1:]))
        return found

    @property
    def job(self) -> Obj:
        """The Job that was applied."""
        made: Obj = json.loads((self.folder / "job").read_text())
        return made

    @property
    def pod(self) -> Obj:
        """The spec of the Job's pod."""
        spec: Obj = self.job["spec"]["template"]["spec"]
        return spec

    @property
    def container(self) -> Obj:
        """The one container of the Job."""
        (found,) = self.pod["containers"]
        return dict(found)

    # --- the program

    def _write(self) -> None:
        (self.folder / "bin").mkdir()
        (self.folder / "release-job").write_text(
            json.dumps(one(built("manifests/release"), "Job", "dra-operator-release"))
        )
        if self.deployment is not None:
            (self.folder / "deployment").write_text(yaml.safe_dump(self.deployment))
        self._program("kubectl", self._kubectl())
        self._program("sleep", "")

    def _program(self, name: str, text: str) -> None:
        place = self.folder / "bin" / name
        place.write_text(f"#!/bin/sh\n{text}\n")
        place.chmod(0o755)

    def _kubectl(self) -> str:
        real, here = shlex.quote(str(REAL)), shlex.quote(str(self.folder))
        healthy = {
            "*patch --local*": f'exec {real} "$@"',
            "*create --kustomize=*": f"cat {here}/release-job",
            "*apply --filename=-*": f"cat > {here}/job; [ -s {here}/job ]",
            "*get deployment/dra-operator*": (
                f"for last; do :; done; [ ! -e {here}/deployment ] || "
                f'exec {real} patch --local --filename={here}/deployment --patch={{}} "$last"'
            ),
            "*api-resources*": printing("\n".join(KINDS)),
            "*get job/*": "printf 'Complete '",
        }
        cases = [
            f"{_glob(glob)}) {{ {answer}; }} ;;" for glob, answer in [*self.rules.items(), *healthy.items()]
        ]
        return "\n".join(
            [f'set -f; {{ printf "%s " $*; echo; }} >> {here}/calls', 'case "$*" in', *cases, "esac"],
        )


def _glob(pattern: str) -> str:
    """A pattern of `case` whose only special character is the star."""
    return "*".join(shlex.quote(part) if part else "" for part in pattern.split("*"))


def _objects(words: Sequence[str]) -> list[str]:
    """`a/b c/d` or `a b` as objects."""
    if "/" in words[0]:
        return list(words)
    kind, *names = words
    return [f"{kind}/{name}" for name in names]


def counted(folder: Path, times: int, answer: str, otherwise: str) -> str:
    """A rule's answer: one thing so many times, and then another."""
    tally = shlex.quote(str(folder / "tally"))
    return f"echo x >> {tally}; if [ $(wc -l < {tally}) -le {times} ]; then {answer}; else {otherwise}; fi"
