"""What a decision costs grows with the nodes, and not with the nodes times whatever there is one of a node: domains, volumes, figures of drivers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from dra_operator.placement.spread import topology_spread
from dra_operator.placement.volumes import volume_filters
from tests.counting import calls

from .build import cluster_of, node, pod
from .test_volumes import of, storage_class, volume, volume_claim

if TYPE_CHECKING:
    from dra_operator.cluster import Cluster
    from dra_operator.model import Pod, Value

HOST = "kubernetes.io/hostname"


def hosts(number: int, *others: Value) -> Cluster:
    return cluster_of(*(node(f"n{index}", {HOST: f"n{index}"}) for index in range(number)), *others)


def cost_of_volumes(cluster: Cluster, asking: Pod) -> int:
    def work() -> None:
        filters = volume_filters(asking, cluster)
        for found in cluster.nodes.values():
            assert any(item.reason(found) for item in filters)

    return calls(work, of_c=True)


def with_claim() -> Pod:
    return pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])


def local_volumes(number: int) -> list[Value]:
    def at(name: str) -> dict[str, Any]:
        need = {"key": HOST, "operator": "In", "values": [name]}
        return {"required": {"nodeSelectorTerms": [{"matchExpressions": [need]}]}}

    return [volume(f"v{index}", nodeAffinity=at(f"n{index}")) for index in range(number)]


def test_volumes_of_one_node_cost_other_nodes_nothing() -> None:
    def cost(number: int) -> int:
        large = volume_claim(class_="local", size="9Gi")
        no_provisioner = storage_class("local", by="kubernetes.io/no-provisioner")
        return cost_of_volumes(hosts(number, *local_volumes(number), large, no_provisioner), with_claim())

    assert cost(200) < 3 * cost(100)


def test_volumes_that_others_will_have_cost_other_nodes_nothing() -> None:
    """None is free on any node: those that would do are kept for claims of other pods."""

    def cost(number: int) -> int:
        others = [
            volume(f"v{index}", claimRef={"namespace": "ns", "name": f"other-{index}"})
            for index in range(number)
        ]
        no_provisioner = storage_class("local", by="kubernetes.io/no-provisioner")
        small = volume_claim(class_="local", size="1Gi")
        return cost_of_volumes(hosts(number, *others, small, no_provisioner), with_claim())

    assert cost(200) < 3 * cost(100)


def test_room_of_one_node_costs_other_nodes_nothing() -> None:
    def cost(number: int) -> int:
        figures = [
            of(
                "CSIStorageCapacity",
                f"c{index}",
                "kube-system",
                storageClassName="disks",
                capacity="1Gi",
                nodeTopology={"matchLabels": {HOST: f"n{index}"}},
            )
            for index in range(number)
        ]
        driver = of("CSIDriver", "csi.test", spec={"storageCapacity": True})
        claim = volume_claim(size="2Gi")
        return cost_of_volumes(hosts(number, *figures, driver, storage_class(), claim), with_claim())

    assert cost(200) < 3 * cost(100)


def test_domains_are_compared_once_and_not_for_each_node() -> None:
    """By time, as the comparison is C's; against the counting, which is done once a node: it was a hundred times as long."""
    cluster = hosts(3000)
    constraint = {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule"}
    spread = {**constraint, "labelSelector": {"matchLabels": {"app": "x"}}}
    began = time.process_time()
    found = topology_spread(pod("p", topologySpreadConstraints=[spread]), cluster)
    counted = time.process_time()
    assert found is not None
    assert not any(map(found.reason, cluster.nodes.values()))
    assert time.process_time() - counted < 10 * (counted - began)
