"""What a decision costs where pods keep each other off, counted in calls of Python: the same on every machine, and no time.

Anti-affinity is the costly one of kube-scheduler's filters: each existing pod may keep ours off anywhere. Here equal terms of many pods
are one, and counts are kept.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from dra_operator.cluster import Cluster
from dra_operator.model import Node, Pod, from_object
from dra_operator.placement.checks import NodeChecks
from tests.counting import calls

NODES = 500
ZONES = 10
APPS = 50


def filled(pods: int, *, with_terms: bool) -> Cluster:
    """Pods of 50 apps on 500 nodes in 10 zones; of each app, pods shun their like on a node or (every tenth app) in a zone."""
    cluster = Cluster()
    for number in range(NODES):
        labels = {"zone": f"z{number % ZONES}", "host": f"n{number}"}
        raw: dict[str, Any] = {"metadata": {"name": f"n{number}", "uid": f"n{number}", "labels": labels}}
        raw["status"] = {
            "allocatable": {"cpu": "64", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        }
        cluster.apply("ADDED", from_object(Node, raw))
    for number in range(pods):
        app = number % APPS
        spec = {"nodeName": f"n{number % NODES}", "containers": [], **(apart(app) if with_terms else {})}
        cluster.apply("ADDED", made(f"p{number}", f"app{app}", spec))
    return cluster


def apart(app: int) -> dict[str, Any]:
    key = "zone" if app % 10 == 0 else "host"
    term = {"labelSelector": {"matchLabels": {"app": f"app{app}"}}, "topologyKey": key}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def made(name: str, app: str, spec: dict[str, Any]) -> Pod:
    meta = {"name": name, "namespace": "ns", "uid": name, "labels": {"app": app}}
    return from_object(Pod, {"metadata": meta, "spec": spec})


def cost(cluster: Cluster, subject: Pod) -> int:
    """Of asking every node, once what is kept is there."""

    def ask() -> None:
        checks = NodeChecks(subject, cluster)
        for node in cluster.nodes.values():
            checks.reason(node)

    ask()
    return calls(ask)


def test_many_pods_cost_no_more_than_few(capsys: pytest.CaptureFixture[str]) -> None:
    subject = made("new", "app7", apart(7) | {"containers": []})
    few, many = (cost(filled(pods, with_terms=True), subject) for pods in (500, 5000))

    with capsys.disabled():
        print(f"\n  anti-affinity on {NODES} nodes: {few:,} calls among 500 pods, {many:,} among 5,000")
    assert many < 1.2 * few


def test_a_plain_pod_pays_for_the_terms_of_others_by_the_term() -> None:
    """Nothing where nobody has terms; else a look at each distinct term, not at each pod."""
    plain = made("new", "none", {"containers": []})
    without, among = (cost(filled(5000, with_terms=has), plain) for has in (False, True))

    assert among - without < 5 * APPS


@pytest.mark.parametrize("asked", [False, True], ids=["nobody asks", "somebody asks"])
def test_a_pod_that_comes_costs_the_same_in_a_full_cluster(*, asked: bool) -> None:
    costs = []
    for pods in (500, 5000):
        cluster = filled(pods, with_terms=True)
        if asked:
            cost(cluster, made("new", "app7", apart(7) | {"containers": []}))
        newcomer = made("newcomer", "app7", {"nodeName": "n1", "containers": [], **apart(7)})
        costs.append(calls(partial(cluster.apply, "ADDED", newcomer)))

    assert costs[0] == costs[1]
