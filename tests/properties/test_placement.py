"""Placement on random clusters: plans are sound, pruning loses nothing, and what is kept between decisions never shows.

The reference is slow and simple: every node by name, every check, the allocator without counting first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from dra_operator.allocator import Allocator, Inputs, Options
from dra_operator.errors import NodeFailure, NoSolution
from dra_operator.features import DEFAULT_1_37
from dra_operator.model import OWNED_TAINT
from dra_operator.placement import Allocate, Placer, Plan, Unplaced, Verdict
from dra_operator.placement.nodes import node_reason
from dra_operator.placement.resources import demand_of
from tests.unit.placement.build import (
    GPU,
    NIC,
    ToyCompiler,
    allocated,
    claim,
    cluster_of,
    cpu,
    exactly,
    form,
    gpu_class,
    nic_class,
    node,
    placer,
    pod,
    policy,
    running,
    slice_,
)

if TYPE_CHECKING:
    from typing import Any

    from dra_operator.cluster import Cluster
    from dra_operator.model import DeviceId, Node, Pod, PoolId, ResourceClaim

MODELS = ("a", "b")
NAMES = ("n1", "n2", "n3")

models = st.sampled_from(MODELS)
names = st.sampled_from(NAMES)


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Up to three nodes, some full or tainted; GPUs of a pool a node, some of them owned, some incomplete; NICs that are theirs."""
    model = cluster_of(gpu_class(), nic_class(), policy("some", {"driver": GPU, "pool": draw(names)}))
    if draw(st.booleans()):
        model.apply("ADDED", policy("all"))
    for name in NAMES:
        if draw(st.booleans()) or name == "n1":
            taints = [{"key": "t", "effect": "NoSchedule"}] if draw(st.integers(0, 4)) == 0 else []
            cordoned = draw(st.integers(0, 4)) == 0
            model.apply("ADDED", node(name, taints=taints, unschedulable=cordoned))
            model.apply("ADDED", running(f"load-{name}", name, containers=cpu(str(draw(st.integers(0, 4))))))
        gpus = [f"gpu-{index}:{item}" for index, item in enumerate(draw(st.lists(models, max_size=3)))]
        model.apply("ADDED", slice_(f"gpus-{name}", gpus, on=name, of=draw(st.sampled_from((1, 1, 1, 2)))))
        if draw(st.booleans()):
            model.apply("ADDED", slice_(f"nics-{name}", ["nic-0"], on=name, driver=NIC))
    if draw(st.booleans()):
        model.apply("ADDED", slice_("fabric", [f"gpu-0:{draw(models)}"]))
    held = draw(st.sets(st.tuples(names, st.integers(0, 2)), max_size=4))
    for name, index in sorted(held):
        model.apply("ADDED", allocated(f"held-{name}-{index}", f"{name}/gpu-{index}", on=name))
    return model


@st.composite
def requests(draw: st.DrawFn, name: str) -> dict[str, Any]:
    """One request for GPUs."""
    selectors = [f"model={draw(models)}"] if draw(st.booleans()) else []
    kind = draw(st.sampled_from(("exact", "exact", "all", "list")))
    if kind == "all":
        return {"name": name, "exactly": form("gpu", *selectors) | {"allocationMode": "All", "count": 0}}
    if kind == "list":
        listed = [
            {"name": item, **form("gpu", f"model={item}", count=draw(st.integers(1, 2)))} for item in MODELS
        ]
        return {"name": name, "firstAvailable": listed}
    return exactly(name, "gpu", *selectors, count=draw(st.integers(1, 3)))


@st.composite
def pods(draw: st.DrawFn, model: Cluster) -> Pod:
    """A gated pod with one or two GPU claims and perhaps a NIC; its claims are put into the model."""
    shared = draw(st.sampled_from((None, None, "model", "modell")))
    constraints = [{"matchAttribute": f"{GPU}/{shared}"}] if shared else []
    asked = [draw(requests(f"r{index}")) for index in range(draw(st.integers(1, 2)))]
    wanted = [claim("a", *asked, constraints=constraints)]
    if draw(st.booleans()):
        wanted.append(claim("b", draw(requests("r"))))
    if draw(st.booleans()):
        wanted.append(claim("net", exactly("nic", "nic")))
    for item in wanted:
        model.apply("ADDED", item)
    selector = {"zone": "b"} if draw(st.integers(0, 4)) == 0 else {}
    load = cpu(str(draw(st.sampled_from((0, 1, 2, 100)))))
    return pod("p", *[item.metadata.name for item in wanted], containers=load, nodeSelector=selector)


def devices_of(plan: Plan) -> list[DeviceId]:
    decisions = (*plan.ours, *plan.theirs)
    return [item.device_id for decision in decisions for item in decision.allocation.devices.results]


def works(model: Cluster, subject: Pod, work: Allocate, target: Node) -> bool:
    """Whether the node serves the pod, asked the slow way."""
    usage = model.node_usage(target.name)
    if node_reason(subject, demand_of(subject), target, usage, ()) is not None:
        return False
    ours = solvable(model, work.ours, target, owned=True)
    return ours and solvable(model, work.theirs, target, owned=False)


def solvable(model: Cluster, claims: tuple[ResourceClaim, ...], target: Node, *, owned: bool) -> bool:
    def included(pool: PoolId) -> bool:
        return (model.owned(pool) is not None) is owned

    view = model.slices.view(included)
    inputs = Inputs(DEFAULT_1_37, model.classes, view, model.allocated_state(), ToyCompiler())
    try:
        Allocator(inputs, Options(ignored_taints=frozenset({OWNED_TAINT}))).allocate(target, claims)
    except (NoSolution, NodeFailure):
        return False
    return True


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_plan_uses_free_devices_of_the_right_pools_on_a_node_that_takes_the_pod(
    data: st.DataObject,
) -> None:
    model = data.draw(clusters())
    subject = data.draw(pods(model))
    taken = set(model.allocated_state().devices)
    plan = placer(model).decide(subject)
    if not isinstance(plan, Plan):
        return
    used = devices_of(plan)

    assert len(used) == len(set(used))
    assert not taken & set(used)
    for decisions, owned in ((plan.ours, True), (plan.theirs, False)):
        for decision in decisions:
            for item in decision.allocation.devices.results:
                assert (model.owned(item.device_id.pool_id) is not None) is owned
                assert item.pool in {plan.node, "fabric"}
    target = model.nodes[plan.node]
    assert node_reason(subject, demand_of(subject), target, model.node_usage(plan.node), ()) is None


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_the_first_node_by_name_that_works_is_chosen_and_none_is_lost_by_counting(
    data: st.DataObject,
) -> None:
    model = data.draw(clusters())
    subject = data.draw(pods(model))
    chooser = placer(model)
    work = chooser.classify(subject)
    if not isinstance(work, Allocate):
        return
    found = chooser.plan(subject, work)
    good = [name for name in sorted(model.nodes) if works(model, subject, work, model.nodes[name])]

    assert isinstance(found, Plan | Unplaced)
    assert (found.node if isinstance(found, Plan) else None) == next(iter(good), None)
    if isinstance(found, Unplaced):
        assert sum(finding.count for finding in found.findings) == len(model.nodes)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_placer_that_followed_the_changes_answers_like_a_new_one(data: st.DataObject) -> None:
    model = data.draw(clusters())
    subject = data.draw(pods(model))
    veteran = Placer(model, ToyCompiler())
    changes = [
        ("ADDED", policy("late", {"driver": NIC})),
        ("DELETED", policy("all")),
        ("ADDED", slice_("late", ["gpu-0:a", "gpu-1:b"], on="n1", pool="late")),
        ("DELETED", slice_("gpus-n1", [], on="n1")),
        ("ADDED", node("n0")),
        ("DELETED", node("n1")),
        ("DELETED", gpu_class()),
        ("ADDED", allocated("late", "n2/gpu-0", on="n2")),
    ]
    for event, item in data.draw(st.lists(st.sampled_from(changes), max_size=6)):
        veteran.decide(subject)
        model.apply(event, item)

    assert veteran.decide(subject) == Placer(model, ToyCompiler()).decide(subject)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_what_is_in_use_makes_no_pod_look_more_hopeful(data: st.DataObject) -> None:
    """A pod that nobody serves is told to wait exactly if it would not be told otherwise in the same cluster with nothing in use."""
    model = data.draw(clusters())
    subject = data.draw(pods(model))
    found = placer(model).decide(subject)
    for kind in (model.claims, model.pods):
        for key, item in list(kind.items()):
            if key.startswith(("ns/held-", "ns/load-")):
                model.apply("DELETED", item)
    clean = placer(model).decide(subject)

    if isinstance(found, Unplaced):
        assert found.verdict is (clean.verdict if isinstance(clean, Unplaced) else Verdict.NOT_NOW)
    else:
        assert type(found) is type(clean)
