"""Nodes and devices of the end-to-end tests, in the form that real drivers publish them, and views of what became of them.

Each test has drivers, classes and nodes of its own (their names hold `suffix`), so that tests do not disturb each other on
one control plane. No part of the operator is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.e2e.harness.audit import claim_names, problems
from tests.e2e.harness.objects import device, device_class, node, policy, resource_slice
from tests.e2e.harness.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.e2e.harness.kubectl import Kubectl
    from tests.e2e.harness.workspace import Workspace

Object = dict[str, Any]

COMPONENT = "dra-operator"
PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
ROOTS = ("10", "20", "90", "a0")
"""PCIe buses of an 8-GPU node: two GPUs and one fast NIC on each."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """What one test has: a driver (and a class of the same name) and the suffix of all its cluster-scoped names."""

    workspace: Workspace
    suffix: str

    @classmethod
    def of(cls, workspace: Workspace) -> Fleet:
        """Named after the workspace's namespace, which is unique."""
        return cls(workspace, workspace.namespace[-8:])

    def name(self, word: str) -> str:
        """A cluster-scoped name of this test; also a driver's and a class's."""
        return f"{word}-{self.suffix}.example.com"

    def node(self, number: int = 0) -> str:
        """Name of a node of this test."""
        return f"node-{number}-{self.suffix}"

    # ------------------------------------------------------------------- publishing

    def own(self, *words: str) -> None:
        """A policy that gives all pools of these drivers to the operator; returns when they may be allocated from."""
        name = self.name("policy")
        self.workspace.apply(policy(name, *({"driver": self.name(word)} for word in words)))
        self.workspace.kubectl.until("allocationpolicy", name, is_settled, "rules in place and settled")

    def plain(self, count: int, word: str = "gpu", *, nodes: int = 1) -> None:
        """Nodes with `count` plain accelerators each, and a class for them."""
        driver = self.name(word)
        names = [self.node(number) for number in range(nodes)]
        self.workspace.apply(
            *(node(name) for name in names),
            device_class(driver, driver=driver),
            *(resource_slice(driver, name, accelerators(count)) for name in names),
        )
        self.workspace.nodes_ready(*names)

    def plain_node(self, number: int, count: int, word: str = "gpu") -> str:
        """One more such node, of the same class; returns its name."""
        name, driver = self.node(number), self.name(word)
        self.workspace.apply(node(name), resource_slice(driver, name, accelerators(count)))
        self.workspace.nodes_ready(name)
        return name

    def publish(self, word: str, node_name: str, devices: Iterable[Object], **spec: Any) -> None:
        """A slice of a driver on a node, and a class for all devices of the driver."""
        driver = self.name(word)
        self.workspace.apply(
            device_class(driver, driver=driver), resource_slice(driver, node_name, devices, **spec)
        )

    def training_node(self) -> str:
        """An 8-GPU node with one fast NIC a PCIe root beside management NICs; classes `gpu` and `efa`; returns its name."""
        name, gpu, net = self.node(), self.name("gpu"), self.name("net")
        fast = f'device.attributes["{net}"].pciDevice == "Elastic Fabric Adapter (EFA)"'
        self.workspace.apply(
            node(name, cpu="96", memory="1152Gi"),
            device_class(gpu, driver=gpu),
            device_class(self.name("efa"), fast, driver=net),
            resource_slice(gpu, name, training_gpus()),
            resource_slice(net, name, nics(net)),
        )
        self.workspace.nodes_ready(name)
        return name

    # ------------------------------------------------------------------- looking

    def running(self, *pods: str, timeout: float = 30.0) -> list[Object]:
        """Waits until pods run and everything about their claims is as it should be; returns them in that order."""
        kubectl = self.workspace.kubectl
        found = [kubectl.until("pod", name, is_running, "Running", timeout=timeout) for name in pods]
        wrong = problems(kubectl, self.workspace.namespace)
        assert wrong == []
        return found

    def running_in_all(self, count: int, timeout: float = 30.0) -> list[Object]:
        """Waits until so many pods of the namespace run; returns them."""
        return wait_until(
            lambda: [found for found in self.workspace.kubectl.get_all("pods") if is_running(found)],
            f"{count} pods of {self.workspace.namespace} Running",
            timeout=timeout,
            accept=lambda found: len(found) >= count,
        )

    def devices(self, pod_name: str) -> dict[str, list[str]]:
        """What a pod got: device names by request, over all its claims, in the order of results."""
        kubectl = self.workspace.kubectl
        got: dict[str, list[str]] = {}
        for claim in claims_of(kubectl, pod_name):
            for result in claim["status"]["allocation"]["devices"]["results"]:
                got.setdefault(result["request"], []).append(result["device"])
        return got

    def told(self, name: str, reason: str, *words: str) -> str:
        """Waits for the operator's event with that reason, and all these words, on a pod or a claim; returns its message."""
        found = wait_until(
            lambda: self._said(name, reason),
            f"event {reason} with {words} on {name}" if words else f"event {reason} on {name}",
            accept=lambda said: bool(said) and all(word in said[-1] for word in words),
        )
        return found[-1]

    def _said(self, name: str, reason: str) -> list[str]:
        events = self.workspace.kubectl.events(name, reason)
        return [event["message"] for event in events if event["source"].get("component") == COMPONENT]


def accelerators(count: int, model: str = "plain") -> list[Object]:
    """Plain accelerators."""
    return [
        device(f"gpu-{number}", {"model": model, "index": number}, {"memory": "40Gi"})
        for number in range(count)
    ]


def training_gpus() -> list[Object]:
    """Eight GPUs, two on each PCIe root, as their driver publishes them."""
    return [
        device(
            f"gpu-{number}",
            {
                "type": "gpu",
                "productName": "NVIDIA A100-SXM4-80GB",
                "architecture": "Ampere",
                "index": number,
                "minor": number,
                PCIE_ROOT: f"pci0000:{ROOTS[number // 2]}",
            },
            {"memory": "81920Mi"},
        )
        for number in range(8)
    ]


def nics(driver: str) -> list[Object]:
    """Per PCIe root a management NIC and, listed after it, one fast NIC."""
    kinds = (("01", "Elastic Network Adapter (ENA)", False), ("1b", "Elastic Fabric Adapter (EFA)", True))
    return [
        device(
            f"pci-0000-{root}-{slot}-0",
            {
                f"{driver}/pciAddress": f"0000:{root}:{slot}.0",
                f"{driver}/pciDevice": kind,
                f"{driver}/rdma": rdma,
                PCIE_ROOT: f"pci0000:{root}",
            },
        )
        for root in ROOTS
        for slot, kind, rdma in kinds
    ]


def is_running(found: Object) -> bool:
    """Whether a pod runs."""
    return bool(found["status"].get("phase") == "Running")


def gates(found: Object) -> list[str]:
    """Scheduling gates of a pod."""
    return [gate["name"] for gate in found["spec"].get("schedulingGates", [])]


def conditions(found: Object) -> dict[str, tuple[str, str]]:
    """Status and reason of each condition."""
    listed = found.get("status", {}).get("conditions", [])
    return {item["type"]: (item["status"], item.get("reason", "")) for item in listed}


def is_settled(found: Object) -> bool:
    """Whether a policy's pools may be allocated from."""
    held = conditions(found)
    return held.get("Enforced", ("", ""))[0] == "True" and held.get("Settling", ("", ""))[0] == "False"


def claims_of(kubectl: Kubectl, pod_name: str) -> list[Object]:
    """The claims of a pod, in the pod's order."""
    return [kubectl.get("resourceclaim", name) for name in claim_names(kubectl.get("pod", pod_name))]


def is_unschedulable(found: Object) -> bool:
    """Whether kube-scheduler has looked at a pod and found no place."""
    return conditions(found).get("PodScheduled") == ("False", "Unschedulable")


def messages(kubectl: Kubectl, name: str, reason: str) -> Sequence[str]:
    """Messages of the events about an object."""
    return [event["message"] for event in kubectl.events(name, reason)]
