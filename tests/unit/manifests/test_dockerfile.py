"""The Dockerfile and the locks that it installs, as texts; `tests/e2e/test_image.py` runs its steps."""

from __future__ import annotations

import tomllib
from importlib import metadata
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from dra_operator import __version__
from tests.e2e.image import instructions
from tests.unit.manifests.build import ROOT, built, one

if TYPE_CHECKING:
    from collections.abc import Iterable

STEPS = instructions(ROOT / "Dockerfile")
FINAL = STEPS[max(at for at, step in enumerate(STEPS) if step.name == "FROM") :]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def names(requirements: Iterable[str]) -> set[str]:
    return {canonicalize_name(Requirement(line).name) for line in requirements}


def pins(lock: str) -> set[str]:
    """`name==version`, out of a lock with hashes. Markers tell only which of the other pins need it."""
    lines = (ROOT / lock).read_text(encoding="utf-8").splitlines()
    return {line.removesuffix("\\").partition(";")[0].strip() for line in lines if "==" in line}


def needed(requirements: Iterable[str]) -> set[str]:
    """What these need, and what that needs in turn, in this environment."""
    found: set[str] = set()
    open_ = [Requirement(line) for line in requirements]
    while open_:
        requirement = open_.pop()
        name = canonicalize_name(requirement.name)
        asked = f"{name}[{','.join(sorted(requirement.extras))}]"
        if asked not in found:
            found |= {name, asked}
            extras = [{"extra": extra} for extra in ("", *requirement.extras)]
            more = (Requirement(line) for line in metadata.requires(name) or ())
            open_ += [item for item in more if item.marker is None or any(map(item.marker.evaluate, extras))]
    return found


def values(name: str) -> list[str]:
    return [step.value for step in FINAL if step.name == name]


def test_the_image_runs_as_the_user_of_the_deployment() -> None:
    context = one(built(), "Deployment")["spec"]["template"]["spec"]["securityContext"]

    assert values("USER") == [f"{context['runAsUser']}:{context['runAsGroup']}"]


def test_the_last_stage_installs_nothing() -> None:
    """What it needs comes out of the stage before; neither shell nor pip is called."""
    assert values("RUN") == []
    assert [value.startswith("--from=build ") for value in values("COPY")] == [True]


def test_the_program_is_process_one() -> None:
    """In the exec form: a shell in between would keep SIGTERM from it."""
    assert values("ENTRYPOINT") == ['["dra-operator"]']


def test_the_labels_are_true() -> None:
    (label,) = values("LABEL")

    for name, value in {
        "title": PROJECT["project"]["name"],
        "description": PROJECT["project"]["description"],
        "version": __version__,
        "licenses": PROJECT["project"]["license"],
    }.items():
        assert f'org.opencontainers.image.{name}="{value}"' in label
    assert PROJECT["project"]["version"] == __version__


def test_every_package_is_checked_by_hash() -> None:
    installs = [step.value for step in STEPS if step.name == "RUN" and '"install"' in step.value]

    assert len(installs) == 3
    assert ["--require-hashes" in value or "--no-index" in value for value in installs] == [True] * 3


def test_the_locks_of_the_image_are_part_of_the_lock_that_is_tested() -> None:
    tested = pins("requirements.lock")

    assert pins("requirements-runtime.lock") - tested == set()
    assert pins("requirements-build.lock") - tested == set()


def test_the_locks_hold_what_the_project_names() -> None:
    runtime, build = names(pins("requirements-runtime.lock")), names(pins("requirements-build.lock"))

    assert names(PROJECT["project"]["dependencies"]) <= runtime
    assert names(PROJECT["build-system"]["requires"]) <= build
    tests = names(PROJECT["dependency-groups"]["test"]) | names(
        PROJECT["project"]["optional-dependencies"]["testing"]
    )
    only_for_us = (tests | {"mypy", "ruff", "pip"}) - needed(PROJECT["project"]["dependencies"])
    assert runtime & only_for_us == set()
    assert {"pytest", "cel-python"} <= only_for_us
