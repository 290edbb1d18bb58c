"""Situations in which a pod is not served: what there is, what the true cause is called, and what the remedy has to name.

Each has one pod `p` with one claim `c`, or several. `changes` are codes of which each has to be proposed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dra_operator.testing.builders import (
    Obj,
    allocation,
    alternative,
    claim,
    device,
    device_class,
    devices,
    first_available,
    node,
    pod,
    pod_claim,
    request,
    resource_slice,
    result,
    taint_rule,
)

GPU, NIC = "gpu.test", "nic.test"
MODEL = 'device.attributes["gpu.test"].model'


@dataclass(frozen=True)
class Situation:
    """What there is, and what has to be said of it."""

    name: str
    objects: list[Obj]
    code: str
    verdict: str
    says: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()


def gpus(name: str, count: int = 4, **more: Any) -> list[Obj]:
    """A node with GPUs."""
    return [node(name), resource_slice(f"{name}-gpu", GPU, devices(count, **more), node=name)]


def on(name: str, *found: Obj, driver: str = GPU, **spec: Any) -> list[Obj]:
    """A node with these devices."""
    return [node(name), resource_slice(f"{name}-gpu", driver, found, node=name, **spec)]


def asks(*requests: Obj, **spec: Any) -> list[Obj]:
    """The pod and its claim."""
    return [claim("c", *requests, **spec), pod("p", pod_claim("c", claim="c"))]


def held(name: str, *ids: str, at: str = "n1", driver: str = GPU, **more: Any) -> Obj:
    """A claim that holds devices of the pool of a node, for a pod `old`."""
    found = [result("gpu", driver, at, one, **more) for one in ids]
    status: Obj = {
        "allocation": allocation(*found, node=at),
        "reservedFor": [{"resource": "pods", "name": "old", "uid": "old"}],
    }
    return claim(name, request("gpu", "gpu", count=len(ids))) | {"status": status}


def gpu(count: int | None = None, *expressions: str, **more: Any) -> Obj:
    """A request for GPUs."""
    return request("gpu", "gpu", *expressions, count=count, **more)


CLASSES = [device_class("gpu", driver=GPU), device_class("nic", driver=NIC)]


def counted(name: str, memory: str) -> Obj:
    """A partition that draws on a counter."""
    return device(name) | {
        "consumesCounters": [{"counterSet": "card", "counters": {"memory": {"value": memory}}}]
    }


COUNTERS: dict[str, Any] = {"sharedCounters": [{"name": "card", "counters": {"memory": {"value": "40Gi"}}}]}


def partitions(name: str, *found: Obj) -> list[Obj]:
    """A node with partitions of one card."""
    return [
        node(name),
        resource_slice(f"{name}-a", GPU, found, node=name, resourceSliceCount=2),
        resource_slice(f"{name}-b", GPU, [], node=name, resourceSliceCount=2, **COUNTERS),
    ]


def sharing(name: str, memory: str = "40Gi") -> Obj:
    """A device of which several may have shares."""
    return device(name, allowMultipleAllocations=True) | {"capacity": {"memory": {"value": memory}}}


def share(name: str, device_name: str, memory: str) -> Obj:
    """A claim with a share."""
    return held(
        name, device_name, consumedCapacity={"memory": memory}, shareID="6ae2e9a1-4a1b-4a57-a5a8-111111111111"
    )


A100, H100 = {"model": "a100"}, {"model": "h100"}
TAINT = [{"key": "sick", "value": "yes", "effect": "NoSchedule"}]

SITUATIONS = [
    Situation(
        "no devices at all", [node("n1"), *asks(gpu())], "NoDevices", "never", ("no device is published",)
    ),
    Situation(
        "class takes none",
        [*on("n1", device("a"), driver=NIC), *asks(gpu())],
        "ClassSelector",
        "never",
        ("class selector", "nic.test"),
    ),
    Situation(
        "selector, one clause",
        [*gpus("n1", attributes=H100), *asks(gpu(1, f'{MODEL} == "a100"'))],
        "RequestSelector",
        "never",
        ("model h100", "drop or correct"),
        ("DropClause",),
    ),
    Situation(
        "selector, second clause",
        [*gpus("n1", attributes=H100), *asks(gpu(1, f'device.driver == "{GPU}" && {MODEL} == "a100"'))],
        "RequestSelector",
        "never",
        ("model h100", f'`{MODEL} == "a100"`'),
        ("DropClause",),
    ),
    Situation(
        "selector, first clause",
        [*gpus("n1", attributes=H100), *asks(gpu(1, f'{MODEL} == "a100" && device.driver == "{GPU}"'))],
        "RequestSelector",
        "never",
        (f'`{MODEL} == "a100"`',),
        ("DropClause",),
    ),
    Situation(
        "guarded name that nobody publishes",
        [*gpus("n1", attributes=A100), *asks(gpu(1, 'has(device.attributes["gpu.test"].modle)'))],
        "RequestSelector",
        "never",
        ("modle not published",),
        ("DropClause",),
    ),
    Situation(
        "unguarded name that nobody publishes (FR-61, FR-64)",
        [*gpus("n1", attributes=A100), *asks(gpu(1, 'device.attributes["gpu.test"].modle == "x"'))],
        "SelectorFailed",
        "never",
        ("modle", "Did you mean model"),
    ),
    Situation(
        "class with a parenthesis too many (FR-111)",
        [device_class("bad", 'device.driver == "gpu.test")'), *gpus("n1"), *asks(request("gpu", "bad"))],
        "SelectorFailed",
        "never",
        ("DeviceClass bad", "column"),
    ),
    Situation(
        "capacity compared with text (FR-65)",
        [*on("n1", sharing("a")), *asks(gpu(1, 'device.capacity["gpu.test"] == "64Gi"'))],
        "SelectorFailed",
        "never",
        ("capacity",),
    ),
    Situation(
        "all in use by one claim",
        [*gpus("n1", 2), held("x", "gpu-0", "gpu-1"), *asks(gpu())],
        "InUse",
        "not now",
        ("default/x", "pod old", "since 2026-01-01"),
        ("FreeClaim",),
    ),
    Situation(
        "all in use by two claims",
        [*gpus("n1", 2), held("x", "gpu-0"), held("y", "gpu-1"), *asks(gpu())],
        "InUse",
        "not now",
        ("default/x", "free claim"),
        ("FreeClaim",),
    ),
    Situation(
        "too few on one node (FR-108)",
        [*gpus("n1"), *gpus("n2"), *asks(gpu(6))],
        "TooFewDevices",
        "never",
        ("n1, has 4 of 6",),
        ("FewerDevices", "AddDevices"),
    ),
    Situation(
        "best of several nodes",
        [*gpus("n1", 2), *gpus("n2", 6), *asks(gpu(8))],
        "TooFewDevices",
        "never",
        ("n2, has 6 of 8", "ask for 6"),
        ("FewerDevices", "AddDevices"),
    ),
    Situation(
        "one short, one in use",
        [*gpus("n1", 4), held("x", "gpu-0"), *asks(gpu(4))],
        "InUse",
        "not now",
        ("has 3 of 4", "free claim default/x"),
        ("FreeClaim", "FewerDevices"),
    ),
    Situation(
        "tainted by the driver",
        [*gpus("n1", 1, taints=TAINT), *asks(gpu())],
        "Tainted",
        "not now",
        ("sick=yes:NoSchedule", "tolerate"),
        ("Tolerate",),
    ),
    Situation(
        "tainted by a rule",
        [*gpus("n1", 1), taint_rule("r", key="repair", driver=GPU), *asks(gpu())],
        "Tainted",
        "not now",
        ("repair:NoSchedule",),
        ("Tolerate",),
    ),
    Situation(
        "some tainted, some in use",
        [
            *on("n1", device("gpu-0", taints=TAINT), device("gpu-1")),
            held("x", "gpu-1"),
            *asks(gpu()),
        ],
        "Tainted",
        "not now",
        ("tolerate",),
        ("Tolerate", "FreeClaim"),
    ),
    Situation(
        "tainted and not matching",
        [*gpus("n1", 1, taints=TAINT, attributes=H100), *asks(gpu(1, f'{MODEL} == "a100"'))],
        "RequestSelector",
        "never",
        ("model h100",),
        (),
    ),
    Situation(
        "counter in use",
        [
            *partitions("n1", counted("gpu-0", "30Gi"), counted("gpu-1", "20Gi")),
            held("x", "gpu-0"),
            *asks(gpu(1)),
        ],
        "Counters",
        "not now",
        ("card/memory: 20Gi needed, 10Gi left", "free claim default/x"),
        ("FreeClaim",),
    ),
    Situation(
        "two partitions that do not go together",
        [*partitions("n1", counted("gpu-0", "30Gi"), counted("gpu-1", "20Gi")), *asks(gpu(2))],
        "Counters",
        "never",
        ("card/memory",),
        ("FewerDevices",),
    ),
    Situation(
        "capacity too small",
        [*on("n1", sharing("a")), *asks(gpu(1, capacity={"requests": {"memory": "80Gi"}}))],
        "Capacity",
        "never",
        ("80Gi asked for, 40Gi there", "ask for memory 40Gi"),
        ("AskForLess",),
    ),
    Situation(
        "capacity in use",
        [
            *on("n1", sharing("a")),
            share("x", "a", "30Gi"),
            *asks(gpu(1, capacity={"requests": {"memory": "20Gi"}})),
        ],
        "Capacity",
        "not now",
        ("10Gi of 40Gi left",),
        ("FreeClaim", "AskForLess"),
    ),
    Situation(
        "capacity that no device has",
        [*gpus("n1", 1), *asks(gpu(1, capacity={"requests": {"memory": "1Gi"}}))],
        "Capacity",
        "never",
        ("no such capacity",),
    ),
    Situation(
        "attributes that do not match",
        [
            *on("n1", device("gpu-0", attributes={"root": "a"}), device("gpu-1", attributes={"root": "b"})),
            *asks(gpu(2), match=["gpu.test/root"]),
        ],
        "Constraint",
        "never",
        ("matchAttribute gpu.test/root", "drop or loosen"),
        ("DropConstraint", "FewerDevices"),
    ),
    Situation(
        "attribute of a constraint that nobody publishes",
        [
            *gpus("n1", 2),
            *asks(gpu(2), match=["resource.kubernetes.io/pcieRoot"]),
        ],
        "Constraint",
        "never",
        ("resource.kubernetes.io/pcieRoot",),
        ("DropConstraint",),
    ),
    Situation(
        "attributes that have to differ",
        [
            *gpus("n1", 2, attributes=A100),
            *asks(gpu(2), constraints=[{"distinctAttribute": "gpu.test/model"}]),
        ],
        "Constraint",
        "never",
        ("distinctAttribute gpu.test/model",),
        ("DropConstraint",),
    ),
    Situation(
        "GPU and NIC that share no root",
        [
            *on("n1", device("gpu-0", attributes={"dra.test/root": "a"})),
            resource_slice("n1-nic", NIC, [device("nic-0", attributes={"dra.test/root": "b"})], node="n1"),
            *asks(gpu(1), request("nic", "nic"), match=["dra.test/root"]),
        ],
        "Constraint",
        "never",
        ("matchAttribute dra.test/root",),
        ("DropConstraint",),
    ),
    Situation(
        "pool incomplete",
        [
            node("n1"),
            resource_slice("n1-gpu", GPU, devices(2), node="n1", resourceSliceCount=2),
            *asks(gpu()),
        ],
        "PoolIncomplete",
        "not now",
        ("1 of 2 slices", "wait until pool gpu.test/n1"),
        ("CompletePool",),
    ),
    Situation(
        "one pool incomplete, the other in use",
        [
            node("n1"),
            resource_slice("n1-gpu", GPU, devices(2), node="n1", resourceSliceCount=2),
            *gpus("n2", 1),
            held("x", "gpu-0", at="n2"),
            *asks(gpu()),
        ],
        "PoolIncomplete",
        "not now",
        (),
        ("CompletePool", "FreeClaim"),
    ),
    Situation(
        "pool with a name twice",
        [
            node("n1"),
            resource_slice("n1-a", GPU, [device("a")], node="n1", resourceSliceCount=2),
            resource_slice("n1-b", GPU, [device("a")], node="n1", resourceSliceCount=2),
            *asks(gpu()),
        ],
        "PoolInvalid",
        "not now",
        ("invalid pool",),
    ),
    Situation(
        "node not ready",
        [node("n1", ready=False), resource_slice("n1-gpu", GPU, devices(2), node="n1"), *asks(gpu())],
        "NodeState",
        "not now",
        ("n1 has the devices", "bring the node back"),
    ),
    Situation(
        "node tainted",
        [
            node("n1", taints=[{"key": "only", "value": "them", "effect": "NoSchedule"}]),
            resource_slice("n1-gpu", GPU, devices(2), node="n1"),
            *asks(gpu()),
        ],
        "NodeUnwanted",
        "never",
        ("n1 has the devices",),
    ),
    Situation(
        "devices on one node, the selector names another",
        [
            *gpus("n1", 1),
            node("n2"),
            claim("c", gpu()),
            pod("p", pod_claim("c", claim="c"), nodeSelector={"kubernetes.io/hostname": "n2"}),
        ],
        "NodeUnwanted",
        "never",
        ("n1 has the devices",),
    ),
    Situation(
        "class missing",
        [*gpus("n1"), *asks(request("gpu", "gpus"))],
        "DeviceClassMissing",
        "not now",
        ("did you mean gpu",),
    ),
    Situation(
        "claim missing",
        [*gpus("n1"), pod("p", pod_claim("c", claim="c"))],
        "ClaimNotReady",
        "not now",
        ("default/c",),
    ),
    Situation(
        "template missing (FR-47)",
        [*gpus("n1"), pod("p", pod_claim("c", template="t"))],
        "TemplateMissing",
        "not now",
        ("default/t",),
    ),
    Situation(
        "no alternative",
        [
            *gpus("n1", 1, attributes=H100),
            *asks(
                first_available(
                    "gpu", alternative("big", "gpu", count=4), alternative("small", "gpu", count=2)
                )
            ),
        ],
        "TooFewDevices",
        "never",
        ("gpu/big",),
        ("FewerDevices", "AddDevices"),
    ),
    Situation(
        "all devices, one in use",
        [*gpus("n1", 2), held("x", "gpu-0"), *asks(gpu(allocationMode="All"))],
        "InUse",
        "not now",
        ("default/x",),
        ("FreeClaim",),
    ),
    Situation(
        "two requests want the same device",
        [*gpus("n1", 1), *asks(gpu(1), request("other", "gpu"))],
        "Taken",
        "never",
        ("do not go together",),
    ),
    Situation(
        "second request is the one to blame",
        [*gpus("n1", 1), *asks(gpu(1), request("nic", "nic"))],
        "ClassSelector",
        "never",
        ("request nic",),
    ),
    Situation(
        "in use and not matching",
        [
            *on("n1", device("gpu-0", attributes=A100), device("gpu-1", attributes=H100)),
            held("x", "gpu-0"),
            *asks(gpu(1, f'{MODEL} == "a100"')),
        ],
        "InUse",
        "not now",
        ("default/x",),
        ("FreeClaim", "DropClause"),
    ),
    Situation(
        "another claim holds devices elsewhere",
        [
            *gpus("n1", 1),
            *gpus("n2", 1),
            held("x", "gpu-0"),
            claim("c", gpu()),
            pod("p", pod_claim("x", claim="x"), pod_claim("c", claim="c")),
        ],
        "ClaimElsewhere",
        "not now",
        (),
    ),
]
