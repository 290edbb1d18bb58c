"""What pods ask for, and how much of a node is spoken for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from dra_operator.cluster import Cluster, HostPort, NodeUsage, pinned_node, pod_ports, pod_requests
from dra_operator.cluster.usage import ANY_ADDRESS
from dra_operator.model import GATE
from dra_operator.quantity import Quantity

from .build import claim, pod

if TYPE_CHECKING:
    from dra_operator.model import Pod


def amounts(**texts: str) -> dict[str, Quantity]:
    return {name: Quantity.parse(text) for name, text in texts.items()}


def container(restart_policy: str | None = None, **requests: str) -> dict[str, Any]:
    found: dict[str, Any] = {"resources": {"requests": requests}}
    return found | ({"restartPolicy": restart_policy} if restart_policy else {})


def pinned(*nodes: str, **spec: Any) -> dict[str, Any]:
    """A spec with claims and one affinity term a node; no node gives an empty term."""
    terms = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]} if node else {}
        for node in nodes
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    claims = [{"name": "gpu", "resourceClaimName": "c"}]
    return {"affinity": {"nodeAffinity": required}, "resourceClaims": claims, **spec}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"containers": [container(cpu="1"), container(cpu="500m", memory="1Gi")]},
            {"cpu": "1500m", "memory": "1Gi"},
        ),
        ({"containers": [container(cpu="1")], "initContainers": [container(cpu="3")]}, {"cpu": "3"}),
        ({"containers": [container(cpu="4")], "initContainers": [container(cpu="3")]}, {"cpu": "4"}),
        (
            {
                "containers": [container(cpu="1")],
                "initContainers": [
                    container("Always", cpu="1"),
                    container(cpu="3"),
                    container("Always", cpu="2"),
                ],
            },
            {"cpu": "4"},
        ),
        (
            {
                "containers": [container(cpu="1", memory="1Gi")],
                "resources": {"requests": {"cpu": "5", "x.com/y": "1"}},
            },
            {"cpu": "5", "memory": "1Gi"},
        ),
        (
            {"containers": [container(cpu="1")], "overhead": {"cpu": "250m", "memory": "1Mi"}},
            {"cpu": "1250m", "memory": "1Mi"},
        ),
        ({"containers": [container()]}, {}),
    ],
    ids=["sum", "init-peak", "init-below", "sidecars", "pod-level", "overhead", "nothing"],
)
def test_a_pod_asks_for_what_it_needs_at_its_hungriest_moment(
    spec: dict[str, Any], expected: dict[str, str]
) -> None:
    assert pod_requests(pod("p", spec=spec)) == amounts(**expected)


def told(name: str, granted: str = "", running: str = "") -> dict[str, Any]:
    """What the kubelet tells of a container's cpu."""
    found: dict[str, Any] = {"name": name}
    if granted:
        found["allocatedResources"] = {"cpu": granted}
    if running:
        found["resources"] = {"requests": {"cpu": running}}
    return found


REFUSED = {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]}
DEFERRED = {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]}


@pytest.mark.parametrize(
    ("asked", "status", "expected"),
    [
        ("1", {"containerStatuses": [told("a", "2", "2")]}, "2"),
        ("3", {"containerStatuses": [told("a", "2", "1")]}, "3"),
        ("1", {"containerStatuses": [told("a", "", "4")]}, "4"),
        ("9", {"containerStatuses": [told("a", "2", "1")], **REFUSED}, "2"),
        ("9", {"containerStatuses": [told("a", "2", "1")], **DEFERRED}, "9"),
        ("1", {"containerStatuses": [told("b", "2", "2")]}, "1"),
        ("1", {"containerStatuses": [told("a")]}, "1"),
    ],
    ids=["shrinking", "growing", "not-granted-yet", "refused", "deferred", "another", "older-kubelet"],
)
def test_a_resize_in_place_counts_with_the_most_that_is_asked_granted_or_given(
    asked: str, status: dict[str, Any], expected: str
) -> None:
    """As kube-scheduler counts since Kubernetes 1.33."""
    spec = {"containers": [container(cpu=asked) | {"name": "a"}], "nodeName": "n1"}

    assert pod_requests(pod("p", spec=spec, status=status)) == amounts(cpu=expected)


@pytest.mark.parametrize(
    ("asked", "status", "expected"),
    [
        ("1", {"resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "3"}}, "3"),
        ("5", {"resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "3"}}, "5"),
        ("5", {"resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "3"}, **REFUSED}, "3"),
        ("5", {}, "5"),
    ],
    ids=["shrinking", "growing", "refused", "no-word"],
)
def test_a_resize_of_a_pod_as_a_whole_counts_in_the_same_way(
    asked: str, status: dict[str, Any], expected: str
) -> None:
    spec = {"containers": [container(cpu="500m") | {"name": "a"}], "resources": {"requests": {"cpu": asked}}}

    assert pod_requests(pod("p", spec=spec, status=status)) == amounts(cpu=expected)


def test_the_hungriest_moment_is_found_for_what_was_granted_as_for_what_is_asked() -> None:
    """The init container that still has more than the spec says decides."""
    spec = {
        "containers": [container(cpu="2") | {"name": "a"}],
        "initContainers": [container(cpu="1") | {"name": "init"}],
    }
    status = {"initContainerStatuses": [told("init", "4", "4")]}

    assert pod_requests(pod("p", spec=spec, status=status)) == amounts(cpu="4")


def test_sidecars_that_start_later_do_not_add_to_an_init_container() -> None:
    """The init container runs beside the first sidecar only; afterwards both sidecars run beside the container."""
    init = [container("Always", cpu="1"), container(cpu="2"), container("Always", cpu="1")]

    assert pod_requests(
        pod("p", spec={"containers": [container(cpu="2")], "initContainers": init})
    ) == amounts(cpu="4")


def test_host_ports_are_those_of_containers_and_sidecars() -> None:
    def with_port(number: int, **more: Any) -> dict[str, Any]:
        return {"ports": [{"hostPort": number, "containerPort": 1, **more}, {"containerPort": 99}]}

    spec = {
        "containers": [with_port(80), with_port(53, protocol="UDP", hostIP="10.0.0.1")],
        "initContainers": [with_port(81), with_port(82) | {"restartPolicy": "Always"}],
    }

    expected = (
        HostPort(ANY_ADDRESS, "TCP", 80),
        HostPort("10.0.0.1", "UDP", 53),
        HostPort(ANY_ADDRESS, "TCP", 82),
    )
    assert pod_ports(pod("p", spec=spec)) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (pinned("n1"), "n1"),
        (pinned("n1", "n1"), "n1"),
        (pinned("n1", ""), "n1"),
        (pinned("n1", "n2"), ""),
        (pinned(""), ""),
        (pinned("n1", schedulingGates=[{"name": GATE}]), ""),
        (pinned("n1", resourceClaims=[]), ""),
        ({}, ""),
    ],
    ids=["one", "every-term", "empty-term", "two-nodes", "no-term", "gated", "daemon", "none"],
)
def test_a_released_pod_is_pinned_where_every_term_says_so(spec: dict[str, Any], expected: str) -> None:
    """By cp I-24: terms are ORed, an empty term matches nothing."""
    assert pinned_node(pod("p", spec=spec)) == expected


def test_a_term_that_also_takes_other_nodes_out_is_still_a_pin() -> None:
    spec = pinned("n1")
    (term,) = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    term["matchExpressions"] = [{"key": "zone", "operator": "In", "values": ["a"]}]

    assert pinned_node(pod("p", spec=spec)) == "n1"


class TestNodeUsage:
    """Sums by node, kept as pods come, move and go."""

    @pytest.fixture
    def cluster(self) -> Cluster:
        return Cluster()

    SPEC: ClassVar[dict[str, Any]] = {
        "containers": [container(cpu="1") | {"ports": [{"hostPort": 80}]}],
        "schedulingGates": [{"name": GATE}],
    }
    ONE = NodeUsage(amounts(cpu="1"), 1, (HostPort(ANY_ADDRESS, "TCP", 80),))

    def bound(self, version: int = 1, name: str = "p", phase: str = "Running") -> Any:
        return pod(name, version, {**self.SPEC, "schedulingGates": [], "nodeName": "n1"}, {"phase": phase})

    def test_bound_pods_add_up(self, cluster: Cluster) -> None:
        cluster.apply("ADDED", self.bound(name="p"))
        cluster.apply("ADDED", self.bound(name="q"))

        port = HostPort(ANY_ADDRESS, "TCP", 80)
        assert cluster.node_usage("n1") == NodeUsage(amounts(cpu="2"), 2, (port, port))
        assert cluster.node_usage("n2") == NodeUsage()

    @pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
    def test_done_pods_need_nothing(self, cluster: Cluster, phase: str) -> None:
        cluster.apply("ADDED", self.bound(1))
        cluster.apply("MODIFIED", self.bound(2, phase=phase))

        assert cluster.node_usage("n1") == NodeUsage()

    def test_a_bound_pod_that_is_being_deleted_still_counts(self, cluster: Cluster) -> None:
        cluster.apply("ADDED", pod("p", spec={"nodeName": "n1"}, deletionTimestamp="2026-01-01T00:00:00Z"))

        assert cluster.node_usage("n1").pods == 1

    def test_a_pod_that_is_gone_needs_nothing(self, cluster: Cluster) -> None:
        cluster.apply("ADDED", self.bound(1))
        cluster.apply("DELETED", self.bound(2))

        assert cluster.node_usage("n1") == NodeUsage()

    def test_what_the_kubelet_grants_later_counts(self, cluster: Cluster) -> None:
        spec = {"containers": [container(cpu="1") | {"name": "a"}], "nodeName": "n1"}
        cluster.apply("ADDED", pod("p", 1, spec))
        cluster.apply("MODIFIED", pod("p", 2, spec, {"containerStatuses": [told("a", "3", "3")]}))
        assert cluster.node_usage("n1") == NodeUsage(amounts(cpu="3"), 1)

        cluster.apply("MODIFIED", pod("p", 3, spec, {"containerStatuses": [told("a", "1", "1")]}))
        assert cluster.node_usage("n1") == NodeUsage(amounts(cpu="1"), 1)

    def test_a_placed_pod_counts_before_it_is_bound_and_once_afterwards(self, cluster: Cluster) -> None:
        cluster.apply("ADDED", pod("p", 1, self.SPEC))
        assert cluster.node_usage("n1") == NodeUsage()

        cluster.place("uid-p", "n1")
        assert cluster.node_usage("n1") == self.ONE
        cluster.apply("MODIFIED", self.bound(2))
        assert cluster.node_usage("n1") == self.ONE
        cluster.unplace("uid-p")
        assert cluster.node_usage("n1") == self.ONE

    def test_a_placement_can_be_moved_and_taken_back(self, cluster: Cluster) -> None:
        cluster.apply("ADDED", pod("p", 1, self.SPEC))
        cluster.place("uid-p", "n1")
        cluster.place("uid-p", "n2")
        assert (cluster.node_usage("n1"), cluster.node_usage("n2")) == (NodeUsage(), self.ONE)

        cluster.unplace("uid-p")
        assert cluster.node_usage("n2") == NodeUsage()

    def test_a_placement_ends_when_the_pod_is_bound_elsewhere(self, cluster: Cluster) -> None:
        cluster.apply("ADDED", pod("p", 1, self.SPEC))
        cluster.place("uid-p", "n2")

        cluster.apply("MODIFIED", self.bound(2))

        assert (cluster.node_usage("n1"), cluster.node_usage("n2")) == (self.ONE, NodeUsage())

    def test_a_placement_ends_with_the_pod(self, cluster: Cluster) -> None:
        cluster.apply("ADDED", pod("p", 1, self.SPEC))
        cluster.place("uid-p", "n1")
        cluster.apply("DELETED", pod("p", 2, self.SPEC))
        assert cluster.node_usage("n1") == NodeUsage()

        cluster.place("uid-p", "n1")
        assert cluster.node_usage("n1") == NodeUsage()

    def test_a_released_pod_counts_where_it_is_pinned_also_after_a_restart(self, cluster: Cluster) -> None:
        """Nobody told this model of a placement: the pod's own affinity does, and its claim."""
        cluster.apply("ADDED", pod("p", 1, pinned("n1", containers=[container(cpu="1")])))
        cluster.apply("ADDED", claim("c", devices=["n1/a"], pods=["uid-p"]))

        assert cluster.node_usage("n1") == NodeUsage(amounts(cpu="1"), 1)

    @pytest.mark.parametrize(
        ("devices", "pods"),
        [(None, []), (["n1/a"], []), (["n1/a"], ["uid-other"])],
        ids=["free", "unused", "another's"],
    )
    def test_a_pin_alone_takes_no_room_as_anybody_may_write_it(
        self, cluster: Cluster, devices: list[str] | None, pods: list[str]
    ) -> None:
        cluster.apply("ADDED", claim("c", 1, devices=["n1/a"], pods=["uid-p"]))
        cluster.apply("ADDED", pod("p", 1, pinned("n1", containers=[container(cpu="1")])))
        cluster.apply("MODIFIED", claim("c", 2, devices=devices, pods=pods))

        assert cluster.node_usage("n1") == NodeUsage()

        cluster.apply("MODIFIED", claim("c", 3, devices=["n1/a"], pods=["uid-p"]))
        assert cluster.node_usage("n1").pods == 1
        cluster.apply("DELETED", claim("c", 4, devices=["n1/a"], pods=["uid-p"]))
        assert cluster.node_usage("n1") == NodeUsage()

    def test_a_pod_counts_once_the_name_of_its_claim_is_recorded(self, cluster: Cluster) -> None:
        spec = pinned("n1", containers=[container(cpu="1")])
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
        recorded = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "c"}]}
        cluster.apply("ADDED", claim("c", devices=["n1/a"], pods=["uid-p"]))
        cluster.apply("ADDED", pod("p", 1, spec))
        assert cluster.node_usage("n1") == NodeUsage()

        cluster.apply("MODIFIED", pod("p", 2, spec, recorded))
        assert cluster.node_usage("n1").pods == 1


# --- pods that somebody has nominated to a node


def nominated(name: str, node: str, priority: int = 0, version: int = 1, **status: Any) -> Pod:
    spec = {"containers": [container(cpu="2")], "priority": priority}
    return pod(name, version, spec, {"nominatedNodeName": node, **status}, uid=name)


@pytest.mark.parametrize(("priority", "counts"), [(0, False), (5, True), (9, True)])
def test_a_nominated_pod_counts_for_pods_that_come_after_it(priority: int, *, counts: bool) -> None:
    """kube-scheduler does so for those of the same or a higher priority."""
    cluster = Cluster()
    cluster.apply("ADDED", nominated("big", "n1", priority))
    mine = pod("mine", 1, {"priority": 5}, uid="mine")

    assert cluster.node_usage("n1") == NodeUsage()
    assert cluster.usage_ahead("n1", mine) == (NodeUsage(amounts(cpu="2"), 1) if counts else NodeUsage())


def test_a_nomination_does_not_count_for_the_pod_itself_nor_twice_once_it_is_there() -> None:
    cluster = Cluster()
    big = nominated("big", "n1")
    cluster.apply("ADDED", big)
    other = pod("other", uid="other")

    assert cluster.usage_ahead("n1", big) == NodeUsage()
    cluster.place("big", "n1")
    assert cluster.usage_ahead("n1", other) == NodeUsage(amounts(cpu="2"), 1)
    cluster.unplace("big")
    assert cluster.usage_ahead("n1", other) == NodeUsage(amounts(cpu="2"), 1)


@pytest.mark.parametrize("end", ["moved", "done", "gone"])
def test_a_nomination_ends_with_the_pod_or_its_word(end: str) -> None:
    cluster = Cluster()
    big = nominated("big", "n1")
    cluster.apply("ADDED", big)
    if end == "gone":
        cluster.apply("DELETED", big)
    elif end == "done":
        cluster.apply("MODIFIED", nominated("big", "n1", version=2, phase="Failed"))
    else:
        cluster.apply("MODIFIED", nominated("big", "n2", version=2))

    assert cluster.usage_ahead("n1", pod("other", uid="other")) == NodeUsage()
