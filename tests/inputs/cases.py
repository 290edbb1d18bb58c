"""Which manifest meets which devices, and what its writer meant to happen.

The table behind `docs/real-manifests.md`, the scenarios and the end-to-end tests. `needs` names what this release does not have, for
what has to wait; everything without it must be served.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .manifests import HERE, Object, documents
from .outcomes import (
    Aligned,
    Apart,
    Configured,
    Consumes,
    Demand,
    Different,
    Holds,
    Named,
    Readied,
    Serves,
    Shared,
    Told,
    Waits,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
BINDING = "its driver, or what attaches the device, to report that in status.devices of the claim"
VF = "sriovnetwork.k8snetworkplumbingwg.io"


@dataclass(frozen=True)
class Case:
    """One manifest on one set of devices.

    Args:
        file: the manifest, below `tests/inputs`.
        devices: the devices that are published before, in the same folder, without `.devices.yaml`.
        does: what the manifest asks for, for the page in docs.
        demands: all of which hold in the end.
        needs: the feature that it would need; empty if it is served.
        labels: of the namespace.
        embedded: whether the embedded server has all that it takes.
        lenient: whether the user switched kubectl's validation off.
    """

    file: str
    devices: str
    does: str
    demands: tuple[Demand, ...]
    needs: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    embedded: bool = True
    lenient: bool = False

    @property
    def id(self) -> str:
        """For pytest."""
        return f"{self.file.removesuffix('.yaml')}-on-{self.devices}"

    @property
    def driver(self) -> str:
        """Folder of the manifest."""
        return self.file.partition("/")[0]

    @property
    def path(self) -> Path:
        """The manifest."""
        return HERE / self.file

    @property
    def fleet_path(self) -> Path:
        """The devices."""
        return HERE / self.driver / f"{self.devices}.devices.yaml"

    def fleet(self) -> list[Object]:
        """Nodes, classes and slices."""
        return documents(self.fleet_path)

    def objects(self) -> list[Object]:
        """What the user applies."""
        return documents(self.path)


def drivers(objects: Iterable[Object]) -> list[str]:
    """Drivers of the slices among objects, each once."""
    return sorted({obj["spec"]["driver"] for obj in objects if obj["kind"] == "ResourceSlice"})


_ONE = {"gpu": 1}
_MIG = {"small-a": 1, "small-b": 1, "medium": 1, "large": 1}
_PAIR = {"gpu": 1, "efa": 1}
_PARENT = "gpu.nvidia.com/parentUUID"

NVIDIA = (
    Case(
        "nvidia/two-pods.yaml", "a100-indexed", "a GPU for each of two pods",
        (Serves("first", _ONE), Serves("second", _ONE), Apart("*")),
    ),
    Case("nvidia/two-containers.yaml", "a100-indexed", "one GPU for two containers", (Serves("pair", _ONE),)),
    Case(
        "nvidia/shared-claim.yaml", "a100-indexed", "one GPU for two pods, by one claim",
        (Serves("first", _ONE), Serves("second", _ONE), Shared("*")),
    ),
    Case(
        "nvidia/mig-one-parent.yaml", "mig-static", "MIG devices of three sizes on one GPU, partitioned beforehand",
        (
            Serves("sliced", _MIG, 2), Apart("sliced"), Aligned("sliced", _PARENT),
            Holds("sliced", "small-b", "gpu.nvidia.com/profile", "1g.5gb"),
            Holds("sliced", "large", "gpu.nvidia.com/profile", "3g.20gb"),
            Waits("sliced", "AllocationFailed", ("in use", "the pod goes on by itself"), 2),
        ),
    ),
    Case(
        "nvidia/mig-one-parent.yaml", "mig-dynamic", "MIG devices of three sizes on one GPU, partitioned on demand",
        (
            Serves("sliced", _MIG), Aligned("sliced", _PARENT),
            Waits("sliced", "AllocationFailed", ("in use", "the pod goes on by itself"), 3),
        ),
    ),
    Case(
        "nvidia/mig-by-size.yaml", "mig-static", "MIG devices by their multiprocessors",
        (
            Serves("sized", {"little": 1, "much": 1}),
            Holds("sized", "little", "gpu.nvidia.com/profile", "1g.5gb"),
            Holds("sized", "much", "gpu.nvidia.com/profile", "3g.20gb"),
        ),
    ),
    Case(
        "nvidia/sharing-modes.yaml", "a100-indexed", "time slicing and MPS by configuration of the claim",
        (
            Serves("mixed", {"slices": 1, "mps": 1}), Apart("mixed"),
            Configured("mixed", "slices", "FromClaim", {"kind": "GpuConfig", "sharing": {
                "strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}}}),
            Configured("mixed", "mps", "FromClaim", {"kind": "GpuConfig", "sharing": {
                "strategy": "MPS", "mpsConfig": {
                    "defaultActiveThreadPercentage": 50, "defaultPinnedDeviceMemoryLimit": "10Gi"}}}),
        ),
    ),
    Case(
        "nvidia/by-index.yaml", "a100-indexed", "every second A100, by index",
        (Serves("even", _ONE, 4), Apart("even")),
    ),
    Case(
        "nvidia/by-index.yaml", "a100-efa", "every second A100, by an index that the driver does not publish",
        (Waits("even", "SelectorFailed", ("no such key: index", "gpu-0"), 4),), "an attribute that the driver does not publish",
    ),
    Case(
        "nvidia/share-by-number.yaml", "shares", "shares of GPUs as the driver divides them",
        (
            Serves("share-by-number", _ONE, 2), Consumes("share-by-number", "gpu", {"memory": "40Gi"}), Apart("share-by-number"),
            Waits("share-by-number", "AllocationFailed", ("too little capacity", "the pod goes on by itself"), 2),
        ),
    ),
    Case(
        "nvidia/share-unlimited.yaml", "shares", "GPUs that any number of claims share",
        (Serves("share-unlimited", _ONE, 2),),
    ),
    Case(
        "nvidia/share-by-memory.yaml", "shares", "4Gi of a GPU's memory",
        (
            Serves("share-by-memory", _ONE, 2), Shared("share-by-memory"),
            Consumes("share-by-memory", "gpu", {"memory": "4Gi"}),
        ),
    ),
    Case(
        "nvidia/gpu-and-nic.yaml", "a100-efa", "a GPU and a fast NIC",
        (Serves("rank", _PAIR), Holds("rank", "efa", "dra.net/pciDevice", "Elastic Fabric Adapter (EFA)")),
    ),
    Case(
        "nvidia/gpu-and-nic-aligned.yaml", "a100-efa", "a GPU and a fast NIC on one PCIe root, four times",
        (
            Serves("ranks", _PAIR, 4), Apart("ranks"), Aligned("ranks", PCIE_ROOT),
            Holds("ranks", "efa", "dra.net/pciDevice", "Elastic Fabric Adapter (EFA)"),
        ),
    ),
    Case(
        "nvidia/two-gpus-and-nic-aligned.yaml", "a100-efa", "both GPUs of a PCIe root and its fast NIC",
        (Serves("rank", {"gpus": 2, "efa": 1}), Aligned("rank", PCIE_ROOT)),
    ),
    Case(
        "nvidia/mpi-job.yaml", "a100-efa", "workers of an MPI job on different nodes",
        (
            Serves("launcher", {}), Serves("worker-*", _PAIR),
            Waits("worker-*", "AllocationFailed", ("didn't match pod anti-affinity rules",)),
        ),
        "a second node",
    ),
    Case(
        "nvidia/no-such-product.yaml", "a100-efa", "a product that nobody has",
        (Waits("vain", "AllocationFailed", ("NO-SUCH-GPU", "Waiting will not help")),), "such a device",
    ),
    Case(
        "nvidia/extended-resource.yaml", "a100-indexed", "an extended resource that a class stands for",
        (Told("as-ever", "ExtendedResource", ("nvidia.com/gpu", "gpu.nvidia.com", "ResourceClaim")),),
        "extended resources (DRAExtendedResource)",
        embedded=False,
    ),
    Case(
        "nvidia/gb200-near-nic.yaml", "gb200", "a GPU by bus id and a NIC of its NUMA node",
        (
            Serves("rank", {"gpu": 1, "nic": 1}), Named("rank", "gpu", ("gpu-0",)),
            Holds("rank", "nic", "dra.net/numaNode", 0),
        ),
    ),
    Case(
        "nvidia/gb200-far-nic.yaml", "gb200", "a GPU by bus id and a NIC of another NUMA node",
        (Serves("rank", {"gpu": 1, "nic": 1}), Holds("rank", "nic", "dra.net/numaNode", 1)),
    ),
    Case(
        "nvidia/gb200-four-nics.yaml", "gb200", "a GPU by bus id and all NICs of its NUMA node",
        (
            Serves("rank", {"gpu": 1, "nic": 4}), Holds("rank", "nic", "dra.net/numaNode", 0),
            Holds("rank", "nic", "oke.dra.net/rackId", "rack-7"),
        ),
    ),
    Case(
        "nvidia/gb200-whole-node.yaml", "gb200", "all GPUs and fast NICs of a node",
        (Serves("rank", {"gpu": 4, "nic": 8}), Holds("rank", "nic", "dra.net/rdma", value=True)),
    ),
    Case(
        "nvidia/gb300-near-nic.yaml", "gb300", "a GPU by bus id and a NIC by its RDMA device",
        (Serves("rank", {"gpu": 1, "nic": 1}), Holds("rank", "nic", "dra.net/rdmaDevice", "mlx5_0")),
    ),
    Case(
        "nvidia/gb300-same-fabric.yaml", "gb300", "a NIC by an attribute of the cloud",
        (Serves("rank", {"nic": 1}),),
    ),
    Case(
        "nvidia/gb300-aligned.yaml", "gb300", "alignment by an attribute that no NIC has",
        (Waits("rank", "AllocationFailed", (PCIE_ROOT, "Waiting will not help")),), "an attribute that the driver does not publish",
    ),
)  # fmt: skip

EXAMPLE = (
    Case(
        "example/two-requests.yaml", "gpus", "two GPUs by two requests",
        (Serves("greedy", {"gpu-1": 1, "gpu-2": 1}), Apart("greedy")),
    ),
    Case(
        "example/shared-claim.yaml", "gpus", "one GPU for two pods, by one claim",
        (Serves("first", _ONE), Serves("second", _ONE), Shared("*")),
    ),
    Case("example/selectors.yaml", "gpus", "a GPU by model and memory", (Serves("picky", _ONE),)),
    Case("example/init-container.yaml", "gpus", "a GPU for an init container, too", (Serves("warmed", _ONE),)),
    Case(
        "example/alternatives.yaml", "gpus", "prioritized alternatives",
        (Serves("content", {"gpu/any": 1}), Serves("happy", {"gpu/latest": 1}), Apart("*")),
    ),
    Case(
        "example/taints.yaml", "gpus", "tainted devices and a claim that tolerates the taint",
        (
            Serves("tolerant", _ONE),
            Waits("strict", "AllocationFailed", ("tainted gpu.example.com/unhealthy=true:NoExecute",)),
        ),
    ),
    Case(
        "example/two-of-a-kind.yaml", "gpus", "two devices by one request",
        (Serves("halved", {"parts": 2}), Apart("halved")),
    ),
    Case(
        "example/two-of-a-kind.yaml", "partitions", "two partitions of a GPU by one request",
        (Serves("halved", {"parts": 2}), Apart("halved")),
    ),
    Case(
        "example/one-gpu.yaml", "binding", "a GPU that has to be made ready first",
        (Readied("modest", ("device gpu.example.com/example-binding-worker/gpu-0 lacks example.com/attached",)),), BINDING,
    ),
    Case(
        "example/admin-access.yaml", "gpus", "a monitor of all GPUs",
        (Serves("monitor", {"gpus": 2}),),
        labels={"resource.kubernetes.io/admin-access": "true"},
    ),
    Case(
        "example/shared-capacity.yaml", "shared", "parts of a GPU by memory and compute",
        (
            Serves("sharer-*", _ONE, 2), Shared("sharer-*"),
            Consumes("sharer-*", "gpu", {"memory": "16Gi", "compute": "20"}),
        ),
    ),
    Case(
        "example/shared-bandwidth.yaml", "net", "parts of a NIC's bandwidth",
        (
            Serves("busy", {"nic": 1}), Serves("quiet", {"nic": 1}), Shared("*"),
            Consumes("busy", "nic", {"vfs": "1", "ingressBandwidth": "10G", "egressBandwidth": "5G"}),
            Consumes("quiet", "nic", {"vfs": "1", "ingressBandwidth": "5G", "egressBandwidth": "5G"}),
        ),
    ),
)  # fmt: skip

OTHERS = (
    Case(
        "spyre/two-pods.yaml", "cards", "a card for each of two pods",
        (Serves("first", {"card": 1}), Serves("second", {"card": 1}), Apart("*")),
    ),
    Case(
        "spyre/by-address.yaml", "cards", "the card at an address, wanted by two pods",
        (
            Serves("*", {"card": 1}), Named("*", "card", ("0000-1a-00-0",)),
            Waits("*", "AllocationFailed", ("in use", "the pod goes on by itself")),
        ),
    ),
    Case(
        "spyre/same-numa-2.yaml", "cards", "two cards on one NUMA node",
        (Serves("model", {"cards": 2}), Aligned("model", "spyre.ibm.com/numaInfo"),
         Holds("model", "cards", "spyre.ibm.com/productId", "06a7")),
    ),
    Case(
        "spyre/same-numa-3.yaml", "cards", "three cards on one NUMA node",
        (Serves("model", {"cards": 3}), Aligned("model", "spyre.ibm.com/numaInfo")),
    ),
    Case(
        "amd/whole.yaml", "mi300x", "a whole GPU",
        (Serves("trainer", _ONE), Holds("trainer", "gpu", "gpu.amd.com/deviceID", "994913940318892495")),
    ),
    Case(
        "amd/same-parent.yaml", "mi300x", "two partitions of one GPU",
        (Serves("pair", {"p0": 1, "p1": 1}), Aligned("pair", "gpu.amd.com/deviceID"), Apart("pair")),
    ),
    Case(
        "amd/distinct-parent.yaml", "mi300x", "two partitions of different GPUs (distinctAttribute)",
        (Serves("pair", {"p0": 1, "p1": 1}), Different("pair", "gpu.amd.com/deviceID")),
    ),
    Case(
        "cpu/exclusive.yaml", "individual", "exclusive CPUs, each a device",
        (Serves("exclusive", {"cpus": 10}), Apart("exclusive")),
    ),
    Case("cpu/by-number.yaml", "grouped", "CPUs of a group by number",
        (Serves("exclusive", {"cpus": 1}), Consumes("exclusive", "cpus", {"dra.cpu/cpu": "10"})),
    ),
    Case("tpu/all.yaml", "v4", "all TPUs of a host", (Serves("trainer", {"tpus": 4}),)),
    Case("tpu/four.yaml", "v4", "four TPUs", (Serves("trainer", {"tpus": 4}),)),
    Case(
        "intel/same-root.yaml", "gpus", "two GPUs on one PCIe root",
        (Serves("pair", {"gpus": 2}), Aligned("pair", "gpu.intel.com/pciRoot"),
         Named("pair", "gpus", ("0000-08-00-0-0xe211", "0000-0c-00-0-0xe211"))),
    ),
    Case(
        "intel/first-available.yaml", "gpus", "an accelerator of one kind or another",
        (Serves("flexible", {"accelerator/gpu": 1}),),
    ),
    Case(
        "intel/rdma.yaml", "gpus", "a GPU and an RDMA NIC on one PCIe root",
        (Serves("rank", {"nic": 1, "gpu": 1}), Aligned("rank", PCIE_ROOT), Holds("rank", "nic", "dra.net/rdma", value=True)),
    ),
    Case(
        "intel/rdma-wrong-path.yaml", "gpus", "a GPU and an RDMA NIC, by a class whose selector always fails",
        (Waits("rank", "SelectorFailed", ("rdma-net", "no such key", "Correct the class")),), "a class that works",
    ),
    Case(
        "intel/monitor.yaml", "gpus", "a monitor of all GPUs that tolerates all taints",
        (Serves("monitor", {"gpus": 4}),),
        labels={"resource.kubernetes.io/admin-access": "true"},
    ),
    Case(
        "sriov/aligned.yaml", "vfs", "a virtual function and a GPU on one PCIe root",
        (Serves("rank", {"vf": 1, "gpu": 1}), Aligned("rank", PCIE_ROOT),
         Configured("rank", "vf", "FromClaim", {"kind": "VfConfig", "ifName": "net1"})),
    ),
    Case(
        "sriov/two-functions.yaml", "vfs", "two virtual functions by one request",
        (Serves("router", {"vf": 2}), Apart("router"),
         Configured("router", "vf", "FromClaim", {"netAttachDefName": "fast"})),
    ),
    Case(
        "sriov/class-config.yaml", "vfs", "configuration of class and claim",
        (Serves("router", {"vf": 1}), Holds("router", "vf", f"{VF}/resourceName", "port2-vfs"),
         Configured("router", "vf", "FromClass", {"netAttachDefName": "slow"}),
         Configured("router", "vf", "FromClaim", {"driver": "vfio-pci", "addVhostMount": True})),
    ),
    Case(
        "hami/parts.yaml", "cores", "cores and memory of a GPU",
        (Serves("modest", _ONE), Consumes("modest", "gpu", {"cores": "30", "memory": "4Gi"})),
    ),
    Case(
        "rbln/contention.yaml", "npus", "three pods for two NPUs",
        (Serves("pod-*", {"npu": 1}, 2), Apart("pod-*"), Waits("pod-*", "AllocationFailed", ("in use",))),
    ),
    Case("rbln/both.yaml", "npus", "two NPUs for one pod", (Serves("greedy", {"npus": 2}),)),
)  # fmt: skip

TRAPS = (
    Case(
        "traps/limits.yaml", "limits", "names at their limits, text beyond ASCII, odd amounts, nulls",
        (Serves("exact", {"r" * 63: 1}), Named("exact", "r" * 63, ("a" * 63,))),
    ),
    Case("traps/upper.yaml", "upper", "a driver's name in upper case", (Serves("loud", {"gpu": 1}),)),
    Case(
        "traps/no-attributes.yaml", "no-attributes", "devices in a v1beta1 body under a v1 header, applied unchecked",
        (
            Serves("easy", {"card": 1}),
            Waits("picky", "SelectorFailed", ("no such key", "publishes no attributes")),
        ),
        "attributes, which the API server dropped",
        lenient=True,
    ),
)  # fmt: skip
"""Input that is odd, or wrong in a way that servers let pass."""

CASES = (*NVIDIA, *EXAMPLE, *OTHERS, *TRAPS)
