"""What users read when no node serves their pod: reasons folded, figures, whether waiting helps, the next step."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from dra_operator.allocator import Rejection, Why
from dra_operator.explain import MAX_BYTES, explain
from dra_operator.model import DeviceId
from dra_operator.placement import Cause, DeviceTally, NodeFinding, Offer, Unplaced, Verdict
from dra_operator.placement.vocabulary import in_words, why_of
from dra_operator.quantity import Quantity


def tally(request: str = "gpu", seen: int = 8, wanted: int = 1, **rejected: int) -> DeviceTally:
    counts = {reason.replace("_", " "): count for reason, count in rejected.items()}
    return DeviceTally("ns/c", request, "gpu.example.com", wanted, seen, counts)


def shortage(node: str, *, lasting: bool = False, **rejected: int) -> NodeFinding:
    text = f"node(s) have too few {'' if lasting else 'free '}devices for request gpu"
    return NodeFinding(node, Cause.DEVICES, text, (tally("gpu", 8, 1, **rejected),), lasting)


def test_nodes_and_devices_are_summed_and_the_next_step_is_told() -> None:
    found = explain(
        Unplaced(
            5,
            (
                NodeFinding("", Cause.ABSENT, "node(s) have no device for request gpu", lasting=True),
                shortage("n1", in_use=8),
                shortage("n2", in_use=5, tainted=3),
                shortage("n3", in_use=8),
                NodeFinding("n4", Cause.POD, "node(s) had untolerated taint {a: b}", lasting=True),
            ),
        )
    )

    assert found.verdict is Verdict.NOT_NOW
    assert found.message == (
        "0/5 nodes can serve this pod: 3 node(s) have too few free devices for request gpu (class gpu.example.com, 1 wanted, "
        "24 devices seen: 21 in use, 3 tainted, 0 free), 1 node(s) have no device for request gpu, 1 node(s) had untolerated taint "
        "{a: b}. Waiting: the pod goes on by itself as soon as that changes; to go on at once, end a pod that holds such "
        "devices or add some."
    )


def test_a_finding_for_many_nodes_counts_them_all() -> None:
    missing = NodeFinding(
        "", Cause.ABSENT, "node(s) have no device for request gpu", (tally(seen=0),), lasting=True, count=7
    )

    assert explain(Unplaced(7, (missing,))).message == (
        "0/7 nodes can serve this pod: 7 node(s) have no device for request gpu (class gpu.example.com, 1 wanted, 0 devices "
        "seen). Waiting will not help; check the class and the selectors against the published devices (kubectl get "
        "deviceclasses,resourceslices -o yaml; without the right to, ask an admin), and that the driver runs on its nodes."
    )


def test_alternatives_of_a_prioritized_list_are_told_apart() -> None:
    text = "node(s) have too few free devices for request r"
    finding = NodeFinding("n1", Cause.DEVICES, text, (tally("r/big", in_use=8), tally("r/small", in_use=2)))

    assert (
        "(r/big: class gpu.example.com, 1 wanted, 8 devices seen: 8 in use, 0 free; "
        "r/small: class gpu.example.com, 1 wanted, 8 devices seen: 2 in use, 6 free)"
    ) in explain(Unplaced(1, (finding,))).message


def test_devices_that_nodes_share_count_once() -> None:
    """A hundred nodes that see the same pool do not make a hundred pools of it."""
    text = "node(s) have too few free devices for request gpu"
    shared = replace(tally(seen=4, wanted=5, in_use=1), shared=True)
    findings = tuple(
        NodeFinding(f"n{number}", Cause.DEVICES, text, (tally(seen=2, wanted=5), shared))
        for number in range(3)
    )

    assert "5 wanted, 10 devices seen: 1 in use, 9 free)" in explain(Unplaced(3, findings)).message


def test_a_request_for_all_devices_says_so() -> None:
    finding = NodeFinding("n1", Cause.DEVICES, "node(s) have too few", (tally(wanted=0),))

    assert "class gpu.example.com, all wanted, 8 devices seen" in explain(Unplaced(1, (finding,))).message


def test_rare_reasons_of_devices_are_only_counted() -> None:
    finding = shortage("n1", a=5, b=4, c=3, d=2, e=1)

    assert "5 a, 4 b, 3 c, 3 for other reasons)" in explain(Unplaced(1, (finding,))).message


@pytest.mark.parametrize(
    ("finding", "verdict", "words"),
    [
        (
            shortage("n1", lasting=True),
            Verdict.NEVER,
            "Waiting will not help; ask for fewer devices in one pod",
        ),
        (
            NodeFinding("n1", Cause.LIMIT, "node(s) where the search gave up after 9 steps"),
            Verdict.GAVE_UP,
            "a solution may exist; make the claim easier",
        ),
        (NodeFinding("n1", Cause.ROOM, "Insufficient cpu"), Verdict.NOT_NOW, "free resources on those nodes"),
        (
            NodeFinding("n1", Cause.ROOM, "Insufficient cpu", lasting=True),
            Verdict.NEVER,
            "lower the pod's resource requests",
        ),
        (
            NodeFinding("n1", Cause.POD, "node(s) had …", lasting=True),
            Verdict.NEVER,
            "change the pod's tolerations",
        ),
        (
            NodeFinding("n1", Cause.CLAIM, "node(s) cannot reach …"),
            Verdict.NOT_NOW,
            "end the pods that use the claim",
        ),
        (
            NodeFinding("n1", Cause.STATE, "node(s) were not ready"),
            Verdict.NOT_NOW,
            "uncordon or mend a node",
        ),
    ],
)
def test_the_verdict_and_the_next_step_fit_the_cause(
    finding: NodeFinding, verdict: Verdict, words: str
) -> None:
    found = explain(Unplaced(1, (finding,)))

    assert found.verdict is verdict
    assert words in found.message


FOO = "example.com/foo"


def room(count: int, *absent: str, text: str = f"Insufficient {FOO}") -> NodeFinding:
    return NodeFinding("", Cause.ROOM, text, lasting=True, count=count, absent=absent)


def tainted(count: int) -> NodeFinding:
    return NodeFinding("", Cause.POD, "node(s) had untolerated taint {a}", lasting=True, count=count)


@pytest.mark.parametrize(
    ("findings", "words"),
    [
        ((tainted(1), room(20)), "lower the pod's resource requests"),
        ((tainted(20), room(1)), "change the pod's tolerations"),
        ((tainted(1), room(20, FOO)), f"take {FOO} out of the resource requests and limits of the pod"),
        ((room(19, FOO), room(1, FOO, "a.com/b"), tainted(1)), f"take {FOO} out of"),
        ((room(19, FOO), room(1)), "lower the pod's resource requests"),
        ((room(20, FOO), shortage("n", lasting=True)), "ask for fewer devices in one pod"),
    ],
)
def test_the_next_step_is_that_of_the_reason_which_keeps_the_pod_off_most_nodes(
    findings: tuple[NodeFinding, ...], words: str
) -> None:
    """Fewer tolerations are no help for a resource that twenty nodes do not have."""
    assert f"Waiting will not help; {words}" in explain(Unplaced(21, findings)).message


def less(amount: str, part: Fraction, *, later: bool = False, name: str = "n1") -> NodeFinding:
    device = DeviceId("gpu.example.com", name, "a")
    amounts = {"memory": Quantity.parse(amount)}
    offer = Offer("request gpu", amounts, device, name, part, later)
    text = "node(s) have no combination of free devices for request gpu"
    return NodeFinding(name, Cause.COMBINATION, text, lasting=later, offer=offer)


@pytest.mark.parametrize(
    ("findings", "words"),
    [
        (
            (less("10Gi", Fraction(1, 3)), less("20Gi", Fraction(2, 3), name="n2")),
            "to go on at once, ask for less: request gpu could have up to 20Gi of memory now, with device gpu.example.com/n2/a on node n2; or free",
        ),
        (
            (less("40Gi", Fraction(1, 2), later=True),),
            "help; ask for less: request gpu could have up to 40Gi of memory, with device gpu.example.com/n1/a on node n1, while that is free",
        ),
        (
            (less("40Gi", Fraction(1, 2), later=True), less("10Gi", Fraction(1, 8), name="n2")),
            "could have up to 10Gi of memory now, with device gpu.example.com/n2/a",
        ),
        (
            (less("10Gi", Fraction(1, 3)), shortage("n2", in_use=8)),
            "end a pod that holds such devices",
        ),
    ],
)
def test_what_could_be_had_for_less_is_the_next_step(findings: tuple[NodeFinding, ...], words: str) -> None:
    """The offer that is nearest to what is asked for, of the nodes that the verdict is about."""
    assert words in explain(Unplaced(2, findings)).message


def in_a_combination(*reasons: Rejection, lasting: bool = False) -> NodeFinding:
    counts = {in_words(reason): 2 for reason in reasons}
    found = DeviceTally("ns/c", "gpu", "gpu.example.com", 1, 8, counts)
    text = "node(s) have no combination of free devices for request gpu"
    return NodeFinding("n1", Cause.COMBINATION, text, (found,), lasting)


COUNTERS = Rejection(Why.COUNTERS, "set/memory: 20Gi asked for, 10Gi of 40Gi left")
CAPACITY = Rejection(Why.CAPACITY, "memory: the device has no such capacity")
CONSTRAINT = Rejection(Why.CONSTRAINT, "constraints[0], matchAttribute a.test/numa")


@pytest.mark.parametrize(
    ("finding", "words"),
    [
        (in_a_combination(COUNTERS), "end pods whose devices draw on the same counters"),
        (in_a_combination(COUNTERS, lasting=True), "would not suffice if nothing were in use"),
        (in_a_combination(CAPACITY), "end pods that have shares of such devices"),
        (in_a_combination(CAPACITY, lasting=True), "ask only for capacities that the devices have"),
        (in_a_combination(COUNTERS, CONSTRAINT), "loosen the claim's constraints"),
        (in_a_combination(CONSTRAINT, lasting=True), "loosen the constraints or selectors of the claim"),
        (in_a_combination(), "loosen the claim's constraints"),
        (shortage("n1", tainted_a=8), "tolerate the taint in the claim's request"),
        (shortage("n1", tainted_a=7, in_use=1), "end a pod that holds such devices"),
    ],
)
def test_the_next_step_is_about_what_keeps_the_devices_off(finding: NodeFinding, words: str) -> None:
    """No pod holds what is only tainted; a claim without constraints cannot loosen them."""
    assert words in explain(Unplaced(1, (finding,))).message


def test_one_node_that_may_come_free_makes_it_not_now() -> None:
    findings = (shortage("n1", lasting=True), NodeFinding("n2", Cause.ROOM, "Insufficient cpu"))

    assert explain(Unplaced(2, findings)).verdict is Verdict.NOT_NOW


def test_a_cluster_without_nodes_is_told_to_get_some() -> None:
    assert explain(Unplaced(0, ())).message == (
        "0/0 nodes can serve this pod. Waiting will not help; add nodes."
    )


def test_a_text_never_exceeds_an_event_and_keeps_its_end() -> None:
    """An event message holds 1024 bytes."""
    findings = tuple(
        NodeFinding(f"n{index}", Cause.FAULT, f"node(s) where pool ünïcödé-{index} is invalid: {'x' * 300}")
        for index in range(50)
    )
    message = explain(Unplaced(50, findings)).message

    assert len(message.encode()) <= MAX_BYTES
    assert "more reason(s). Waiting:" in message


def test_as_many_reasons_as_nodes_are_no_work() -> None:
    """A driver that is being upgraded breaks the pool of each node in words of its own; trying all of them takes minutes."""
    findings = tuple(
        NodeFinding(f"n{index}", Cause.FAULT, f"node(s) whose pool gpu.example.com/n{index} is incomplete")
        for index in range(50_000)
    )
    message = explain(Unplaced(50_000, findings)).message

    assert len(message.encode()) <= MAX_BYTES
    shown = message.count("is incomplete")
    assert f"and {50_000 - shown} more reason(s)" in message


def test_the_most_frequent_reason_comes_first_whatever_the_order_of_nodes() -> None:
    one = NodeFinding("n1", Cause.ROOM, "Insufficient cpu")
    two = [NodeFinding(name, Cause.ROOM, "Insufficient memory") for name in ("n2", "n3")]

    assert explain(Unplaced(3, (one, *two))) == explain(Unplaced(3, (*two, one)))


@pytest.mark.parametrize("why", Why)
def test_the_words_of_each_reason_tell_which_it_is(why: Why) -> None:
    assert why_of(in_words(Rejection(why, "detail"))) is why
