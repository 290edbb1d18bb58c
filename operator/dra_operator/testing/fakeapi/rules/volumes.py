"""Defaults and validation of volumes, their claims and classes, as far as scenarios and users' slips need.

Called through `strategies`. Nothing binds or provisions here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi.objects import dig
from dra_operator.validation.checks import required

if TYPE_CHECKING:
    from datetime import datetime

    from dra_operator.testing.fakeapi.objects import Obj
    from dra_operator.validation.causes import Cause


def default_claim(obj: Obj, _now: datetime) -> None:
    """A new claim waits for a volume with a file system."""
    obj.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
    obj["status"] = {"phase": "Pending"}


def default_volume(obj: Obj, _now: datetime) -> None:
    """A new volume has a file system, and is kept when its claim goes."""
    spec = obj.setdefault("spec", {})
    spec.setdefault("volumeMode", "Filesystem")
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    obj["status"] = {"phase": "Pending"}


def default_class(obj: Obj, _now: datetime) -> None:
    """Claims of a class are bound at once, and volumes go with them."""
    obj.setdefault("volumeBindingMode", "Immediate")
    obj.setdefault("reclaimPolicy", "Delete")


def check_claim(obj: Obj) -> list[Cause]:
    """How the volume is used, and how large it is, has to be said."""
    causes = []
    if not dig(obj, "spec", "accessModes"):
        causes.append(required("spec.accessModes", "at least 1 access mode is required"))
    if not dig(obj, "spec", "resources", "requests", "storage"):
        causes.append(required("spec.resources[storage]"))
    return causes


def check_class(obj: Obj) -> list[Cause]:
    """A class has a provisioner."""
    return [] if obj.get("provisioner") else [required("provisioner")]
