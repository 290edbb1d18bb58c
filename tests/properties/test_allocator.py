"""The allocator against an independent brute force, on small random problems.

The brute force knows nothing of the search: it lists every choice of alternatives and devices in upstream's order (alloc S-5: claims, then
requests, then alternatives, then devices) and takes the first that is allowed. Selectors are read by a tiny compiler of the test's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dra_operator.allocator import AllocatedState, Allocator, Collector, Inputs, Options, SliceList
from dra_operator.cel.meter import Meter
from dra_operator.errors import NodeFailure, NoSolution
from dra_operator.features import Features
from dra_operator.model import (
    Device,
    DeviceClass,
    DeviceId,
    Node,
    ResourceClaim,
    ResourceSlice,
    from_object,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dra_operator.cel.interface import Derivation, Selector

ON = Features(admin_access=True, prioritized_list=True, device_taints=True)
NODE = from_object(Node, {"metadata": {"name": "n"}})
MATCHED = "d0/numa"


@dataclass(frozen=True)
class Equals:
    """`driver=x`, `kind=x`: all the language that these problems need."""

    field: str
    value: str

    def matching(self, _: ResourceSlice) -> int | None:
        return None

    def matches(self, slice_: ResourceSlice, device: Device) -> bool:
        if self.field == "driver":
            return slice_.spec.driver == self.value
        return device.attributes["kind"].string == self.value


class TinyCompiler:
    def __init__(self) -> None:
        self.meter = Meter()

    def compile(self, expression: str, features: Features) -> Selector:
        del features
        return Equals(*expression.split("="))

    def compile_derived(self, expression: str, features: Features) -> Derivation:
        raise AssertionError(f"no claim has {expression} in {features}")


# --- problems


def selector(text: str) -> dict[str, Any]:
    return {"cel": {"expression": text}}


CLASSES = {
    "any": from_object(DeviceClass, {"metadata": {"name": "any"}}),
    "d0": from_object(
        DeviceClass, {"metadata": {"name": "d0"}, "spec": {"selectors": [selector("driver=d0")]}}
    ),
    "a": from_object(DeviceClass, {"metadata": {"name": "a"}, "spec": {"selectors": [selector("kind=a")]}}),
}
TAINT = {"key": "bad", "value": "x", "effect": "NoSchedule"}


@st.composite
def devices(draw: st.DrawFn, name: str) -> dict[str, Any]:
    attributes: dict[str, Any] = {"kind": {"string": draw(st.sampled_from("ab"))}}
    numa = draw(st.sampled_from([None, 0, 1, 1]))
    if numa is not None:
        attributes[MATCHED] = {"int": numa}
    return {"name": name, "attributes": attributes, "taints": draw(st.sampled_from([[], [], [], [TAINT]]))}


@st.composite
def slices(draw: st.DrawFn) -> list[dict[str, Any]]:
    made = []
    for driver, pool in draw(
        st.sampled_from([[("d0", "p")], [("d0", "q"), ("d0", "p")], [("d1", "p"), ("d0", "p")]])
    ):
        names = draw(st.permutations(["x", "y", "z"]))[: draw(st.integers(0, 3))]
        spec: dict[str, Any] = {
            "driver": driver,
            "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1},
            "nodeName": "n",
        }
        spec["devices"] = [draw(devices(name)) for name in names]
        made.append({"metadata": {"name": f"s-{driver}-{pool}"}, "spec": spec})
    return made


@st.composite
def entries(draw: st.DrawFn) -> dict[str, Any]:
    mode = draw(st.sampled_from(["ExactCount", "ExactCount", "ExactCount", "All"]))
    entry: dict[str, Any] = {
        "deviceClassName": draw(st.sampled_from(sorted(CLASSES))),
        "allocationMode": mode,
    }
    if mode == "ExactCount":
        entry["count"] = draw(st.integers(0, 3))
    entry["selectors"] = draw(st.sampled_from([[], [], [selector("kind=b")]]))
    entry["tolerations"] = draw(st.sampled_from([[], [{"operator": "Exists"}]]))
    return entry


@st.composite
def claims(draw: st.DrawFn, name: str) -> dict[str, Any]:
    requests: list[dict[str, Any]] = []
    for index in range(draw(st.integers(1, 2))):
        if draw(st.booleans()):
            looks_only = draw(st.sampled_from([{}, {}, {"adminAccess": False}, {"adminAccess": True}]))
            requests.append({"name": f"r{index}", "exactly": {**draw(entries()), **looks_only}})
        else:
            alternatives = [{"name": f"s{k}", **draw(entries())} for k in range(draw(st.integers(1, 3)))]
            requests.append({"name": f"r{index}", "firstAvailable": alternatives})
    bound = draw(st.sampled_from([None, None, [], ["r0"], ["r0/s0", "r1"]]))
    constraints = [] if bound is None else [{"matchAttribute": MATCHED, "requests": bound}]
    return {
        "metadata": {"name": name},
        "spec": {"devices": {"requests": requests, "constraints": constraints}},
    }


@dataclass(frozen=True)
class Problem:
    slices: tuple[ResourceSlice, ...]
    claims: tuple[ResourceClaim, ...]
    allocated: frozenset[DeviceId]

    def inputs(self) -> Inputs:
        return Inputs(
            ON, CLASSES, SliceList(self.slices), AllocatedState(devices=self.allocated), TinyCompiler()
        )


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    published = tuple(from_object(ResourceSlice, raw) for raw in draw(slices()))
    wanted = tuple(from_object(ResourceClaim, draw(claims(f"c{i}"))) for i in range(draw(st.integers(1, 2))))
    ids = [slice_.device_id(device) for slice_ in published for device in slice_.spec.devices]
    used = draw(st.sets(st.sampled_from(ids), max_size=2)) if ids else set()
    return Problem(published, wanted, frozenset(used))


# --- the brute force

Pick = tuple[str, DeviceId]  # request reference, device


@dataclass(frozen=True)
class Known:
    """A published device."""

    id: DeviceId
    slice_: ResourceSlice
    device: Device


def in_order(problem: Problem) -> list[Known]:
    pools = sorted(problem.slices, key=lambda slice_: slice_.pool_id)
    return [Known(each.device_id(device), each, device) for each in pools for device in each.spec.devices]


def fits(entry: Any, known: Known) -> bool:
    wanted = [*CLASSES[entry.device_class_name].spec.selectors, *entry.selectors]
    return all(Equals(*each.cel.expression.split("=")).matches(known.slice_, known.device) for each in wanted)


def choices(problem: Problem, entry: Any) -> Iterator[tuple[Known, ...]]:
    """Sets of devices for one entry, in order; taken devices and taints are looked at later."""
    matching = [known for known in in_order(problem) if fits(entry, known)]
    if entry.allocation_mode == "All":
        if matching:
            yield tuple(matching)
    else:
        yield from combinations(matching, entry.count)


def vectors(problem: Problem) -> Iterator[list[list[tuple[str, Any, tuple[Known, ...]]]]]:
    """Every choice for all requests of all claims, lexicographically."""
    flat = [
        (number, request)
        for number, claim in enumerate(problem.claims)
        for request in claim.spec.devices.requests
    ]

    def extend(index: int, made: list[list[tuple[str, Any, tuple[Known, ...]]]]) -> Iterator[Any]:
        if index == len(flat):
            yield made
            return
        number, request = flat[index]
        options: list[tuple[str, Any]] = [(request.name, request.exactly)] if request.exactly else []
        options += [(f"{request.name}/{sub.name}", sub) for sub in request.first_available]
        for ref, entry in options:
            for chosen in choices(problem, entry):
                more = [list(each) for each in made]
                more[number].append((ref, entry, chosen))
                if allowed(problem, more):
                    yield from extend(index + 1, more)

    yield from extend(0, [[] for _ in problem.claims])


def allowed(problem: Problem, made: list[list[tuple[str, Any, tuple[Known, ...]]]]) -> bool:
    if not free(problem, made):
        return False
    tolerated = all(
        not known.device.taints or entry.tolerations
        for claim in made
        for _, entry, chosen in claim
        for known in chosen
    )
    return tolerated and all(map(constrained, problem.claims, made))


def free(problem: Problem, made: list[list[tuple[str, Any, tuple[Known, ...]]]]) -> bool:
    """Nobody takes what is taken; admin access takes it all the same, but never twice in a claim (alloc S-11…S-13)."""
    anybody = set(problem.allocated)
    for claim in made:
        same: set[DeviceId] = set()
        for _, entry, chosen in claim:
            for known in chosen:
                if known.id in (same if getattr(entry, "admin_access", None) else anybody):
                    return False
                same.add(known.id)
                anybody.add(known.id)
    return True


def constrained(claim: ResourceClaim, made: list[tuple[str, Any, tuple[Known, ...]]]) -> bool:
    for constraint in claim.spec.devices.constraints:
        bound = [
            known.device.attributes.get(MATCHED)
            for ref, _, chosen in made
            if not constraint.requests or {ref, ref.partition("/")[0]} & set(constraint.requests)
            for known in chosen
        ]
        if None in bound or any(value != bound[0] for value in bound):
            return False
    return True


def expected(problem: Problem) -> list[list[Pick]] | None:
    first = next(vectors(problem), None)
    if first is None:
        return None
    return [[(ref, known.id) for ref, _, chosen in claim for known in chosen] for claim in first]


def uses_all_under_constraint(problem: Problem) -> bool:
    """Mode All that meets a constraint is an error of its own (alloc S-17), not an answer."""
    return any(
        claim.spec.devices.constraints
        and any(
            entry.allocation_mode == "All"
            for request in claim.spec.devices.requests
            for entry in (request.exactly, *request.first_available)
            if entry
        )
        for claim in problem.claims
    )


def answer(problem: Problem) -> list[list[Pick]] | None:
    try:
        results = Allocator(problem.inputs(), Options(max_steps=None)).allocate(NODE, problem.claims)
    except NoSolution:
        return None
    return [[(entry.request, entry.device_id) for entry in result.devices.results] for result in results]


# --- properties


@settings(max_examples=200, deadline=None)
@given(problems())
def test_the_first_solution_in_upstreams_order(problem: Problem) -> None:
    """The lexicographically smallest choice, or none if there is none (alloc S-5, S-9, S-18)."""
    try:
        actual = answer(problem)
    except NodeFailure:
        assert uses_all_under_constraint(problem)
        return
    assert actual == expected(problem)


@settings(max_examples=50, deadline=None)
@given(problems())
def test_listening_changes_nothing(problem: Problem) -> None:
    """The reporter hears, it does not steer; and a second call on the same allocator gives the same answer (alloc I-1)."""
    inputs = problem.inputs()
    allocator = Allocator(inputs, Options(), Collector())
    outcomes: list[Any] = []
    for each in (allocator, allocator, Allocator(inputs)):
        try:
            outcomes.append(each.allocate(NODE, problem.claims))
        except (NoSolution, NodeFailure) as error:
            outcomes.append(type(error))
    assert outcomes[0] == outcomes[1] == outcomes[2]


@settings(max_examples=50, deadline=None)
@given(problems())
def test_a_failed_search_names_a_reason_for_every_device_that_it_saw(problem: Problem) -> None:
    heard = Collector()
    try:
        Allocator(problem.inputs(), Options(), heard).allocate(NODE, problem.claims)
    except NoSolution:
        assert heard.devices or heard.requests or heard.fitted or not in_order(problem)
    except NodeFailure:
        assert uses_all_under_constraint(problem)
