"""Inter-pod affinity and topology spread, rule by rule (cp I-27); all of them together: tests/properties/test_neighbours.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.explain import explain
from dra_operator.model import Namespace, from_object
from dra_operator.placement import Allocate, Cause, NodeFinding, Plan, Unplaced, Verdict
from dra_operator.placement.affinity import AFFINITY, ANTI_AFFINITY, UNWANTED
from dra_operator.placement.checks import NodeChecks
from dra_operator.placement.spread import NO_DOMAIN, SPREAD

from .build import (
    claim,
    cluster_of,
    cpu,
    gpu_class,
    meta,
    node,
    placer,
    pod,
    policy,
    running,
    slice_,
)

if TYPE_CHECKING:
    from dra_operator.cluster import Cluster
    from dra_operator.model import Pod

Obj = dict[str, Any]

WEB = {"labels": {"app": "web"}}
GONE = "2026-01-01T00:00:00Z"


def zones(*texts: str) -> Cluster:
    """Nodes `name:zone`; without a zone the node has no such label."""
    found = [text.partition(":") for text in texts]
    return cluster_of(*(node(name, {"zone": zone} if zone else {}) for name, _, zone in found))


def like(app: str = "web") -> Obj:
    return {"matchLabels": {"app": app}}


def near(app: str = "web", key: str = "zone", **more: Any) -> Obj:
    """Required affinity to the pods of an app."""
    return {"podAffinity": _required({"labelSelector": like(app), "topologyKey": key, **more})}


def apart(app: str = "web", key: str = "zone", **more: Any) -> Obj:
    """Required anti-affinity to the pods of an app."""
    return {"podAntiAffinity": _required({"labelSelector": like(app), "topologyKey": key, **more})}


def _required(*terms: Obj) -> Obj:
    return {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}


def even(key: str = "zone", **more: Any) -> Obj:
    """A spread constraint over the pods of app web."""
    return {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": like(),
        **more,
    }


def subject(affinity: Obj | None = None, *spread: Obj, **more: Any) -> Pod:
    return pod("subject", affinity=affinity or {}, topologySpreadConstraints=list(spread), **more)


def there(cluster: Cluster, name: str, on: str, labels: Obj | None = None, **more: Any) -> None:
    """A bound pod of app web, unless told otherwise."""
    cluster.apply("ADDED", running(name, on, metadata={"labels": labels or WEB["labels"]}, **more))


def on_its_way(cluster: Cluster, name: str, to: str, **more: Any) -> None:
    """A pod of app web that we have placed and nobody has bound yet."""
    cluster.apply("ADDED", pod(name, metadata=WEB, **more))
    cluster.place(f"uid-{name}", to)


def reasons(cluster: Cluster, wanted: Pod) -> dict[str, str]:
    """Node → why it does not take the pod; those that do are not in it."""
    checks = NodeChecks(wanted, cluster)
    found = {name: checks.reason(value) for name, value in cluster.nodes.items()}
    return {name: reason.text for name, reason in found.items() if reason is not None}


# --- affinity


def test_affinity_wants_a_matching_pod_in_the_domain_of_the_node() -> None:
    cluster = zones("n1:a", "n2:a", "n3:b", "n4:")
    there(cluster, "web", "n1")
    there(cluster, "db", "n3", {"app": "db"})

    assert reasons(cluster, subject(near())) == {"n3": AFFINITY, "n4": AFFINITY}


def test_all_terms_have_to_be_met_by_one_pod() -> None:
    """Two pods that meet one term each are nobody."""
    cluster = zones("n1:a", "n2:b")
    terms = _required(
        {"labelSelector": like(), "topologyKey": "zone"},
        {"labelSelector": {"matchLabels": {"tier": "front"}}, "topologyKey": "zone"},
    )
    there(cluster, "one", "n1")
    there(cluster, "two", "n1", {"tier": "front"})
    assert reasons(cluster, subject({"podAffinity": terms})) == {"n1": AFFINITY, "n2": AFFINITY}

    there(cluster, "both", "n2", {"app": "web", "tier": "front"})
    assert reasons(cluster, subject({"podAffinity": terms})) == {"n1": AFFINITY}


def test_the_first_of_its_kind_may_go_to_any_domain_and_the_next_ones_follow_it() -> None:
    cluster = zones("n1:a", "n2:b", "n3:")
    first = subject(near(), metadata=WEB)
    assert reasons(cluster, first) == {"n3": AFFINITY}

    there(cluster, "other", "n2")
    assert reasons(cluster, first) == {"n1": AFFINITY, "n3": AFFINITY}


def test_who_does_not_match_its_own_affinity_is_never_the_first() -> None:
    assert reasons(zones("n1:a"), subject(near(), metadata={"labels": {"app": "db"}})) == {"n1": AFFINITY}


def test_a_pod_on_its_way_is_followed_only_once_it_is_bound() -> None:
    """It may never arrive, and who was sent after it would be stranded; nor may anybody start a second group elsewhere."""
    cluster = zones("n1:a", "n2:b")
    on_its_way(cluster, "web", "n1")
    stranger = subject(near(), metadata={"labels": {"app": "db"}})
    assert reasons(cluster, stranger) == {"n1": AFFINITY, "n2": AFFINITY}
    assert reasons(cluster, subject(near(), metadata=WEB)) == {"n2": AFFINITY}

    there(cluster, "web", "n1")
    assert reasons(cluster, stranger) == {"n2": AFFINITY}


@pytest.mark.parametrize(
    ("chosen", "found"),
    [
        ({}, False),
        ({"namespaces": ["elsewhere"]}, True),
        ({"namespaceSelector": {}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "a"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "b"}}}, False),
        ({"namespaces": ["ns"], "namespaceSelector": {"matchLabels": {"team": "a"}}}, True),
    ],
    ids=["own", "named", "all", "by-label", "another-label", "named-and-by-label"],
)
def test_pods_of_other_namespaces_count_where_the_term_says_so(chosen: Obj, *, found: bool) -> None:
    cluster = zones("n1:a")
    cluster.apply("ADDED", from_object(Namespace, {"metadata": meta("elsewhere", labels={"team": "a"})}))
    away = running("web", "n1", metadata={"namespace": "elsewhere", **WEB})
    cluster.apply("ADDED", away)

    assert (reasons(cluster, subject(near(**chosen))) == {}) is found


def test_a_namespace_that_gets_another_label_changes_who_counts() -> None:
    cluster = zones("n1:a")
    there(cluster, "web", "n1")
    wanted = subject(near(namespaceSelector={"matchLabels": {"team": "a"}}))
    assert reasons(cluster, wanted) == {"n1": AFFINITY}

    cluster.apply("ADDED", from_object(Namespace, {"metadata": meta("ns", labels={"team": "a"})}))
    assert reasons(cluster, wanted) == {}

    changed = meta("ns", labels={"team": "b"}, resourceVersion="2")
    cluster.apply("MODIFIED", from_object(Namespace, {"metadata": changed}))
    assert reasons(cluster, wanted) == {"n1": AFFINITY}


# --- anti-affinity


def test_anti_affinity_keeps_off_domains_with_a_matching_pod() -> None:
    cluster = zones("n1:a", "n2:a", "n3:b", "n4:")
    there(cluster, "web", "n1")

    assert reasons(cluster, subject(apart())) == {"n1": ANTI_AFFINITY, "n2": ANTI_AFFINITY}


def test_anti_affinity_of_the_pods_there_keeps_ours_off() -> None:
    cluster = zones("n1:a", "n2:a", "n3:b", "n4:")
    there(cluster, "shy", "n1", {"app": "shy"}, affinity=apart())

    assert reasons(cluster, subject(metadata=WEB)) == {"n1": UNWANTED, "n2": UNWANTED}
    assert reasons(cluster, subject(metadata={"labels": {"app": "db"}})) == {}

    cluster.apply("DELETED", running("shy", "n1"))
    assert reasons(cluster, subject(metadata=WEB)) == {}


def test_pods_on_their_way_and_pods_that_are_ending_keep_others_off() -> None:
    """As kube-scheduler counts them: a pod that is being deleted is there until it is gone."""
    cluster = zones("n1:a", "n2:b", "n3:c")
    on_its_way(cluster, "coming", "n1")
    there(cluster, "ending", "n2")
    cluster.apply(
        "MODIFIED",
        running("ending", "n2", metadata={"deletionTimestamp": GONE, "resourceVersion": "2", **WEB}),
    )

    assert reasons(cluster, subject(apart())) == {"n1": ANTI_AFFINITY, "n2": ANTI_AFFINITY}
    cluster.unplace("uid-coming")
    assert reasons(cluster, subject(apart())) == {"n2": ANTI_AFFINITY}


def test_a_pod_that_is_done_keeps_nobody_off() -> None:
    cluster = zones("n1:a")
    there(cluster, "done", "n1", affinity=apart(), status={"phase": "Succeeded"})

    assert reasons(cluster, subject(apart(), metadata=WEB)) == {}


@pytest.mark.parametrize(("priority", "yields"), [(0, True), (5, True), (6, False)])
def test_a_pod_yields_to_nominated_ones_of_its_priority_or_higher(priority: int, *, yields: bool) -> None:
    """They have been promised room: kube-scheduler counts them in for those that come after them."""
    cluster = zones("n1:a", "n2:b")
    promised = {"status": {"nominatedNodeName": "n1"}, "priority": 5, "metadata": WEB}
    cluster.apply("ADDED", pod("promised", gates=(), affinity=apart("db"), containers=cpu("4"), **promised))

    assert (reasons(cluster, subject(apart(), priority=priority)) == {"n1": ANTI_AFFINITY}) is yields
    unwanted = subject(metadata={"labels": {"app": "db"}}, priority=priority)
    assert (reasons(cluster, unwanted) == {"n1": UNWANTED}) is yields
    hungry = subject(containers=cpu("1"), priority=priority)
    assert (reasons(cluster, hungry) == {"n1": "Insufficient cpu"}) is yields


# --- spread


def test_no_domain_may_be_fuller_than_the_emptiest_by_more_than_the_skew() -> None:
    cluster = zones("n1:a", "n2:a", "n3:b", "n4:")
    there(cluster, "one", "n1")
    expected = {"n1": SPREAD, "n2": SPREAD, "n4": NO_DOMAIN}

    assert reasons(cluster, subject(None, even(), metadata=WEB)) == expected
    assert reasons(cluster, subject(None, even(maxSkew=2), metadata=WEB)) == {"n4": NO_DOMAIN}


def test_who_does_not_match_its_own_constraint_does_not_make_its_domain_fuller() -> None:
    cluster = zones("n1:a", "n2:b")
    there(cluster, "one", "n1")

    assert reasons(cluster, subject(None, even())) == {}
    there(cluster, "two", "n1")
    assert reasons(cluster, subject(None, even())) == {"n1": SPREAD}


def test_with_too_few_domains_the_emptiest_counts_as_empty() -> None:
    cluster = zones("n1:a", "n2:b")
    there(cluster, "one", "n1")
    there(cluster, "two", "n2")

    assert reasons(cluster, subject(None, even(minDomains=2), metadata=WEB)) == {}
    assert reasons(cluster, subject(None, even(minDomains=3), metadata=WEB)) == {"n1": SPREAD, "n2": SPREAD}


def test_pods_that_are_ending_do_not_count() -> None:
    cluster = zones("n1:a", "n2:b")
    there(cluster, "one", "n1")
    wanted = subject(None, even(), metadata=WEB)
    assert reasons(cluster, wanted) == {"n1": SPREAD}

    ending = {"deletionTimestamp": GONE, "resourceVersion": "2", **WEB}
    cluster.apply("MODIFIED", running("one", "n1", metadata=ending))
    assert reasons(cluster, wanted) == {}


def test_a_pod_that_gets_other_labels_does_not_count_any_longer() -> None:
    cluster = zones("n1:a", "n2:b")
    there(cluster, "one", "n1")
    wanted = subject(None, even(), metadata=WEB)
    assert reasons(cluster, wanted) == {"n1": SPREAD}

    cluster.apply(
        "MODIFIED", running("one", "n1", metadata={"labels": {"app": "db"}, "resourceVersion": "2"})
    )
    assert reasons(cluster, wanted) == {}


@pytest.mark.parametrize(
    ("policy_", "expected"),
    [({}, {"n1": SPREAD}), ({"nodeAffinityPolicy": "Ignore"}, {"n1": SPREAD, "n2": SPREAD})],
)
def test_nodes_that_the_pod_cannot_choose_make_no_domain_unless_told_so(policy_: Obj, expected: Obj) -> None:
    """Zone c is empty; what it does to the skew depends on whether it counts."""
    cluster = zones("n1:a", "n2:b", "n3:c")
    for name, on in (("one", "n1"), ("two", "n1"), ("three", "n2")):
        there(cluster, name, on)
    term = {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["c"]}]}
    chosen = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    }

    found = reasons(cluster, subject(chosen, even(**policy_), metadata=WEB))

    assert {name: text for name, text in found.items() if name != "n3"} == expected


@pytest.mark.parametrize(("policy_", "fits"), [({}, False), ({"nodeTaintsPolicy": "Honor"}, True)])
def test_tainted_nodes_make_a_domain_unless_told_otherwise(policy_: Obj, *, fits: bool) -> None:
    cluster = cluster_of(
        node("n1", {"zone": "a"}), node("n2", {"zone": "b"}, taints=[{"key": "t", "effect": "NoSchedule"}])
    )
    there(cluster, "one", "n1")

    found = reasons(cluster, subject(None, even(**policy_), metadata=WEB))

    assert ("n1" not in found) is fits


def test_only_nodes_with_the_labels_of_all_constraints_count_for_any_of_them() -> None:
    cluster = cluster_of(node("n1", {"zone": "a", "rack": "1"}), node("n2", {"zone": "b"}))
    there(cluster, "one", "n1")
    both = (even(), even("rack", maxSkew=9))

    assert reasons(cluster, subject(None, *both, metadata=WEB)) == {"n2": NO_DOMAIN}
    assert reasons(cluster, subject(None, even(), metadata=WEB)) == {"n1": SPREAD}


def test_match_label_keys_narrow_down_what_counts() -> None:
    cluster = zones("n1:a", "n2:b")
    there(cluster, "old", "n1", {"app": "web", "revision": "1"})
    labels = {"labels": {"app": "web", "revision": "2"}}

    keyed = even(matchLabelKeys=["revision", "not-there"])
    assert reasons(cluster, subject(None, keyed, metadata=labels)) == {}
    assert reasons(cluster, subject(None, even(), metadata=labels)) == {"n1": SPREAD}


@pytest.mark.parametrize("selector", [None, {}], ids=["absent", "empty"])
def test_a_constraint_without_a_selector_counts_nobody(selector: Obj | None) -> None:
    """The empty one matches everybody, and is not counted all the same: as in kube-scheduler."""
    cluster = zones("n1:a", "n2:b")
    there(cluster, "one", "n1")

    assert reasons(cluster, subject(None, even(labelSelector=selector), metadata=WEB)) == {}


def test_a_domain_is_not_counted_on_to_be_filled_by_pods_on_their_way() -> None:
    """Zone a may take another one only when the pod for zone b has arrived: or it would wait there with its devices."""
    cluster = zones("n1:a", "n2:b")
    there(cluster, "one", "n1")
    on_its_way(cluster, "two", "n2")
    wanted = subject(None, even(), metadata=WEB)
    assert reasons(cluster, wanted) == {"n1": SPREAD}

    there(cluster, "two", "n2")
    assert reasons(cluster, wanted) == {}


def test_a_soft_constraint_keeps_nobody_off() -> None:
    cluster = zones("n1:a", "n2:b", "n3:")
    there(cluster, "one", "n1")

    assert reasons(cluster, subject(None, even(whenUnsatisfiable="ScheduleAnyway"), metadata=WEB)) == {}


# --- in a decision


@pytest.fixture
def gpus() -> Cluster:
    """A GPU on each of three nodes in two zones, and a claim for one."""
    cluster = zones("n1:a", "n2:a", "n3:b")
    for item in (
        gpu_class(),
        policy(),
        claim("c"),
        *(slice_(f"s-{name}", ["gpu-0"], on=name) for name in cluster.nodes),
    ):
        cluster.apply("ADDED", item)
    return cluster


def decided(cluster: Cluster, affinity: Obj | None, *spread: Obj) -> Plan | Unplaced:
    wanted = pod("p", "c", affinity=affinity or {}, topologySpreadConstraints=list(spread), metadata=WEB)
    subject_ = placer(cluster)
    work = subject_.classify(wanted)
    assert isinstance(work, Allocate), "not evaluated"
    found = subject_.plan(wanted, work)
    assert isinstance(found, Plan | Unplaced)
    return found


def test_a_plan_holds_to_the_constraints_of_the_pod_and_of_its_neighbours(gpus: Cluster) -> None:
    there(gpus, "one", "n1")

    for affinity, spread, expected in ((apart(), (), "n3"), (None, (even(),), "n3"), (near(), (), "n1")):
        found = decided(gpus, affinity, *spread)
        assert isinstance(found, Plan)
        assert found.node == expected


def test_who_cannot_go_anywhere_is_told_in_kube_schedulers_words_and_what_would_help(gpus: Cluster) -> None:
    there(gpus, "one", "n1")
    there(gpus, "two", "n3")

    found = decided(gpus, apart())

    assert isinstance(found, Unplaced)
    assert found.minds_neighbours
    assert {finding.cause for finding in found.findings} == {Cause.NEIGHBOURS}
    text = explain(found).message
    assert text.startswith(
        f"0/3 nodes can serve this pod: 3 {ANTI_AFFINITY}. Waiting: the pod goes on by itself"
    )
    assert "loosen the affinity or topologySpreadConstraints of the pod" in text


def test_labels_that_no_node_has_are_nothing_to_wait_for(gpus: Cluster) -> None:
    for affinity, spread, words in ((near(key="row"), (), AFFINITY), (None, (even("row"),), NO_DOMAIN)):
        found = decided(gpus, affinity, *spread)

        assert isinstance(found, Unplaced)
        assert (found.verdict, found.minds_neighbours) == (Verdict.NEVER, False)
        assert [(finding.text, finding.lasting) for finding in found.findings] == [(words, True)] * 3
        assert "label the nodes with the topologyKey" in explain(found).message


def test_only_neighbours_that_come_make_a_pod_mind_them() -> None:
    room = NodeFinding("n1", Cause.ROOM, "Insufficient cpu")
    assert not Unplaced(1, (room,)).minds_neighbours
