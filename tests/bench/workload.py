"""The objects of a run: nodes with devices, a class, a template, and the pods; the same whoever is to serve them.

Pure. One device a pod by a claim template, in the way of section 8 of most schedulers' own DRA benchmarks: the class tests the driver.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dra_operator.model import SCHEDULER_NAME
from dra_operator.testing import builders as make

Obj = dict[str, Any]

DRIVER = "gpu.bench.example.com"
NAMESPACE = "bench"
TEMPLATE = "one-gpu"
CLASS = "gpu"


class Way(StrEnum):
    """How the pods come to their devices and nodes."""

    STOCK = "stock"
    """By kube-scheduler alone."""

    GATE = "gate"
    """At the operator's gate: it allocates, pins and releases, kube-scheduler binds."""

    SCHEDULER = "scheduler"
    """Under the operator's scheduler name: it allocates and binds."""

    @property
    def spec(self) -> Obj:
        """What it is about the pods."""
        return {"schedulerName": SCHEDULER_NAME} if self is Way.SCHEDULER else {}


@dataclass(frozen=True, slots=True)
class Size:
    """How much of everything.

    Attributes:
        pods: created at once, as fast as the server takes them; each wants one device.
        nodes: each publishes one slice.
        devices: on each node.
    """

    pods: int = 500
    nodes: int = 100
    devices: int = 8

    def problem(self) -> str | None:
        """What is wrong with it; None if nothing is. All pods have to end placed, so there must be devices for them."""
        if min(self.pods, self.nodes, self.devices) < 1:
            return "pods, nodes and devices must be at least 1"
        if self.pods > self.nodes * self.devices:
            return f"{self.pods} pods want more than the {self.nodes} x {self.devices} devices"
        return None


def nodes(size: Size) -> list[Obj]:
    """Nodes with room for many more pods than they have devices, and their slices."""
    room = {"cpu": "64", "memory": "256Gi", "pods": "250"}
    names = [f"node-{number:04}" for number in range(size.nodes)]
    attributes = {"model": "bench-80", "index": 0}
    devices = [
        make.device(f"gpu-{number}", attributes={**attributes, "index": number}, capacity={"memory": "80Gi"})
        for number in range(size.devices)
    ]
    made = [make.node(name, allocatable=room) for name in names]
    slices = [make.resource_slice(f"{name}-gpu", DRIVER, devices, node=name) for name in names]
    return [*made, *slices]


def common() -> list[Obj]:
    """Namespace, class and template; the namespace has to be there first."""
    return [
        make.namespace(NAMESPACE),
        make.device_class(CLASS, driver=DRIVER),
        make.template(TEMPLATE, make.request("gpu", CLASS), namespace=NAMESPACE),
    ]


def policy() -> Obj:
    """All pools are the operator's."""
    return make.policy("bench", {"driver": DRIVER})


def pods(size: Size, way: Way) -> list[Obj]:
    """The pods."""
    return [
        make.pod(
            f"pod-{number:05}",
            make.pod_claim("gpu", template=TEMPLATE),
            namespace=NAMESPACE,
            gates=(make.GATE,) if way is Way.GATE else (),
            requests={"cpu": "100m", "memory": "64Mi"},
            **way.spec,
        )
        for number in range(size.pods)
    ]
