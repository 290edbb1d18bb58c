"""The image, as far as it can be had without Docker: the Dockerfile's steps run in a clean folder, and the program out of it.

That the result is an image of a certain base is not shown here: none was built.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from dra_operator import __version__
from tests.e2e.harness.operator_process import ROOT
from tests.e2e.image import IS_ROOT, USER, Build, size

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.image import Image

pytestmark = pytest.mark.timeout(
    600
)  # packages are downloaded and compiled: 20 s, and several times that on a busy machine

MEGABYTE = 1_000_000
LISTING = """
import json, os, sys, importlib.metadata as metadata
json.dump({"uid": os.geteuid(), "prefix": sys.prefix, "found": [found.name for found in metadata.distributions()]}, sys.stdout)
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    return Build(ROOT, tmp_path_factory.mktemp("image")).run()


def locked() -> set[str]:
    """What the lock of the image names for this Python."""
    lines = (ROOT / "requirements-runtime.lock").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line.removesuffix("\\")) for line in lines if "==" in line]
    return {canonicalize_name(pin.name) for pin in pins if pin.marker is None or pin.marker.evaluate()}


def test_the_program_runs_and_is_of_this_version(image: Image) -> None:
    done = image.run("--version")

    assert (done.returncode, done.stdout.strip()) == (0, f"dra-operator, version {__version__}"), done.stderr


def test_without_arguments_it_says_what_it_can_do(image: Image) -> None:
    done = image.run()

    assert done.returncode == 0, done.stderr
    assert "run " in done.stdout


def test_the_command_of_the_deployment_is_there(image: Image) -> None:
    done = image.run("run", "--help")

    assert done.returncode == 0, done.stderr
    assert "--config" in done.stdout


def test_everything_that_the_operator_needs_is_in_it(image: Image, tmp_path: Path) -> None:
    """It comes as far as asking for the API server, which imports all of it."""
    nowhere = tmp_path / "kubeconfig"
    done = image.run("run", f"--kubeconfig={nowhere}")

    assert done.returncode == 2
    assert "there is no such file" in done.stderr


def test_nothing_is_in_it_but_the_locked_packages_and_the_program(image: Image) -> None:
    """No pip, no compiler, nothing of tests; and Python looks nowhere else."""
    done = image.exec(["/opt/dra-operator/bin/python", "-I", "-c", LISTING])
    told = json.loads(done.stdout)

    assert {canonicalize_name(name) for name in told["found"]} == locked() | {"dra-operator"}
    assert told["prefix"] == image.here("/opt/dra-operator")
    assert not IS_ROOT or told["uid"] == USER
    tops = {path.name for path in image.root.iterdir()}
    assert tops == {"opt"}
    assert {path.name for path in (image.root / "opt").iterdir()} == {"dra-operator"}


def test_what_pods_run_is_compiled_already(image: Image) -> None:
    """A read-only file system keeps no cache: every start would compile anew."""
    (package,) = image.root.glob("opt/dra-operator/lib/python*/site-packages/dra_operator")
    modules = {path.relative_to(package).with_suffix("") for path in package.rglob("*.py")}
    tag = sys.implementation.cache_tag
    compiled = {
        path.relative_to(package).parent.parent / path.name.removesuffix(f".{tag}.pyc")
        for path in package.rglob(f"*.{tag}.pyc")
    }

    assert len(modules) > 50
    assert compiled == modules


def test_it_is_small(image: Image) -> None:
    """Half of it is kubernetes-asyncio's models, and their compiled form."""
    assert 20 * MEGABYTE < size(image.root) < 110 * MEGABYTE


@pytest.mark.skipif(not IS_ROOT, reason="whoever is not root owns the files that it has just made")
def test_the_program_can_change_nothing_of_it(image: Image) -> None:
    done = image.exec(["/opt/dra-operator/bin/python", "-c", "import sys; open(sys.prefix + '/new', 'w')"])

    assert "PermissionError" in done.stderr
