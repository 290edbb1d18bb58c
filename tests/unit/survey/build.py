"""Surveys of objects in the few words of the builders that users of the package have, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dra_operator.cluster import Cluster
from dra_operator.features import DEFAULT_1_37
from dra_operator.model import KINDS, from_object
from dra_operator.survey import DeviceRow, PoolRow, Survey, survey
from dra_operator.testing.builders import allocation, claim, request

if TYPE_CHECKING:
    from dra_operator.features import Features

DRIVER = "gpu.test"


def cluster_of(*objects: dict[str, Any], features: Features = DEFAULT_1_37) -> Cluster:
    """The model of these objects."""
    found = Cluster(features)
    fill(found, *objects)
    return found


def fill(cluster: Cluster, *objects: dict[str, Any]) -> None:
    """Have objects in the model, each with a uid by its number: `uid-1`, ...."""
    for number, raw in enumerate(objects, start=1):
        metadata = {"uid": f"uid-{number}", "resourceVersion": str(number), **raw["metadata"]}
        cluster.apply("ADDED", from_object(KINDS[raw["kind"]], {**raw, "metadata": metadata}))


def surveyed(*objects: dict[str, Any], features: Features = DEFAULT_1_37) -> Survey:
    """What there is, and who holds it."""
    return survey(cluster_of(*objects, features=features), features)


def holding(name: str, *results: dict[str, Any], pods: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    """A claim with these results, on node `n1`, reserved for these pods; `more` goes into its metadata."""
    made = claim(name, request("gpu", DRIVER))
    made["metadata"] |= more
    consumers = [{"resource": "pods", "name": one, "uid": f"uid-{one}"} for one in pods]
    made["status"] = {"allocation": allocation(*results, node="n1"), "reservedFor": consumers}
    return made


def states(found: Survey) -> dict[str, str]:
    """Name of the device → its state."""
    return {row.id.device: row.state for row in found.devices}


def device_of(found: Survey, name: str) -> DeviceRow:
    """The only device of that name."""
    [row] = [row for row in found.devices if row.id.device == name]
    return row


def only_pool(found: Survey) -> PoolRow:
    """The only pool."""
    [row] = found.pools
    return row


def counts(row: PoolRow) -> dict[str, int]:
    """Numbers of a pool that are not zero."""
    names = ("free", "used", "tainted", "blocked", "unusable", "total", "gone")
    return {name: number for name in names if (number := getattr(row, name))}
