"""What `kubectl kustomize` makes of the shipped folders, for tests. No cluster is needed; each folder is built once a run."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from itertools import chain, combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tests.e2e.harness.kubectl import Kubectl

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).resolve().parents[3]
MANIFESTS = ROOT / "manifests"
RELEASES = ROOT / "tests" / "e2e" / "releases"
WORKLOADS = ("Deployment", "Job")

Obj = dict[str, Any]


def _of_kind(kind: str) -> list[str]:
    """The folders with a kustomization.yaml of a kind, relative to the root of the project."""
    files = chain(MANIFESTS.rglob("kustomization.yaml"), (ROOT / "crds").glob("kustomization.yaml"))
    parts = (MANIFESTS / "components").glob("*/*/kustomization.yaml")  # not to be used by themselves
    return sorted(
        str(file.parent.relative_to(ROOT))
        for file in set(files) - set(parts)
        if yaml.safe_load(file.read_text(encoding="utf-8"))["kind"] == kind
    )


INSTALLABLE = _of_kind("Kustomization")
COMPONENTS = _of_kind("Component")
WEBHOOK = "manifests/components/gate-webhook"
CERTIFICATE = f"{WEBHOOK}-certificate"
"""Changes what the one before it brings."""

COMBINATIONS = [
    found
    for found in chain(combinations(COMPONENTS, 1), combinations(COMPONENTS, 2), [tuple(COMPONENTS)])
    if WEBHOOK in found or CERTIFICATE not in found
]
"""Each component, any two of which might be in each other's way, and all of them."""


@cache
def built(folder: str = "manifests") -> tuple[Obj, ...]:
    """The objects of one of our folders, in the order in which kubectl applies them."""
    return tuple(kustomize(ROOT / folder))


@cache
def built_with(components: tuple[str, ...]) -> tuple[Obj, ...]:
    """The default installation with components, as an admin's own kustomization has it."""
    with tempfile.TemporaryDirectory() as folder:
        return tuple(kustomize(overlay(Path(folder), components=components)))


def overlay(folder: Path, components: Iterable[str] = (), **more: Any) -> Path:
    """Writes a kustomization of an admin's own into a folder: the default installation, components, and more fields."""
    here = folder.resolve()
    body = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [os.path.relpath(MANIFESTS, here)],
        "components": [os.path.relpath(ROOT / name, here) for name in components],
        **more,
    }
    (here / "kustomization.yaml").write_text(yaml.safe_dump(body), encoding="utf-8")
    return here


def kustomize(folder: Path) -> list[Obj]:
    """What `kubectl kustomize FOLDER` prints."""
    return list(yaml.safe_load_all(Kubectl(Path(os.devnull)).run("kustomize", str(folder))))


def of_kind(objects: Iterable[Obj], *kinds: str) -> list[Obj]:
    """Those of some kinds."""
    return [found for found in objects if found["kind"] in kinds]


def one(objects: Iterable[Obj], kind: str, name: str = "dra-operator") -> Obj:
    """The only object of a kind and name."""
    (found,) = (each for each in of_kind(objects, kind) if each["metadata"]["name"] == name)
    return found


def templates(objects: Iterable[Obj]) -> Iterator[tuple[str, Obj]]:
    """Every pod template, by the name of its object."""
    for found in of_kind(objects, *WORKLOADS):
        yield f"{found['kind']}/{found['metadata']['name']}", found["spec"]["template"]
