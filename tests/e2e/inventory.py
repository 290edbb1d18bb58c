"""All objects of a control plane at one moment, to compare with another moment. Used by the tests of removal.

It asks for every kind that the server lists, so that nothing is forgotten that a later release may bring.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.e2e.harness.plugin import ENABLED
from tests.e2e.harness.waiting import wait_until

if TYPE_CHECKING:
    from tests.e2e.harness.kubectl import Kubectl

Object = dict[str, Any]

PASSING = {"events", "events.events.k8s.io", "leases.coordination.k8s.io"}
"""Kinds that tell what was, and go by themselves."""


def everything(kubectl: Kubectl) -> dict[str, Object]:
    """All objects of all kinds, by kind, namespace and name; without Kubernetes' own records of who wrote what."""
    kinds = set(kubectl.run("api-resources", "--verbs=list", "--output=name", "--no-headers").split())
    found: dict[str, Object] = {}
    for item in kubectl.get_all(",".join(sorted(kinds - PASSING)), "--all-namespaces"):
        metadata = item["metadata"]
        metadata.pop("managedFields", None)
        found[f"{item['kind']} {metadata.get('namespace', '')}/{metadata['name']}"] = item
    return found


def everything_at_rest(kubectl: Kubectl) -> dict[str, Object]:
    """As `everything`, once the namespaces of earlier tests are gone: their objects would go between two looks."""
    wait_until(
        lambda: kubectl.get_all("namespaces"),
        "no namespace in deletion",
        timeout=60,
        accept=lambda found: not any("deletionTimestamp" in item["metadata"] for item in found),
    )
    return everything(kubectl)


def traces(found: dict[str, Object]) -> list[str]:
    """Objects that speak of the operator anywhere; the label by which users enable namespaces is theirs."""
    return [
        key
        for key, item in found.items()
        if "dra-operator" in json.dumps(item).replace(f'"{next(iter(ENABLED))}"', "")
    ]


def settled(item: Object) -> Object:
    """What somebody wrote into an object, without what the cluster counts and measures in it."""
    kept = {key: item["metadata"].get(key) for key in ("labels", "annotations", "finalizers", "uid")}
    return {key: value for key, value in item.items() if key not in {"metadata", "status"}} | kept
