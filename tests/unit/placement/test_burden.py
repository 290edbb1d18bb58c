"""Pods with thousands of tolerations and terms: a decision about them is bounded, and says that it gave up; usual pods notice nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.placement import Cause, Plan, Unplaced, Verdict, burden

from .build import claim, cluster_of, gpu_class, node, placer, pod, policy, running, slice_

if TYPE_CHECKING:
    from dra_operator.cluster import Cluster

TERMS = [
    {"matchExpressions": [{"key": "zone", "operator": "In", "values": [f"z{number}"]}]}
    for number in range(5000)
]
NEIGHBOURS = [
    {"labelSelector": {"matchLabels": {"app": f"a{number}"}}, "topologyKey": "zone"} for number in range(5000)
]


def cluster(nodes: int = 200, pods: int = 60) -> Cluster:
    names = [f"n{number:03}" for number in range(nodes)]
    return cluster_of(
        gpu_class(),
        policy(),
        claim("c"),
        *(node(name, {"zone": "here"}, taints=[{"key": "t", "effect": "NoSchedule"}]) for name in names),
        *(slice_(f"s-{name}", ["d"], on=name) for name in names),
        *(running(f"r{number}", names[number]) for number in range(pods)),
    )


def tolerant(number: int) -> list[dict[str, Any]]:
    return [{"key": f"k{at}", "operator": "Exists"} for at in range(number)]


def required(terms: list[dict[str, Any]]) -> dict[str, Any]:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


@pytest.mark.parametrize(
    "spec",
    [{"tolerations": tolerant(5000)}, {"affinity": required(TERMS), "tolerations": [{"operator": "Exists"}]}],
    ids=["tolerations", "terms"],
)
def test_a_pod_with_thousands_of_items_is_compared_with_some_nodes_only(spec: dict[str, Any]) -> None:
    found = placer(cluster()).decide(pod("p", "c", **spec))

    assert isinstance(found, Unplaced)

    assert found.verdict is Verdict.GAVE_UP
    left = [finding for finding in found.findings if finding.cause is Cause.LIMIT]
    items = burden.by_node(pod("p", "c", **spec))
    assert (len(found.findings) - len(left) - 1) * items <= burden.NODES
    assert len(left) > 100


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
def test_terms_about_other_pods_are_too_many_by_the_number_of_pods(kind: str) -> None:
    terms = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": NEIGHBOURS}}

    found = placer(cluster()).decide(pod("p", "c", affinity=terms))

    assert isinstance(found, Unplaced)

    assert found.verdict is Verdict.GAVE_UP
    assert [(finding.cause, finding.count) for finding in found.findings] == [(Cause.LIMIT, 200)]
    assert "about the other pods" in found.findings[0].text


def test_thousands_of_preferences_are_none() -> None:
    preferred = [{"weight": 1, "preference": term} for term in TERMS]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    subject = pod("p", "c", affinity=affinity, tolerations=[{"operator": "Exists"}])

    assert burden.by_preference(subject) > burden.PREFERENCES
    assert isinstance(placer(cluster()).decide(subject), Plan)


def test_what_people_write_is_far_below_the_limits() -> None:
    """On 5,000 nodes with 50,000 pods."""
    usual = pod(
        "p",
        "c",
        tolerations=tolerant(20),
        affinity={
            **required(TERMS[:20]),
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": NEIGHBOURS[:2]},
        },
    )
    assert 5_000 * burden.by_node(usual) < burden.NODES
    assert 50_000 * burden.by_pod(usual) < burden.PAIRS
