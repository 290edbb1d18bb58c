"""Which of several nodes that can take a pod gets it: kube-scheduler's scores, as far as users notice them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.placement import Allocate, NodeScore, PlacementOptions, Placer, Plan, Unplaced
from dra_operator.placement.preferences import compared

from .build import (
    GPU,
    ToyCompiler,
    allocated,
    claim,
    cluster_of,
    cpu,
    form,
    gpu_class,
    node,
    pod,
    policy,
    running,
    slice_,
)

if TYPE_CHECKING:
    from dra_operator.cluster import Cluster
    from dra_operator.model import Node

Obj = dict[str, Any]

WEB = {"labels": {"app": "web"}}
LIKE_WEB = {"matchLabels": {"app": "web"}}


def gpu_nodes(*nodes: Node, gpus: int = 9) -> Cluster:
    """Nodes with GPUs, and a claim for one."""
    devices = [f"gpu-{number}" for number in range(gpus)]
    slices = (slice_(f"s-{item.name}", devices, on=item.name) for item in nodes)
    return cluster_of(*nodes, gpu_class(), policy(), claim("c"), *slices)


def choosing(cluster: Cluster, score: NodeScore = NodeScore.NAME) -> Placer:
    return Placer(cluster, ToyCompiler(), options=PlacementOptions(node_score=score))


def chosen(placer: Placer, **spec: Any) -> str:
    """The node that a pod of that spec goes to."""
    wanted = pod("p", "c", **{"metadata": WEB, **spec})
    work = placer.classify(wanted)
    assert isinstance(work, Allocate)
    found = placer.plan(wanted, work)
    assert isinstance(found, Plan), found
    return found.node


def busy(cluster: Cluster, name: str, on: str, amount: str = "1", **more: Any) -> None:
    cluster.apply("ADDED", running(name, on, containers=cpu(amount), **more))


# --- cpu and memory


@pytest.mark.parametrize(
    ("score", "expected"),
    [(NodeScore.SPREAD, "n3"), (NodeScore.PACK, "n2"), (NodeScore.NAME, "n1")],
)
def test_the_emptiest_the_fullest_or_the_first_by_name_gets_the_pod(score: NodeScore, expected: str) -> None:
    cluster = gpu_nodes(node("n1"), node("n2"), node("n3"))
    busy(cluster, "a", "n1", "2")
    busy(cluster, "b", "n2", "3")
    busy(cluster, "c", "n3", "1")

    assert chosen(choosing(cluster, score)) == expected


@pytest.mark.parametrize("score", NodeScore)
def test_equally_full_nodes_go_by_name(score: NodeScore) -> None:
    assert chosen(choosing(gpu_nodes(node("n2"), node("n1"), node("n3")), score)) == "n1"


def test_shares_of_a_node_count_not_amounts() -> None:
    """One of sixteen cpus is less than one of four."""
    cluster = gpu_nodes(node("n1"), node("n2", allocatable={"cpu": "16"}))
    busy(cluster, "a", "n1", "1")
    busy(cluster, "b", "n2", "2")

    assert chosen(choosing(cluster, NodeScore.SPREAD)) == "n2"
    assert chosen(choosing(cluster, NodeScore.PACK)) == "n1"


def test_memory_counts_as_much_as_cpu() -> None:
    cluster = gpu_nodes(node("n1"), node("n2"))
    busy(cluster, "a", "n2", "1")
    hungry = [{"name": "c", "resources": {"requests": {"cpu": "100m", "memory": "7Gi"}}}]
    cluster.apply("ADDED", running("b", "n1", containers=hungry))

    assert chosen(choosing(cluster, NodeScore.SPREAD)) == "n2"


def test_pods_that_ask_for_nothing_are_spread_as_well() -> None:
    """kube-scheduler takes such a container for 100m and 200Mi; several of them are more than one that asks for half a cpu."""
    cluster = gpu_nodes(node("n1"), node("n2"))
    for number in range(9):
        cluster.apply("ADDED", running(f"quiet-{number}", "n1", containers=[{"name": "c"}]))
    busy(cluster, "loud", "n2", "500m")

    assert chosen(choosing(cluster, NodeScore.SPREAD)) == "n2"


def test_the_order_follows_pods_that_are_placed_come_and_go_and_nodes_that_grow() -> None:
    cluster = gpu_nodes(node("n1"), node("n2"))
    placer = choosing(cluster, NodeScore.SPREAD)
    assert chosen(placer) == "n1"

    waiting = pod("waiting", gates=(), containers=cpu("1"))
    cluster.apply("ADDED", waiting)
    cluster.place("uid-waiting", "n1")
    assert chosen(placer) == "n2"
    busy(cluster, "b", "n2", "2")
    assert chosen(placer) == "n1"
    cluster.unplace("uid-waiting")
    cluster.apply("DELETED", running("b", "n2"))
    assert chosen(placer) == "n1"
    busy(cluster, "a", "n1", "1")
    busy(cluster, "c", "n2", "2")
    assert chosen(placer) == "n1"
    cluster.apply("MODIFIED", node("n2", allocatable={"cpu": "64", "memory": "64Gi"}))
    assert chosen(placer) == "n2"


def test_of_several_pods_on_a_node_the_one_that_ends_counts_no_longer() -> None:
    cluster = gpu_nodes(node("n1"), node("n2"))
    busy(cluster, "a", "n1", "1")
    busy(cluster, "b", "n1", "2")
    busy(cluster, "c", "n2", "2")
    placer = choosing(cluster, NodeScore.SPREAD)
    assert chosen(placer) == "n2"

    cluster.apply("DELETED", running("b", "n1"))
    assert chosen(placer) == "n1"


def test_what_was_there_before_the_placer_counts() -> None:
    """An operator that becomes the leader has known its cluster for long."""
    cluster = gpu_nodes(node("n1"), node("n2"))
    busy(cluster, "a", "n1")

    assert chosen(choosing(cluster, NodeScore.SPREAD)) == "n2"


def test_the_next_best_node_is_taken_when_the_best_has_no_devices() -> None:
    cluster = gpu_nodes(node("n1"), node("n2"))
    cluster.apply("ADDED", node("n0"))
    busy(cluster, "a", "n1")

    assert chosen(choosing(cluster, NodeScore.SPREAD)) == "n2"


# --- preferences


def test_preferred_node_affinity_goes_by_its_weights_and_beats_an_empty_node() -> None:
    cluster = gpu_nodes(node("n1"), node("n2", {"disk": "ssd"}), node("n3", {"disk": "ssd", "zone": "b"}))
    busy(cluster, "a", "n3", "1")

    def term(weight: int, key: str) -> Obj:
        return {"weight": weight, "preference": {"matchExpressions": [{"key": key, "operator": "Exists"}]}}

    def preferred(*terms: Obj) -> Obj:
        return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": list(terms)}}

    placer = choosing(cluster, NodeScore.SPREAD)
    assert chosen(placer, affinity=preferred(term(10, "disk"))) == "n2"
    assert chosen(placer, affinity=preferred(term(10, "disk"), term(10, "zone"))) == "n3"
    assert chosen(placer, affinity=preferred(term(10, "not-there"))) == "n1"


def test_soft_taints_are_avoided_unless_tolerated_or_everywhere() -> None:
    soft = {"key": "t", "value": "v", "effect": "PreferNoSchedule"}
    cluster = gpu_nodes(node("n1", taints=[soft]), node("n2"))
    placer = choosing(cluster)
    assert chosen(placer) == "n2"
    assert chosen(placer, tolerations=[{"key": "t", "operator": "Exists"}]) == "n1"

    cluster.apply("MODIFIED", node("n2", taints=[soft]))
    assert chosen(placer) == "n1"
    cluster.apply("MODIFIED", node("n1"))
    assert chosen(placer) == "n1"


def soft(kind: str, weight: int = 100, key: str = "zone") -> Obj:
    """Preferred affinity to, or anti-affinity against, the pods of app web."""
    term = {"labelSelector": LIKE_WEB, "topologyKey": key}
    return {
        kind: {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "podAffinityTerm": term}]
        }
    }


def zoned() -> Cluster:
    """Two nodes in zone a, one in zone b; a pod of app web in each, two in a."""
    cluster = gpu_nodes(node("n1", {"zone": "a"}), node("n2", {"zone": "a"}), node("n3", {"zone": "b"}))
    for name, on in (("one", "n1"), ("two", "n2"), ("three", "n3")):
        busy(cluster, name, on, metadata=WEB)
    return cluster


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        (soft("podAffinity"), "n1"),
        (soft("podAntiAffinity"), "n3"),
        (soft("podAntiAffinity", key="row"), "n1"),
    ],
)
def test_pods_are_drawn_to_or_kept_off_domains_by_how_many_pods_there_match(
    affinity: Obj, expected: str
) -> None:
    assert chosen(choosing(zoned()), affinity=affinity) == expected


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        (soft("podAffinity"), "n3"),
        (soft("podAntiAffinity"), "n1"),
        (
            {
                "podAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"labelSelector": LIKE_WEB, "topologyKey": "zone"}
                    ]
                }
            },
            "n3",
        ),
    ],
    ids=["preferred", "preferred-anti", "required"],
)
def test_pods_there_draw_ours_or_keep_it_off(affinity: Obj, expected: str) -> None:
    """Preferences work both ways, and who requires neighbours draws them (kube-scheduler's hardPodAffinityWeight)."""
    cluster = gpu_nodes(node("n1", {"zone": "a"}), node("n3", {"zone": "b"}))
    cluster.apply("ADDED", running("lonely", "n3", affinity=affinity))
    placer = choosing(cluster)
    assert chosen(placer) == expected

    cluster.apply("DELETED", running("lonely", "n3"))
    assert chosen(placer) == "n1"


@pytest.mark.parametrize("key", ["zone", "host"])
def test_soft_spread_goes_to_the_emptiest_domain_and_nodes_in_none_come_last(key: str) -> None:
    cluster = gpu_nodes(
        node("n0"), *(node(name, {"zone": zone, "host": name}) for name, zone in (("n1", "a"), ("n2", "b")))
    )
    busy(cluster, "one", "n1", metadata=WEB)
    constraint = {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": LIKE_WEB,
    }

    assert chosen(choosing(cluster), topologySpreadConstraints=[constraint]) == "n2"


def test_a_preference_for_a_node_without_devices_gives_way() -> None:
    cluster = gpu_nodes(node("n1"), node("n2", {"disk": "ssd"}), gpus=1)
    wish = {"weight": 1, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}
    placer = choosing(cluster)
    assert chosen(placer, affinity=affinity) == "n2"

    cluster.apply("DELETED", slice_("s-n2", ["gpu-0"], on="n2"))
    assert chosen(placer, affinity=affinity) == "n1"


def test_who_is_nominated_to_a_node_goes_there_whatever_it_prefers() -> None:
    cluster = zoned()

    nominated = {"nominatedNodeName": "n3"}
    assert chosen(choosing(cluster), affinity=soft("podAffinity"), status=nominated) == "n3"
    assert chosen(choosing(cluster), affinity=soft("podAffinity"), status={"nominatedNodeName": "n9"}) == "n1"


@pytest.mark.parametrize("written", [True, False], ids=["written", "in flight"])
@pytest.mark.parametrize("affinity", [{}, soft("podAntiAffinity")], ids=["plain", "choosy"])
def test_claims_that_a_pod_uses_together_meet_on_one_node(affinity: Obj, *, written: bool) -> None:
    """Pod `both` could run nowhere if its second claim were allocated on the emptiest node, or the one that its first user prefers."""
    cluster = gpu_nodes(node("n1", {"zone": "a"}), node("n2", {"zone": "b"}))
    busy(cluster, "a", "n2", "3", metadata=WEB)
    held = allocated("there", "n2/gpu-0", on="n2")
    cluster.apply("ADDED", pod("both", "c", "there"))
    assert chosen(choosing(cluster, NodeScore.SPREAD), affinity=affinity) == "n1"

    if written:
        cluster.apply("ADDED", held)
    else:
        cluster.apply("ADDED", claim("there"))
        assert held.status.allocation is not None
        cluster.reserve("uid-there", held.status.allocation)
    placer = choosing(cluster, NodeScore.SPREAD)
    assert chosen(placer, affinity=affinity) == "n2"

    cluster.apply("DELETED", pod("both", "c", "there"))
    assert chosen(placer, affinity=affinity) == "n1"


@pytest.mark.parametrize(
    ("total", "expected"), [(1, 1), (99, 99), (100, 100), (500, 230), (1000, 420), (5000, 500), (10_000, 500)]
)
def test_in_a_large_cluster_a_part_of_the_nodes_is_compared(total: int, expected: int) -> None:
    """As kube-scheduler's percentageOfNodesToScore does when it is not set."""
    assert compared(total) == expected


def test_nodes_beyond_those_that_are_compared_are_still_tried() -> None:
    """All have two free GPUs; only the last one's are alike, which only the search for devices finds out."""
    names = [f"n{number:03}" for number in range(150)]
    cluster = cluster_of(*(node(name, {"disk": "ssd"}) for name in names), gpu_class(), policy())
    for name in names:
        models = ("a", "a") if name == names[-1] else ("a", "b")
        cluster.apply(
            "ADDED",
            slice_(f"s-{name}", [f"gpu-{model}{at}:{model}" for at, model in enumerate(models)], on=name),
        )
    alike = [{"matchAttribute": f"{GPU}/model"}]
    cluster.apply("ADDED", claim("c", {"name": "gpus", "exactly": form(count=2)}, constraints=alike))
    wish = {"weight": 1, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}

    assert chosen(choosing(cluster), affinity=affinity) == names[-1]


def test_reasons_come_by_node_whatever_the_order_was() -> None:
    cluster = gpu_nodes(node("n1"), node("n2"), node("n3"))
    busy(cluster, "a", "n1", "4")
    wanted = pod("p", "c", containers=cpu("5"))
    placer = choosing(cluster, NodeScore.SPREAD)
    work = placer.classify(wanted)
    assert isinstance(work, Allocate)

    found = placer.plan(wanted, work)

    assert isinstance(found, Unplaced)
    assert [finding.node for finding in found.findings] == ["n1", "n2", "n3"]
