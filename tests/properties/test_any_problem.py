"""What holds whatever the allocator is asked: on small problems in which features meet, made small where one fails.

A problem that is told can be put to upstream's allocator as it is: it has the form of tests/oracle/README.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_operator.allocator import AllocatedState, Inputs, Options, SliceList
from dra_operator.allocator.judge import Judge
from dra_operator.allocator.pools import view_of
from dra_operator.allocator.requests import Reader
from dra_operator.allocator.taking import Taking
from dra_operator.cel import default_compiler
from dra_operator.cluster import Cluster
from dra_operator.errors import DraError
from dra_operator.model import ResourceClaim, from_object
from dra_operator.verification import Allocated, Taken, verify
from tests.conformance.problems import decode_problem
from tests.conformance.running import ask, options_for
from tests.oracle.allocations.proofs import broken, snapshot_of
from tests.properties.problems.drawn import problems

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dra_operator.allocator.reporter import Rejection
    from dra_operator.allocator.requests import ClaimRequests, Wanted
    from dra_operator.model import AllocationResult
    from tests.conformance.problems import Problem

Json = dict[str, Any]

COMPILER: Final = default_compiler()
AS_SHIPPED: Final = Options()
AT_ONCE: Final = replace(AS_SHIPPED, patience=-1)
"""A search that leaves out what it need not try from its first step on."""


def outcome(raw: Json, options: Options = AS_SHIPPED) -> str:
    return ask(decode_problem(raw), COMPILER, options).outcome


# --- one call


@settings(max_examples=120)
@given(problems(), st.sampled_from(["as shipped", "pruned at once", "as upstream"]))
def test_inputs_stay_as_they_are_and_what_is_given_obeys_all_rules(raw: Json, way: str) -> None:
    """Whatever comes out is an answer or an error that is told (alloc I-5)."""
    problem = decode_problem(raw)
    options = {"as shipped": AS_SHIPPED, "pruned at once": AT_ONCE}.get(way) or options_for(problem)
    before = problem.fingerprint()

    said = ask(problem, COMPILER, options)

    assert problem.fingerprint() == before
    if said.outcome == "results" and way != "as upstream":
        assert list(map(str, broken(problem, said.results, COMPILER))) == []


@settings(max_examples=120)
@given(problems(), st.data())
def test_the_order_of_interchangeable_devices_does_not_decide_whether_there_is_a_solution(
    raw: Json, data: st.DataObject
) -> None:
    """Devices of a slice may be published in any order; only which of them are given may change (alloc P-16, S-5)."""
    slices = [
        {**each, "spec": {**each["spec"], "devices": data.draw(st.permutations(each["spec"]["devices"]))}}
        if each["spec"].get("devices")
        else each
        for each in raw["slices"]
    ]

    said = {outcome(raw), outcome({**raw, "slices": slices})}

    assert said != {"results", "none"}  # a selector that fails may be met, or not


# --- one take


def refusals(taking: Taking, wanted: Sequence[tuple[int, Wanted]], positions: int) -> list[Rejection | str]:
    """What comes of each take that could be next, each given back at once."""
    found: list[Rejection | str] = []
    for claim, each in wanted:
        for position in range(positions):
            refusal = _take(taking, claim, each, position)
            if refusal is None:
                taking.give_back(claim)
            found.append(refusal or "taken")
    return found


def _take(taking: Taking, claim: int, wanted: Wanted, position: int) -> Rejection | str | None:
    try:
        return taking.take(claim, wanted, position)
    except DraError as error:
        return str(error)


@settings(max_examples=120)
@given(problems(), st.data())
def test_to_take_a_device_and_to_give_it_back_changes_nothing(raw: Json, data: st.DataObject) -> None:
    """After any number of takes, and as many given back, the next one is refused or not as it was before, with the same reason (alloc S-20)."""
    problem = decode_problem(raw)
    try:
        taking, wanted, positions = beginning(problem)
    except DraError:
        return
    if not wanted or not positions:
        return
    seen = [refusals(taking, wanted, positions)]
    took: list[int] = []
    choice = st.tuples(st.sampled_from(wanted), st.integers(0, positions - 1))
    for (claim, each), position in data.draw(st.lists(choice, max_size=6)):
        if _take(taking, claim, each, position) is None:
            took.append(claim)
            seen.append(refusals(taking, wanted, positions))

    for claim in reversed(took):
        assert refusals(taking, wanted, positions) == seen.pop()
        taking.give_back(claim)
    assert refusals(taking, wanted, positions) == seen.pop()


def beginning(problem: Problem) -> tuple[Taking, list[tuple[int, Wanted]], int]:
    """A call before its first take; what is wanted, with its claim; how many candidates there are."""
    classes = {each.metadata.name: each for each in problem.classes}
    inputs = Inputs(problem.features, classes, SliceList(problem.slices), problem.allocated, COMPILER)
    view = view_of(inputs.slices, problem.nodes[0], problem.features, strict=False)
    reader = Reader(inputs, AS_SHIPPED, view)
    claims = [reader.read(claim) for claim in problem.claims]
    taking = Taking(view, claims, Judge(inputs, AS_SHIPPED, view), AS_SHIPPED, in_words=True)
    return taking, list(_wanted(claims)), len(view.candidates)


def _wanted(claims: Sequence[ClaimRequests]) -> Iterator[tuple[int, Wanted]]:
    for number, claim in enumerate(claims):
        for request in claim.requests:
            yield from ((number, each) for each in request.alternatives)


# --- claim after claim


class Served:
    """A cluster that gives devices to the claims of a problem, one after the other; what was taken before is held by claims of its own.

    Attributes:
        cluster: what is taken, kept up to date claim by claim.
        given: by claim, in order.
        broken: rules that an allocation breaks beside those before it.
    """

    def __init__(self, raw: Json) -> None:
        whole = decode_problem(raw)
        self._problem = replace(whole, nodes=whole.nodes[:1])
        self.features = whole.features
        self.cluster = Cluster(whole.features)
        self.holders = list(holders(raw["allocated"]))
        self.claims = [_known(claim) for claim in whole.claims]
        for claim in (*self.holders, *self.claims):
            self.cluster.apply("ADDED", claim)
        self.before = state_of(self.cluster.allocated_state())
        self.given: dict[str, AllocationResult] = {}
        self.broken: list[str] = []
        for claim in self.claims:
            self._serve(claim)

    def _serve(self, claim: ResourceClaim) -> None:
        problem = replace(self._problem, claims=(claim,), allocated=self.cluster.allocated_state())
        said = ask(problem, COMPILER, AS_SHIPPED)
        if said.outcome == "results":
            (result,) = said.results
            self.broken += self.judged([claim], {claim.metadata.uid: result})
            self.given[claim.metadata.uid] = result
            self.cluster.reserve(claim.metadata.uid, result)

    def judged(self, claims: Sequence[ResourceClaim], given: dict[str, AllocationResult]) -> list[str]:
        """Rules that these allocations break together, beside what holds and was given; each was a call."""
        node = self._problem.nodes[0]
        new = [
            Allocated(each, given[each.metadata.uid], node, call=each.key)
            for each in claims
            if each.metadata.uid in given
        ]
        held = [each.status.allocation for each in self.holders if each.status.allocation is not None]
        others = [*held, *(result for uid, result in self.given.items() if uid not in given)]
        snapshot = replace(snapshot_of(self._problem, COMPILER), taken=self.taken_by(others))
        return list(map(str, verify(new, snapshot)))

    def taken_by(self, allocations: Sequence[AllocationResult]) -> Taken:
        """As the verifier counts it."""
        return Taken.by(allocations, shares=self._problem.features.consumable_capacity)


def _known(claim: ResourceClaim) -> ResourceClaim:
    metadata = msgspec.structs.replace(claim.metadata, uid=claim.metadata.name, resource_version="1")
    return msgspec.structs.replace(claim, metadata=metadata)


def written(claim: ResourceClaim, allocation: AllocationResult | None) -> ResourceClaim:
    """The claim after the write of its allocation."""
    metadata = msgspec.structs.replace(claim.metadata, resource_version="2")
    status = msgspec.structs.replace(claim.status, allocation=allocation)
    return msgspec.structs.replace(claim, metadata=metadata, status=status)


def holders(taken: Json) -> Iterator[ResourceClaim]:
    """Claims that hold what is taken, a device or a share each; the first share of a device takes all that is taken of it."""
    sums = {_id(each): each["capacity"] for each in taken["aggregatedCapacity"]}
    for number, each in enumerate([*taken["devices"], *taken["sharedDeviceIDs"]]):
        result: Json = {"request": "r", **each}
        if "shareID" in each:
            result |= {"shareID": f"{number}", "consumedCapacity": sums.pop(_id(each), {})}
        allocation = {"devices": {"results": [result]}}
        metadata = {"name": f"holder-{number}", "namespace": "default", "uid": f"holder-{number}"}
        raw = {"metadata": {**metadata, "resourceVersion": "1"}, "status": {"allocation": allocation}}
        yield from_object(ResourceClaim, raw)


def _id(ref: Json) -> tuple[str, str, str]:
    return ref["driver"], ref["pool"], ref["device"]


def state_of(state: AllocatedState | Taken) -> tuple[Any, ...]:
    """A copy that compares; sums of nothing are none (alloc A-6)."""
    capacity = {
        key: {name: amount.nano for name, amount in sums.items()} for key, sums in state.capacity.items()
    }
    return frozenset(state.devices), frozenset(state.shared), capacity


ADDED_UP = st.sampled_from(["capacity", "counters", "groups", "admin"])
"""Topics in which claims meet without having the same device."""


@settings(max_examples=150)
@given(ADDED_UP.flatmap(lambda topic: problems("claims", topic)))
def test_claims_that_come_one_by_one_are_never_given_more_than_the_rules_allow(raw: Json) -> None:
    """Neither as each is decided, beside what the others hold, nor all together in the end (alloc A-2, Q-12)."""
    served = Served(raw)

    assert served.broken == []
    assert served.judged(served.claims, served.given) == []


@settings(max_examples=100)
@given(problems("claims", "taken"), st.data())
def test_to_serve_claims_and_to_let_them_go_in_any_order_leaves_the_state_as_it_was(
    raw: Json, data: st.DataObject
) -> None:
    """What they hold in between is what they would hold in a cluster made anew, and what the verifier counts (alloc section 14)."""
    served = Served(raw)
    cluster, left = served.cluster, dict(served.given)
    by_uid = {each.metadata.uid: each for each in served.claims}
    seen = [uid for uid in left if data.draw(st.booleans(), label=f"the write of {uid} is seen")]
    for uid in seen:
        cluster.apply("MODIFIED", written(by_uid[uid], left[uid]))

    for uid in data.draw(st.permutations(list(left)), label="let go"):
        assert state_of(cluster.allocated_state()) == made_anew(served, left)
        allocation = left.pop(uid)
        if uid in seen:
            cluster.apply("DELETED", written(by_uid[uid], allocation))
        else:
            cluster.unreserve(uid)
    assert state_of(cluster.allocated_state()) == made_anew(served, left) == served.before


def made_anew(served: Served, given: dict[str, AllocationResult]) -> tuple[Any, ...]:
    """The state of a cluster that learns of everything at once; the verifier counts the same."""
    cluster = Cluster(served.features)
    claims = [*served.holders, *(written(each, given.get(each.metadata.uid)) for each in served.claims)]
    for claim in reversed(claims):
        cluster.apply("ADDED", claim)
    held = [each.status.allocation for each in claims if each.status.allocation is not None]
    found = state_of(cluster.allocated_state())
    assert found == state_of(served.taken_by(held))
    return found
