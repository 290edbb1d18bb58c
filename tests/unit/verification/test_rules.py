"""Each rule of the verifier, broken by itself, and what is all right beside it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from dra_operator.cel import default_compiler
from dra_operator.features import Features
from dra_operator.model import (
    AllocationResult,
    DeviceClass,
    DeviceId,
    Node,
    ResourceClaim,
    ResourceSlice,
    from_object,
)
from dra_operator.quantity import Quantity
from dra_operator.verification import RULES, Allocated, Snapshot, Taken, verify

Json = dict[str, Any]

ALL = dict.fromkeys(Features.__struct_fields__, True)
NODE: Json = {
    "metadata": {"name": "n", "labels": {"zone": "z", "rank": "3"}},
    "status": {"declaredFeatures": ["DRAOptionalNodeOperations"]},
}
ON_NODE: Json = {
    "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]
}
TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}
COMPILER = default_compiler()


def opaque(mode: str) -> Json:
    return {"opaque": {"driver": "d", "parameters": {"mode": mode}}}


def cel(expression: str) -> Json:
    return {"cel": {"expression": expression}}


CLASSES: list[Json] = [
    {"metadata": {"name": "any"}, "spec": {}},
    {"metadata": {"name": "even"}, "spec": {"selectors": [cel("device.attributes['d'].i % 2 == 0")]}},
    {"metadata": {"name": "tuned"}, "spec": {"config": [opaque("class")]}},
]


def device(name: str, **fields: Any) -> Json:
    return {"name": name, **fields}


def numbered(count: int) -> list[Json]:
    return [device(f"d{index}", attributes={"i": {"int": index}}) for index in range(count)]


def slice_(*devices: Json, name: str = "s", pool: str = "p", **spec: Any) -> Json:
    place = (
        {}
        if {"nodeSelector", "allNodes", "perDeviceNodeSelection", "nodeName"} & spec.keys()
        else {"nodeName": "n"}
    )
    generation = {"generation": spec.pop("generation", 1), "resourceSliceCount": spec.pop("count", 1)}
    return {
        "metadata": {"name": name},
        "spec": {
            "driver": "d",
            "pool": {"name": pool, **generation},
            "devices": list(devices),
            **place,
            **spec,
        },
    }


def counters(**amounts: str) -> Json:
    """A slice with the counter set `c`; a pool of two slices."""
    made = slice_(name="z-counters", count=2)
    del made["spec"]["devices"]
    made["spec"]["sharedCounters"] = [
        {"name": "c", "counters": {name: {"value": value} for name, value in amounts.items()}}
    ]
    return made


def drawing(name: str, amount: str, *groups: str, **fields: Any) -> Json:
    drawn = {"counterSet": "c", "counters": {"m": {"value": amount}}, "compatibilityGroups": list(groups)}
    return device(name, consumesCounters=[drawn], **fields)


def shareable(name: str, value: str = "8Gi", **policy: Any) -> Json:
    capacity = {"value": value, **({"requestPolicy": policy} if policy else {})}
    return device(name, allowMultipleAllocations=True, capacity={"m": capacity})


def request(name: str = "r", count: int = 1, **fields: Any) -> Json:
    return {
        "name": name,
        "exactly": {"deviceClassName": "any", "allocationMode": "ExactCount", "count": count, **fields},
    }


def every(name: str = "r", **fields: Any) -> Json:
    return {"name": name, "exactly": {"deviceClassName": "any", "allocationMode": "All", **fields}}


def prioritized(*subs: Json, name: str = "r") -> Json:
    return {"name": name, "firstAvailable": [{"name": each["name"], **each["exactly"]} for each in subs]}


def asking(memory: str, **fields: Any) -> Json:
    return request(capacity={"requests": {"m": memory}}, **fields)


def got(*devices: str, request: str = "r", **fields: Any) -> list[Json]:
    return [{"request": request, "driver": "d", "pool": "p", "device": name, **fields} for name in devices]


def share(name: str, memory: str, id_: str = "1", **fields: Any) -> list[Json]:
    return got(name, shareID=id_, consumedCapacity={"m": memory}, **fields)


@dataclass
class World:
    """Slices, and claims that each have requests and results."""

    slices: list[Json]
    requests: list[Json]
    results: list[Json]
    second: tuple[list[Json], list[Json]] | None = None
    constraints: list[Json] = field(default_factory=list)
    config: list[Json] = field(default_factory=list)
    written_config: list[Json] = field(default_factory=list)
    selector: Json | None = field(default_factory=lambda: ON_NODE)
    taken: Taken = field(default_factory=Taken)
    off: tuple[str, ...] = ()
    node: Json | None = field(default_factory=lambda: NODE)
    ignored: frozenset[str] = frozenset()
    calls: tuple[str, str] = ("", "")

    def broken(self) -> list[str]:
        snapshot = Snapshot(
            Features(**{**ALL, **dict.fromkeys(self.off, False)}),
            [from_object(ResourceSlice, each) for each in self.slices],
            {each["metadata"]["name"]: from_object(DeviceClass, each) for each in CLASSES},
            COMPILER,
            self.taken,
            self.ignored,
        )
        judged = [self._allocated("c1", self.requests, self.results, self.calls[0])]
        if self.second is not None:
            judged.append(self._allocated("c2", *self.second, self.calls[1]))
        return sorted({each.rule for each in verify(judged, snapshot)})

    def _allocated(self, name: str, requests: list[Json], results: list[Json], call: str = "") -> Allocated:
        devices = {"requests": requests, "constraints": self.constraints, "config": self.config}
        claim = {"metadata": {"name": name, "namespace": "ns"}, "spec": {"devices": devices}}
        allocation: Json = {"devices": {"results": results, "config": self.written_config}}
        if self.selector is not None:
            allocation["nodeSelector"] = self.selector
        return Allocated(
            from_object(ResourceClaim, claim),
            from_object(AllocationResult, allocation),
            None if self.node is None else from_object(Node, self.node),
            call,
        )


def taken(*devices: str, shared: tuple[str, ...] = (), **capacity: str) -> Taken:
    sums = {DeviceId("d", "p", name): {"m": Quantity.parse(amount)} for name, amount in capacity.items()}
    return Taken(
        frozenset(DeviceId("d", "p", each) for each in devices),
        frozenset(DeviceId("d", "p", each) for each in (*shared, *capacity)),
        sums,
    )


A, B = device("a"), device("b")
PLAIN = slice_(A, B)
MATCH = {"matchAttribute": "d/i"}
DISTINCT = {"distinctAttribute": "d/i"}
ZONE: Json = {
    "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]}]
}
ELSEWHERE: Json = {
    "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["y"]}]}]
}
BOTH = ["NodePrepareResources", "NodeUnprepareResources"]
LOOK = [request(adminAccess=True)], got("a", adminAccess=True)
LOOK_AT_5 = (
    [asking("5Gi", name="look", adminAccess=True)],
    share("a", "5Gi", request="look", adminAccess=True),
)
RANGE: Json = {"default": "2Gi", "validRange": {"min": "2Gi", "step": "2Gi", "max": "6Gi"}}


def scalars(*values: Any, kind: str = "int") -> list[Json]:
    return [
        device(name, attributes={"i": {kind: value}}) for name, value in zip("abcd", values, strict=False)
    ]


BAD: list[tuple[str, World]] = [
    ("request", World([PLAIN], [request()], got("a") + got("b", request="other"))),
    ("request", World([PLAIN], [request(deviceClassName="none")], got("a"))),
    ("alternative", World([PLAIN], [prioritized(request("x"), request("y"))], got("a", request="r/x") + got("b", request="r/y"))),
    ("count", World([PLAIN], [request(count=2)], got("a"))),
    ("count", World([PLAIN], [request()], got("a", "b"))),
    ("count", World([PLAIN], [prioritized(request("x"), request("y"))], [], selector=None)),
    ("count", World([slice_()], [every()], [], selector=None)),
    ("all", World([PLAIN], [every()], got("a"))),
    ("all", World([slice_(*numbered(3))], [every(deviceClassName="even")], got("d0"))),
    ("order", World([PLAIN], [request("r"), request("q")], got("a", request="q") + got("b"))),
    ("different", World([slice_(shareable("a", "8Gi"))], [asking("1Gi", count=2)], share("a", "1Gi") + share("a", "1Gi", "2"))),
    ("limit", World([slice_(*numbered(33))], [request(count=33)], got(*(f"d{index}" for index in range(33))))),
    ("gate", World([PLAIN], [prioritized(request("x"))], got("a", request="r/x"), off=("prioritized_list",))),
    ("gate", World([PLAIN], [request(adminAccess=False)], got("a"), off=("admin_access",))),
    ("gate", World([PLAIN], [request(capacity={})], got("a"), off=("consumable_capacity",))),
    ("gate", World([PLAIN], [request(derivedAttributes=[{"name": "x/y", "expression": "1"}])], got("a"), off=("derived_attributes",))),
    ("gate", World([slice_(device("a", bindingConditions=["x"]))], [request()], got("a"), off=("device_binding_and_status",))),
    ("gate", World([slice_(drawing("a", "1"))], [request()], got("a"), off=("partitionable_devices",))),
    ("device", World([PLAIN], [request()], got("c"))),
    ("device", World([PLAIN], [request()], got("a"), node={"metadata": {"name": "m"}}, selector=ON_NODE)),
    ("device", World([PLAIN, slice_(B, name="t", generation=2)], [request()], got("a"))),
    ("device", World([slice_(A, count=2), {**counters(m="1"), "spec": {**counters(m="1")["spec"], "devices": [B]}}], [request()], got("b"))),
    ("pool", World([slice_(A, count=2)], [request()], got("a"))),
    ("pool", World([slice_(A), slice_(B, name="t")], [request()], got("a"))),
    ("pool", World([slice_(A, count=2), slice_(B, name="t", nodeName="m", generation=2)], [request()], got("a"))),
    ("pool", World([slice_(A, A)], [request()], got("a"))),
    ("pool", World([slice_(drawing("a", "1"))], [request()], got("a"))),
    ("node", World([slice_(device("a", nodeName="m"), device("b", allNodes=True), perDeviceNodeSelection=True)], [request()], got("a"))),
    ("node-operations", World([slice_(A, skipNodeOperations=["*"])], [request()], got("a", skipNodeOperations=["*"]), node={"metadata": {"name": "n"}})),
    ("selector", World([slice_(*numbered(2))], [request(deviceClassName="even")], got("d1"))),
    ("selector", World([slice_(*numbered(2))], [request(selectors=[cel("device.attributes['d'].i == 0")])], got("d1"))),
    ("selector", World([PLAIN], [request(deviceClassName="even")], got("a"))),
    ("selector", World([PLAIN], [request(selectors=[{}])], got("a"))),
    ("taint", World([slice_(device("a", taints=[TAINT]))], [request()], got("a"))),
    ("taint", World([slice_(device("a", taints=[TAINT, {**TAINT, "effect": "NoExecute"}]))], [request(tolerations=[{"key": "k", "operator": "Exists", "effect": "NoSchedule"}])], got("a", tolerations=[{"key": "k", "operator": "Exists", "effect": "NoSchedule"}]))),
    ("in-use", World([PLAIN], [request()], got("a"), taken=taken("a"))),
    ("in-use", World([slice_(shareable("a"))], [asking("1Gi")], share("a", "1Gi"), taken=taken("a"))),
    ("double", World([PLAIN], [request("r"), request("q")], got("a") + got("a", request="q"))),
    ("double", World([PLAIN], [request()], got("a"), second=([request()], got("a")))),
    ("double", World([PLAIN], *LOOK, second=([request()], got("a")))),
    ("admin-twice", World([PLAIN], [request(), request("q", adminAccess=True)], got("a") + got("a", request="q", adminAccess=True))),
    ("shared", World([PLAIN], [request()], got("a"), taken=taken(shared=("a",)))),
    ("counters", World([slice_(drawing("a", "1"), drawing("b", "2"), count=2), counters(m="2")], [request(count=2)], got("a", "b"))),
    ("counters", World([slice_(drawing("a", "1"), drawing("b", "2"), count=2), counters(m="2")], [request()], got("a"), taken=taken("b"))),
    ("counters", World([slice_(drawing("a", "0"), drawing("b", "9"), count=2), counters(m="2")], [request()], got("a"), taken=taken("b"))),
    ("counters", World([slice_(drawing("a", "1"), count=3), slice_(drawing("b", "2"), name="t", nodeName="m", count=3), {**counters(m="2"), "spec": {**counters(m="2")["spec"], "pool": {"name": "p", "generation": 1, "resourceSliceCount": 3}}}], [request()], got("a"), taken=taken("b"))),
    ("groups", World([slice_(drawing("a", "1", "x"), drawing("b", "1", "y"), count=2), counters(m="2")], [request(count=2)], got("a", "b"))),
    ("groups", World([slice_(drawing("a", "1", "x"), drawing("b", "1"), count=2), counters(m="2")], [request()], got("a"), taken=taken("b"))),
    ("groups", World([slice_(drawing("a", "1", "x", "y"), drawing("b", "1", "y", "z"), drawing("e", "1", "x", "z"), count=2), counters(m="3")], [request(count=3)], got("a", "b", "e"))),
    ("capacity", World([slice_(shareable("a"))], [asking("5Gi")], share("a", "5Gi"), second=([asking("4Gi")], share("a", "4Gi", "2")))),
    ("capacity", World([slice_(shareable("a"))], [asking("5Gi")], share("a", "5Gi"), taken=taken(a="4Gi"))),
    ("capacity", World([slice_(shareable("a"))], *LOOK_AT_5, second=([asking("4Gi")], share("a", "4Gi", "2")))),
    ("capacity", World([slice_(shareable("a"))], *LOOK_AT_5, taken=taken(a="4Gi"))),
    ("capacity", World([slice_(shareable("a"))], [asking("5Gi"), *LOOK_AT_5[0]], share("a", "5Gi") + share("a", "5Gi", "3", request="look", adminAccess=True), calls=("one", "two"))),
    ("capacity", World([slice_(device("a", capacity={"m": {"value": "4Gi"}}))], [asking("5Gi")], got("a"))),
    ("capacity-name", World([PLAIN], [asking("1Gi")], got("a"))),
    ("capacity-policy", World([slice_(shareable("a", **RANGE))], [asking("7Gi")], share("a", "8Gi"))),
    ("capacity-policy", World([slice_(shareable("a", default="1Gi", validValues=["1Gi", "2Gi"]))], [asking("3Gi")], share("a", "3Gi"))),
    ("constraint", World([slice_(*scalars(1, 2))], [request(count=2)], got("a", "b"), constraints=[MATCH])),
    ("constraint", World([slice_(*scalars(1, 1))], [request(count=2)], got("a", "b"), constraints=[DISTINCT])),
    ("constraint", World([PLAIN], [request()], got("a"), constraints=[DISTINCT])),
    ("constraint", World([slice_(*scalars([1, 2], [2, 3], [1, 3], kind="ints"))], [request(count=3)], got("a", "b", "c"), constraints=[MATCH])),
    ("constraint", World([slice_(*scalars([1, 2], [2, 3], kind="ints"))], [request(count=2)], got("a", "b"), constraints=[DISTINCT])),
    ("constraint", World([slice_(*scalars([1], [1], kind="ints"))], [request(count=2)], got("a", "b"), constraints=[MATCH], off=("list_type_attributes",))),
    ("constraint", World([slice_(*numbered(2))], [request(count=2, derivedAttributes=[{"name": "d/half", "expression": "device.attributes['d'].i % 2"}])], got("d0", "d1"), constraints=[{"matchAttribute": "d/half"}])),
    ("admin-access", World([PLAIN], [request(adminAccess=True)], got("a"))),
    ("admin-access", World([PLAIN], [request()], got("a", adminAccess=False))),
    ("tolerations", World([PLAIN], [request(tolerations=[{"operator": "Exists"}])], got("a"))),
    ("binding-conditions", World([slice_(device("a", bindingConditions=["x"], bindingFailureConditions=["y"]))], [request()], got("a", bindingConditions=["x"]))),
    ("skip-node-operations", World([slice_(A, skipNodeOperations=["*"])], [request()], got("a"))),
    ("skip-node-operations", World([PLAIN], [request()], got("a", skipNodeOperations=["*"]))),
    ("skip-node-operations", World([slice_(A, skipNodeOperations=BOTH)], [request()], got("a", skipNodeOperations=BOTH[1:]))),
    ("skip-node-operations", World([slice_(A, skipNodeOperations=BOTH)], [request()], got("a", skipNodeOperations=BOTH[::-1]))),
    ("skip-node-operations", World([slice_(A, skipNodeOperations=["*"])], [request()], got("a", skipNodeOperations=["*"]), off=("optional_node_operations",))),
    ("share-id", World([slice_(shareable("a"))], [asking("1Gi")], got("a", consumedCapacity={"m": "1Gi"}))),
    ("share-id", World([PLAIN], [request()], got("a", shareID="1"))),
    ("share-id", World([slice_(shareable("a"))], [asking("1Gi")], share("a", "1Gi"), second=([asking("1Gi")], share("a", "1Gi")))),
    ("share-id", World([slice_(shareable("a"))], [request()], got("a", shareID="1"), off=("consumable_capacity",))),
    ("consumed-capacity", World([slice_(shareable("a"))], [asking("1Gi")], share("a", "2Gi"))),
    ("consumed-capacity", World([slice_(shareable("a"))], [asking("1Gi")], got("a", shareID="1"))),
    ("consumed-capacity", World([slice_(shareable("a", **RANGE))], [asking("3Gi")], share("a", "3Gi"))),
    ("consumed-capacity", World([slice_(shareable("a", **RANGE))], [request()], share("a", "8Gi"))),
    ("config", World([PLAIN], [request(deviceClassName="tuned")], got("a"))),
    ("config", World([PLAIN], [request(), request("q")], got("a") + got("b", request="q"), config=[{"requests": ["r"], **opaque("one")}], written_config=[{"source": "FromClaim", **opaque("one")}])),
    ("config", World([PLAIN], [prioritized(request("x"), request("y"))], got("a", request="r/x"), config=[{"requests": ["r/y"], **opaque("one")}], written_config=[{"source": "FromClaim", "requests": ["r/y"], **opaque("one")}])),
    ("node-selector", World([PLAIN], [request()], got("a"), selector=None)),
    ("node-selector", World([slice_(A, nodeSelector=ZONE)], [request()], got("a"))),
    ("node-selector", World([slice_(device("a", bindsToNode=True), allNodes=True)], [request()], got("a"), selector=None)),
]  # fmt: skip

GOOD: list[World] = [
    World([PLAIN], [request(count=2)], got("a", "b")),
    World([PLAIN], [request(count=0)], [], selector=None),
    World([PLAIN], [every()], got("a", "b")),
    World([slice_(*numbered(2))], [every(deviceClassName="even")], got("d0")),
    World([PLAIN], [prioritized(request("x"), request("y"))], got("a", request="r/y")),
    World([PLAIN], [prioritized(request("x"), request("y", count=0))], [], selector=None),
    World([PLAIN], [request()], got("a"), taken=taken("b")),
    World([PLAIN, slice_(B, name="t", generation=2, nodeName="m")], [request()], got("a")),
    World([PLAIN, slice_(B, name="t", generation=0)], [request()], got("a")),
    World([PLAIN], [request(adminAccess=True)], got("a", adminAccess=True), taken=taken("a")),
    World([PLAIN], [request()], got("a"), second=([request(adminAccess=True)], got("a", adminAccess=True))),
    World([PLAIN], *LOOK, second=([request()], got("a")), calls=("one", "two")),
    World([slice_(shareable("a"))], *LOOK_AT_5, second=([asking("4Gi")], share("a", "4Gi", "2")), calls=("one", "two")),
    World([slice_(shareable("a"))], [asking("4Gi")], share("a", "4Gi", "2"), second=LOOK_AT_5, calls=("one", "two")),
    World([slice_(A, skipNodeOperations=BOTH)], [request()], got("a", skipNodeOperations=BOTH)),
    World([slice_(A, skipNodeOperations=["*"])], [request()], got("a"), off=("optional_node_operations",), node={"metadata": {"name": "n"}}),
    World([slice_(device("a", taints=[TAINT, {**TAINT, "effect": "None"}]))], [request(tolerations=[{"key": "k", "value": "v"}])], got("a", tolerations=[{"key": "k", "value": "v"}])),
    World([slice_(device("a", taints=[TAINT]))], [request()], got("a"), ignored=frozenset({"k"})),
    World([slice_(device("a", taints=[TAINT]))], [request()], got("a"), off=("device_taints",)),
    World([slice_(drawing("a", "1"), drawing("b", "1"), count=2), counters(m="2")], [request(count=2)], got("a", "b")),
    World([slice_(drawing("a", "2"), drawing("b", "2"), count=2), counters(m="2")], [request(adminAccess=True)], got("b", adminAccess=True), taken=taken("a")),
    World([slice_(drawing("a", "1", "x", "y"), drawing("b", "1", "y"), count=2), counters(m="2")], [request(count=2)], got("a", "b")),
    World([slice_({**shareable("a"), "consumesCounters": drawing("a", "2")["consumesCounters"]}, count=2), counters(m="2")], [asking("1Gi")], share("a", "1Gi"), taken=taken(a="1Gi")),
    World([slice_(shareable("a"))], [asking("4Gi")], share("a", "4Gi"), second=([asking("4096Mi")], share("a", "4Gi", "2"))),
    World([slice_(shareable("a", **RANGE))], [asking("3Gi")], share("a", "4Gi")),
    World([slice_(shareable("a", **RANGE))], [request()], share("a", "2Gi")),
    World([slice_(shareable("a", default="1Gi", validValues=["1Gi", "4Gi"]))], [asking("3Gi")], share("a", "4Gi")),
    World([slice_(shareable("a", "4", default="500m", validRange={"min": "250m", "step": "250m"}))], [asking("600m")], share("a", "750m")),
    World([slice_(shareable("a", "4", default="500m", validRange={"min": "250m", "step": "250m"}))], [asking("600m")], share("a", "1"), off=("fractional_capacity_range",)),
    World([slice_(device("a", allowMultipleAllocations=True))], [request()], got("a", shareID="1")),
    World([slice_(shareable("a"))], [request()], got("a"), off=("consumable_capacity",)),
    World([slice_(*scalars(1, 1))], [request(count=2)], got("a", "b"), constraints=[MATCH]),
    World([slice_(*scalars(1, 2))], [request(count=2)], got("a", "b"), constraints=[DISTINCT, {**MATCH, "requests": ["q"]}]),
    World([slice_(*scalars([1, 2], [2, 3], kind="ints"))], [request(count=2)], got("a", "b"), constraints=[MATCH]),
    World([slice_(A, nodeSelector=ZONE)], [request()], got("a"), selector=ZONE),
    World([slice_(device("a", nodeSelector=ZONE), device("b", nodeSelector=ELSEWHERE), perDeviceNodeSelection=True)], [request()], got("a"), selector=ZONE),
    World([slice_(A, allNodes=True)], [request()], got("a"), selector=None),
    World([PLAIN], [request()], got("a"), node=None, selector=None),
    World([PLAIN], [request(deviceClassName="tuned"), request("q")], got("a") + got("b", request="q"), written_config=[{"source": "FromClass", "requests": ["r"], **opaque("class")}]),
    World([PLAIN], [request(), request("q")], got("a") + got("b", request="q"), config=[opaque("one"), {"requests": ["q", "r"], **opaque("two")}], written_config=[{"source": "FromClaim", **opaque("one")}, {"source": "FromClaim", **opaque("two")}]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "world"), BAD, ids=[f"{rule}-{index}" for index, (rule, _) in enumerate(BAD)]
)
def test_what_breaks_one_rule_breaks_that_rule(rule: str, world: World) -> None:
    assert world.broken() == [rule]


@pytest.mark.parametrize("world", GOOD, ids=range(len(GOOD)))
def test_what_is_all_right_breaks_none(world: World) -> None:
    assert world.broken() == []


def test_each_rule_is_broken_here_by_itself() -> None:
    assert sorted({rule for rule, _ in BAD}) == sorted(RULES)


def test_devices_that_others_hold_against_the_rules_do_not_count_where_the_device_draws_nothing() -> None:
    elsewhere = drawing("e", "1")
    elsewhere["consumesCounters"][0]["counterSet"] = "other"
    sets = counters(m="9")
    sets["spec"]["sharedCounters"].append({**sets["spec"]["sharedCounters"][0], "name": "other"})
    slices = [
        slice_(drawing("a", "1", "x"), drawing("b", "1", "y"), drawing("f", "1", "x"), elsewhere, count=2),
        sets,
    ]

    assert World(slices, [request()], got("e"), taken=taken("a", "b")).broken() == []
    assert World(slices, [request()], got("f"), taken=taken("a", "b")).broken() == ["groups"]


def test_what_claims_hold_is_told_apart_by_shares_and_looks() -> None:
    results = [*got("a"), *got("b", adminAccess=True), *share("c", "1Gi"), *share("c", "2Gi", "2")]
    held = [from_object(AllocationResult, {"devices": {"results": results}})]

    with_shares, without = Taken.by(held, shares=True), Taken.by(held, shares=False)

    assert {each.device for each in with_shares.devices} == {"a"}
    assert {name: str(amount) for name, amount in with_shares.capacity[DeviceId("d", "p", "c")].items()} == {
        "m": "3Gi"
    }
    assert {each.device for each in without.devices} == {"a", "c"}


def many(*claims: tuple[str, str, bool]) -> list[Allocated]:
    """Claims on the shareable device `a`: call, amount, whether it only looks."""
    world = World([], [], [])
    return [
        world._allocated(
            f"c{number}",
            [asking(amount, **({"adminAccess": True} if looks else {}))],
            share("a", amount, str(number), **({"adminAccess": True} if looks else {})),
            call,
        )
        for number, (call, amount, looks) in enumerate(claims)
    ]


KEEPS, LOOKS = False, True


@pytest.mark.parametrize(
    ("claims", "in_order", "together"),
    [
        ([("x", "8Gi", LOOKS), ("y", "8Gi", KEEPS)], [], []),
        ([("x", "8Gi", KEEPS), ("y", "8Gi", LOOKS)], ["capacity"], []),
        ([("x", "8Gi", LOOKS), ("y", "8Gi", LOOKS)], [], []),
        ([("x", "8Gi", LOOKS), ("x", "1Gi", KEEPS)], ["capacity"], ["capacity"]),
        ([("x", "4Gi", LOOKS), ("x", "4Gi", KEEPS), ("y", "4Gi", KEEPS)], [], []),
        ([("x", "4Gi", LOOKS), ("x", "4Gi", KEEPS), ("y", "4Gi", KEEPS), ("y", "1Gi", LOOKS)], ["capacity"], ["capacity"]),
        ([("x", "5Gi", KEEPS), ("y", "4Gi", KEEPS)], ["capacity"], ["capacity"]),
    ],
)  # fmt: skip
def test_looks_count_in_their_own_call_alone_one_after_the_other_and_together(
    claims: list[tuple[str, str, bool]], in_order: list[str], together: list[str]
) -> None:
    """Calls one after the other, as they were (alloc Q-12, A-2); together, it is enough that there is an order in which all of them could have been."""
    snapshot = Snapshot(
        Features(**ALL),
        [from_object(ResourceSlice, slice_(shareable("a")))],
        {each["metadata"]["name"]: from_object(DeviceClass, each) for each in CLASSES},
        COMPILER,
    )
    judged = many(*claims)
    held: list[AllocationResult] = []
    found: set[str] = set()
    for call in dict.fromkeys(each.call for each in judged):
        now = [each for each in judged if each.call == call]
        found |= {each.rule for each in verify(now, replace(snapshot, taken=Taken.by(held, shares=True)))}
        held += [each.allocation for each in now]

    assert sorted(found) == in_order
    assert sorted({each.rule for each in verify(judged, snapshot)}) == together


def test_a_broken_rule_is_told_in_one_line() -> None:
    world = World([PLAIN], [request()], got("a"), taken=taken("a"))
    snapshot = Snapshot(Features(), [from_object(ResourceSlice, PLAIN)], {}, COMPILER, world.taken)
    told = [str(each) for each in verify([world._allocated("c", world.requests, world.results)], snapshot)]

    assert told[0] == "request: ns/c, r, d/p/a: there is no class 'any'"
