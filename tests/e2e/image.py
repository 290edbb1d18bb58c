"""Plays `docker build` with the shipped Dockerfile, where no Docker is at hand: its COPY and RUN steps, in a folder of its own.

Each stage has the folder `root` for its file system, and gives it up to the next stage: paths are the same in all stages, as in an
image. Three things differ from a real build, and the docs say so: the base image is the machine's own Python, RUN steps run as a
user without rights, and no layer is written. An instruction that is not known here fails.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from docker.utils.build import exclude_paths
from dockerfile_parse import DockerfileParser

if TYPE_CHECKING:
    from collections.abc import Sequence

USER = 65532
NO_RIGHTS = (
    "setpriv",
    f"--reuid={USER}",
    f"--regid={USER}",
    "--clear-groups",
    "--no-new-privs",
    # Reading is no right that matters here: the machine's Python may lie where only its owner can look.
    "--inh-caps=-all,+dac_read_search",
    "--ambient-caps=-all,+dac_read_search",
    "--bounding-set=-all,+dac_read_search",
)
"""Put before a command, where the test runs as root."""

IS_ROOT = os.geteuid() == 0


@dataclass(slots=True)
class Image:
    """What a Dockerfile's last stage has come to.

    Attributes:
        root: Its file system, less the base image.
        environment: Variables as the Dockerfile sets them, absolute paths still as in the image.
        user, labels, entrypoint, command: As the Dockerfile says.
    """

    root: Path
    environment: dict[str, str] = field(default_factory=dict)
    user: str = "0"
    labels: dict[str, str] = field(default_factory=dict)
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    folder: str = "/"

    def here(self, path: str) -> str:
        """A path in the image as a path on this machine; anything else stays as it is."""
        return f"{self.root}{path}" if path.startswith("/") else path

    def variables(self) -> dict[str, str]:
        """The environment of its processes: this machine's way to the network and to Python, then the Dockerfile's."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "VIRTUAL_ENV", "DRA_OPERATOR", "KUBE"))
        }
        python = str(Path(sys.executable).parent)
        own = {name: ":".join(map(self.here, value.split(":"))) for name, value in self.environment.items()}
        path = own.get("PATH", "$PATH").replace("$PATH", f"{python}:{os.environ['PATH']}")
        return kept | own | {"PATH": path, "HOME": str(self.root.parent / "home")}

    def exec(self, argv: Sequence[str], **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs a program of the image to its end, without rights."""
        return subprocess.run(
            [*(NO_RIGHTS if IS_ROOT else ()), *map(self.here, argv)],
            cwd=self.here(self.folder),
            env=self.variables() | variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def run(self, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """`docker run IMAGE ARGS`."""
        return self.exec([*self.entrypoint, *(args or self.command)], **variables)


class Build:
    """One build of the Dockerfile of a project; `run` gives the image.

    Args:
        project: Folder with Dockerfile and .dockerignore.
        workshop: Empty folder for the stages.
    """

    def __init__(self, project: Path, workshop: Path) -> None:
        self._project = project
        self._workshop = workshop
        self._context = _context(project)
        self._stages: dict[str, Path] = {}
        self._name = ""
        self._image = Image(workshop / "root")
        (workshop / "home").mkdir()
        _give(workshop, USER)

    def run(self) -> Image:
        """The image of the last stage, which no process may write to any more."""
        for step in instructions(self._project / "Dockerfile"):
            method = getattr(self, f"_{step.name.lower()}", None)
            assert method is not None, f"line {step.line}: {step.name} is not known here"
            method(step.value)
        _give(self._image.root, 0)
        return self._image

    def _arg(self, _: str) -> None:
        """Only the base image is an argument, and there is none here."""

    def _from(self, value: str) -> None:
        root = self._workshop / "root"
        if self._name:
            self._stages[self._name] = root.rename(self._workshop / f"stage-{self._name}")
        assert not root.exists(), "a stage without a name that is not the last one"
        root.mkdir()
        _give(root, USER)
        self._image = Image(root)
        self._name = value.partition(" AS ")[2].strip()

    def _env(self, value: str) -> None:
        self._image.environment |= _pairs(value)

    def _label(self, value: str) -> None:
        self._image.labels |= _pairs(value)

    def _workdir(self, value: str) -> None:
        self._image.folder = value
        Path(self._image.here(value)).mkdir(parents=True, exist_ok=True)
        _give(Path(self._image.here(value)), USER)

    def _copy(self, value: str) -> None:
        *sources, target = value.split()
        to = Path(self._image.here(self._image.folder)) / self._image.here(target)
        if sources[0].startswith("--from="):
            stage = self._stages[sources.pop(0).removeprefix("--from=")]
            for source in sources:
                shutil.copytree(f"{stage}{source}", to, symlinks=True, dirs_exist_ok=True)
        else:
            for source in sources:
                self._take(source, to, many=target.endswith("/"))
        _give(to, USER)

    def _take(self, source: str, to: Path, *, many: bool) -> None:
        """A file, or what is in a folder, out of what .dockerignore lets through."""
        start = Path(source.removesuffix("/"))
        chosen = [path for path in self._context if path == start or start in path.parents]
        assert chosen, f"COPY {source}: not there, or kept out by .dockerignore"
        for path in chosen:
            inside = to / (path.relative_to(start) if path != start else path.name if many else "")
            inside.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(self._project / path, inside)

    def _run(self, value: str) -> None:
        done = self._image.exec(_exec_form(value))
        assert done.returncode == 0, f"RUN {value}\n{done.stdout}\n{done.stderr}"

    def _user(self, value: str) -> None:
        self._image.user = value

    def _expose(self, _: str) -> None:
        """Documentation only."""

    def _entrypoint(self, value: str) -> None:
        self._image.entrypoint = _exec_form(value)

    def _cmd(self, value: str) -> None:
        self._image.command = _exec_form(value)


@dataclass(frozen=True, slots=True)
class Instruction:
    """A line of a Dockerfile; `line` counts from 1."""

    name: str
    value: str
    line: int


def instructions(dockerfile: Path) -> list[Instruction]:
    """The instructions in order, without comments. The file is only read."""
    with dockerfile.open("rb") as text:
        structure = DockerfileParser(fileobj=text).structure
    return [
        Instruction(step["instruction"], step["value"], step["startline"] + 1)
        for step in structure
        if step["instruction"] != "COMMENT"
    ]


def _context(project: Path) -> list[Path]:
    """The files that Docker would send to the build, by its own rules for .dockerignore; relative to the project."""
    lines = (project / ".dockerignore").read_text(encoding="utf-8").splitlines()
    patterns = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    paths = map(Path, exclude_paths(str(project), patterns))
    return sorted(path for path in paths if (project / path).is_file())


def _exec_form(value: str) -> list[str]:
    """Raises: AssertionError: The line needs a shell."""
    assert value.startswith("["), f"not in the exec form: {value}"
    return [str(word) for word in json.loads(value)]


def _pairs(value: str) -> dict[str, str]:
    pairs = (word.partition("=") for word in shlex.split(value))
    return {name: text for name, _, text in pairs}


def _give(path: Path, owner: int) -> None:
    """Makes a user the owner of all that is there; where the test does not run as root, everything is its own."""
    if not IS_ROOT:
        return
    os.chown(path, owner, owner)
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            os.chown(Path(folder, name), owner, owner, follow_symlinks=False)


def size(path: Path) -> int:
    """Bytes of all files; links do not count."""
    return sum(file.lstat().st_size for file in path.rglob("*") if file.is_file() and not file.is_symlink())
