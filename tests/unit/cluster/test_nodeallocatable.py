"""What the devices of a pod's claims take of its node (KEP 5517, alloc J-3). The amounts are those that kube-scheduler 1.37 gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.cluster import Cluster, pod_requests, with_statuses
from dra_operator.errors import InvalidCapacity
from dra_operator.model import ResourceSlice, from_object, to_object
from dra_operator.quantity import Quantity

from .build import DRIVER, claim, meta, pod, result, slice_

if TYPE_CHECKING:
    from dra_operator.model import Pod

MULTIPLES = {"cpu": {"mapping": {"deviceMultiplier": "8"}}}
BY_CAPACITY = {"memory": {"mapping": {"capacityKey": "mem", "capacityMultiplier": "2"}}}
OVERHEAD = {"memory": {"overhead": {"perPod": "1Gi", "perContainer": "100Mi"}}}


def publish(version: int = 1, generation: int = 1, **devices: dict[str, Any]) -> ResourceSlice:
    """A slice of the pool `n1`; keywords are devices and their `nodeAllocatableResources`."""
    listed = [{"name": name, "nodeAllocatableResources": taken} for name, taken in devices.items()]
    spec = {
        "driver": DRIVER,
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": generation, "resourceSliceCount": 1},
        "devices": listed,
    }
    return from_object(ResourceSlice, {"metadata": meta("n1", version), "spec": spec})


def using(
    *containers: tuple[str, ...],
    claims: dict[str, str] | None = None,
    init: tuple[tuple[str, ...], ...] = (),
    cpu: str = "1",
    **spec: Any,
) -> dict[str, Any]:
    """The spec of a pod: a container for each tuple of the entries that it refers to; `claims` are entries and their claims."""
    entries = claims or {"c": "c"}
    return {
        "resourceClaims": [{"name": name, "resourceClaimName": of} for name, of in entries.items()],
        "containers": [_container(f"c{n}", refers, cpu) for n, refers in enumerate(containers)],
        "initContainers": [_container(f"i{n}", refers, cpu) for n, refers in enumerate(init)],
        **spec,
    }


def _container(name: str, refers: tuple[str, ...], cpu: str) -> dict[str, Any]:
    claims = [dict(zip(("name", "request"), entry.split("/"), strict=False)) for entry in refers]
    return {"name": name, "resources": {"requests": {"cpu": cpu}, "claims": claims}}


def told(cluster: Cluster, subject: Pod) -> list[dict[str, Any]]:
    return [to_object(status) for status in cluster.taken_by_devices(subject)]


def amounts(texts: dict[str, str]) -> dict[str, Quantity]:
    return {name: Quantity.parse(text) for name, text in texts.items()}


def requests(cluster: Cluster, subject: Pod) -> dict[str, Quantity]:
    counted = with_statuses(subject, cluster.taken_by_devices(subject))
    return pod_requests(counted)


@pytest.mark.parametrize(
    ("devices", "held", "spec", "expected"),
    [
        ({"a": MULTIPLES}, ["n1/a"], using(("c",)), {"cpu": "9"}),
        ({"a": MULTIPLES, "b": MULTIPLES}, ["n1/a", "n1/b"], using(("c",)), {"cpu": "17"}),
        ({"a": MULTIPLES}, ["n1/a"], using(()), {"cpu": "9"}),
        ({"a": MULTIPLES}, ["n1/a"], using(("c",), ("c",)), {"cpu": "10"}),
        ({"a": MULTIPLES}, ["n1/a"], using(("c/one", "c/two")), {"cpu": "9"}),
        ({"a": MULTIPLES}, ["n1/a"], using(("c", "d"), claims={"c": "c", "d": "c"}), {"cpu": "9"}),
        ({"a": OVERHEAD}, ["n1/a"], using(("c",)), {"cpu": "1", "memory": "1124Mi"}),
        ({"a": OVERHEAD}, ["n1/a"], using(()), {"cpu": "1", "memory": "1Gi"}),
        ({"a": OVERHEAD}, ["n1/a"], using(("c",), ("c",), ()), {"cpu": "3", "memory": "1224Mi"}),
        ({"a": OVERHEAD}, ["n1/a"], using(("c",), init=(("c",),)), {"cpu": "1", "memory": "1224Mi"}),
        ({"a": OVERHEAD}, ["n1/a"], using(("c/one", "c/two")), {"cpu": "1", "memory": "1124Mi"}),
        ({"a": OVERHEAD, "b": OVERHEAD}, ["n1/a", "n1/b"], using(("c",)), {"cpu": "1", "memory": "2248Mi"}),
        ({"a": MULTIPLES | OVERHEAD}, ["n1/a"], using(("c",)), {"cpu": "9", "memory": "1124Mi"}),
        (
            {"a": {"cpu": {"mapping": {"deviceMultiplier": "2"}, "overhead": {"perPod": "500m"}}}},
            ["n1/a"],
            using(("c",)),
            {"cpu": "3500m"},
        ),
        ({"a": MULTIPLES}, ["n1/a"], using(("c",), resources={"requests": {"cpu": "12"}}), {"cpu": "12"}),
        ({"a": MULTIPLES}, ["n1/a"], using(("c",), overhead={"cpu": "250m"}), {"cpu": "9250m"}),
        (
            {"a": BY_CAPACITY},
            [result("n1/a", consumedCapacity={"mem": "3Gi"})],
            using(("c",)),
            {"cpu": "1", "memory": "6Gi"},
        ),
        (
            {"a": BY_CAPACITY},
            [
                result("n1/a", consumedCapacity={"mem": "3Gi"}),
                result("n1/a", consumedCapacity={"mem": "1Gi"}),
            ],
            using(("c",)),
            {"cpu": "1", "memory": "8Gi"},
        ),
        ({"a": BY_CAPACITY}, [result("n1/a", consumedCapacity={"x": "3"})], using(("c",)), {"cpu": "1"}),
        ({"a": {"memory": {"overhead": {}}}}, ["n1/a"], using(("c",)), {"cpu": "1"}),
        ({"a": {}}, ["n1/a"], using(("c",)), {"cpu": "1"}),
        ({"a": MULTIPLES}, ["n1/gone"], using(("c",)), {"cpu": "1"}),
        ({"a": MULTIPLES}, None, using(("c",)), {"cpu": "1"}),
    ],
    ids=[
        "a-device",
        "two-devices",
        "nobody-refers",
        "two-containers",
        "two-requests-of-it",
        "two-entries-for-it",
        "overhead",
        "overhead-nobody-refers",
        "overhead-twice",
        "overhead-init-container",
        "overhead-two-requests-of-it",
        "overhead-two-devices",
        "two-resources",
        "both-kinds-for-one-resource",
        "the-pod-states-it",
        "overhead-of-the-pod",
        "capacity",
        "shares-of-one-device",
        "another-capacity",
        "nothing-stated",
        "nothing-taken",
        "not-published",
        "not-allocated",
    ],
)
def test_devices_add_to_what_the_containers_ask_for(
    devices: dict[str, Any], held: list[Any] | None, spec: dict[str, Any], expected: dict[str, str]
) -> None:
    cluster = Cluster()
    cluster.apply("ADDED", publish(**devices))
    cluster.apply("ADDED", claim("c", devices=held))

    assert requests(cluster, pod("p", spec=spec)) == amounts(expected)


def test_the_kubelet_is_told_by_claim_with_the_containers_that_refer_to_it() -> None:
    cluster = Cluster()
    cluster.apply("ADDED", publish(a=MULTIPLES | OVERHEAD, b=MULTIPLES))
    cluster.apply("ADDED", claim("late", devices=["n1/b"]))
    cluster.apply("ADDED", claim("early", devices=["n1/a"]))
    entries = {"x": "late", "y": "early"}

    spec = using(("y",), ("x", "y/one"), init=(("y",),), claims=entries)

    assert told(cluster, pod("p", spec=spec)) == [
        {
            "resourceClaimName": "early",
            "containers": ["i0", "c0", "c1"],
            "mapping": [{"name": "cpu", "quantity": "8"}],
            "overhead": [{"name": "memory", "perPod": "1Gi", "perContainer": "100Mi"}],
        },
        {
            "resourceClaimName": "late",
            "containers": ["c1"],
            "mapping": [{"name": "cpu", "quantity": "8"}],
        },
    ]


def test_an_amount_between_two_nano_units_is_rounded_up() -> None:
    cluster = Cluster()
    mapping = {"capacityKey": "cores", "capacityMultiplier": "1n"}
    cluster.apply("ADDED", publish(a={"cpu": {"mapping": mapping}}))
    cluster.apply("ADDED", claim("c", devices=[result("n1/a", consumedCapacity={"cores": "1500m"})]))

    assert requests(cluster, pod("p", spec=using(("c",), cpu="0"))) == amounts({"cpu": "2n"})


def test_a_device_that_is_had_whole_cannot_count_by_what_is_consumed_of_it() -> None:
    """kube-scheduler ends in an error, too."""
    cluster = Cluster()
    cluster.apply("ADDED", publish(a=BY_CAPACITY))
    cluster.apply("ADDED", claim("c", devices=["n1/a"]))

    with pytest.raises(InvalidCapacity, match=r"gpu\.example\.com/n1/a"):
        cluster.taken_by_devices(pod("p", spec=using(("c",))))


def test_the_newest_generation_tells() -> None:
    cluster = Cluster()
    cluster.apply("ADDED", publish(1, 1, a=MULTIPLES))
    cluster.apply("MODIFIED", publish(2, 2, a={}))
    cluster.apply("ADDED", claim("c", devices=["n1/a"]))

    assert requests(cluster, pod("p", spec=using(("c",)))) == amounts({"cpu": "1"})


def test_what_is_planned_counts_before_what_is_held() -> None:
    cluster = Cluster()
    cluster.apply("ADDED", publish(a=MULTIPLES, b=OVERHEAD))
    held = claim("c", devices=["n1/a"])
    cluster.apply("ADDED", claim("c"))
    assert held.status.allocation is not None

    taken = cluster.taken_by_devices(pod("p", spec=using(("c",))), {"uid-c": held.status.allocation})

    assert [to_object(status)["mapping"] for status in taken] == [[{"name": "cpu", "quantity": "8"}]]


class TestOfPodsOnNodes:
    """Usage by node, in whatever order the kinds come."""

    def used(self, cluster: Cluster) -> str:
        return str(cluster.node_usage("n1").requested.get("cpu", Quantity(0)))

    @pytest.mark.parametrize(
        "order", ["slice claim pod", "pod claim slice", "claim pod slice", "pod slice claim"]
    )
    def test_who_bound_them_by_hand_told_nobody_but_devices_are_taken(self, order: str) -> None:
        objects: dict[str, Any] = {
            "slice": publish(a=MULTIPLES),
            "claim": claim("c", devices=["n1/a"], pods=["uid-p"]),
            "pod": pod("p", spec=using(("c",), nodeName="n1")),
        }
        cluster = Cluster()
        for kind in order.split():
            cluster.apply("ADDED", objects[kind])

        assert self.used(cluster) == "9"

    def test_the_word_of_who_bound_them_counts_whatever_became_of_the_device(self) -> None:
        cluster = Cluster()
        cluster.apply("ADDED", publish(a=MULTIPLES))
        cluster.apply("ADDED", claim("c", devices=["n1/a"], pods=["uid-p"]))
        status = {
            "nodeAllocatableResourceClaimStatuses": [
                {"resourceClaimName": "c", "mapping": [{"name": "cpu", "quantity": "4"}]}
            ]
        }
        cluster.apply("ADDED", pod("p", 1, using(("c",), nodeName="n1"), status))
        assert self.used(cluster) == "5"

        cluster.apply("DELETED", publish(2, a=MULTIPLES))
        assert self.used(cluster) == "5"

        cluster.apply("MODIFIED", pod("p", 2, using(("c",), nodeName="n1"), {}))
        assert self.used(cluster) == "1"

    def test_who_is_on_the_way_counts_with_the_decision_in_flight(self) -> None:
        cluster = Cluster()
        cluster.apply("ADDED", publish(a=MULTIPLES))
        cluster.apply("ADDED", claim("c"))
        cluster.apply("ADDED", pod("p", spec=using(("c",))))
        allocation = claim("c", devices=["n1/a"]).status.allocation
        assert allocation is not None

        cluster.reserve("uid-c", allocation)
        cluster.place("uid-p", "n1")
        assert self.used(cluster) == "9"

        cluster.apply("MODIFIED", claim("c", 2, devices=["n1/a"], pods=["uid-p"]))
        cluster.unreserve("uid-c")
        assert self.used(cluster) == "9"

    def test_what_an_attempt_that_failed_has_left_in_the_status_does_not_count(self) -> None:
        cluster = Cluster()
        status = {
            "nodeAllocatableResourceClaimStatuses": [
                {"resourceClaimName": "c", "mapping": [{"name": "cpu", "quantity": "4"}]}
            ]
        }
        cluster.apply("ADDED", pod("p", 1, using(("c",)), status))
        cluster.place("uid-p", "n1")

        assert self.used(cluster) == "1"

    @pytest.mark.parametrize("how", [{}, {"adminAccess": True}], ids=["used", "looked-at"])
    def test_a_device_that_is_published_anew_counts_anew(self, how: dict[str, Any]) -> None:
        """Admin access counts as any other: kube-scheduler makes no difference."""
        cluster = Cluster()
        cluster.apply("ADDED", publish(1, a=MULTIPLES))
        cluster.apply("ADDED", claim("c", devices=[result("n1/a", **how)], pods=["uid-p"]))
        cluster.apply("ADDED", pod("p", spec=using(("c",), nodeName="n1")))

        cluster.apply("MODIFIED", publish(2, a={"cpu": {"mapping": {"deviceMultiplier": "2"}}}))
        assert self.used(cluster) == "3"

        cluster.apply("DELETED", publish(3))
        assert self.used(cluster) == "1"

    def test_a_device_that_cannot_be_counted_takes_nothing(self) -> None:
        cluster = Cluster()
        cluster.apply("ADDED", publish(a=BY_CAPACITY))
        cluster.apply("ADDED", claim("c", devices=["n1/a"], pods=["uid-p"]))
        cluster.apply("ADDED", pod("p", spec=using(("c",), nodeName="n1")))

        assert self.used(cluster) == "1"

    def test_another_decision_in_flight_counts_at_once(self) -> None:
        cluster = Cluster()
        cluster.apply("ADDED", publish(a=MULTIPLES, b={}))
        cluster.apply("ADDED", claim("c"))
        cluster.apply("ADDED", pod("p", spec=using(("c",), nodeName="n1")))

        seen = []
        for name in ("a", "b", "a"):
            allocation = claim("c", devices=[f"n1/{name}"]).status.allocation
            assert allocation is not None
            cluster.reserve("uid-c", allocation)
            seen.append(self.used(cluster))
        cluster.unreserve("uid-c")

        assert (*seen, self.used(cluster)) == ("9", "1", "9", "1")

    def test_a_newer_generation_that_takes_nothing_stands_before_an_older_one(self) -> None:
        cluster = Cluster()
        cluster.apply("ADDED", publish(a=MULTIPLES))
        cluster.apply("ADDED", claim("c", devices=["n1/a"], pods=["uid-p"]))
        cluster.apply("ADDED", pod("p", spec=using(("c",), nodeName="n1")))

        cluster.apply("ADDED", slice_("newer", ["a"], pool="n1", node="n1", generation=2))
        assert self.used(cluster) == "1"
        cluster.apply("DELETED", slice_("newer", ["a"], pool="n1", node="n1", generation=2, version=2))
        assert self.used(cluster) == "9"

    def test_other_devices_of_an_allocated_claim_count_in_place_of_the_first(self) -> None:
        cluster = Cluster()
        cluster.apply("ADDED", publish(a=MULTIPLES, b={}))
        cluster.apply("ADDED", claim("c", 1, devices=["n1/a"], pods=["uid-p"]))
        cluster.apply("ADDED", pod("p", spec=using(("c",), nodeName="n1")))

        cluster.apply("MODIFIED", claim("c", 2, devices=["n1/b"], pods=["uid-p"]))

        assert self.used(cluster) == "1"
