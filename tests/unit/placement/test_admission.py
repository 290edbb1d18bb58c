"""What a new pod gets on its way in, case by case; the same table goes through the policies and through real API servers."""

from __future__ import annotations

import json

import pytest

from dra_operator.model import NewPod, Pod, from_json, from_object, to_object
from dra_operator.placement import Way, admit
from dra_operator.placement.volumeclaims import entries
from tests.admission import CASES, GATE, NAME, Case, pod

BY_CASE = pytest.mark.parametrize("case", CASES, ids=lambda case: case.about)


@pytest.mark.parametrize("way", Way)
@BY_CASE
def test_a_pod_gets_what_the_policy_gives_it(way: Way, case: Case) -> None:
    assert admit(from_object(NewPod, pod(case)), way) == case.expected(way)


@pytest.mark.parametrize("way", Way)
@BY_CASE
def test_asked_again_it_gives_nothing_more(way: Way, case: Case) -> None:
    """Another webhook may have changed the pod since, and then the API server asks anew."""
    asked = pod(case)
    if case.expected(way) == "gated":
        asked["spec"]["schedulingGates"] = [*(asked["spec"].get("schedulingGates") or []), {"name": GATE}]
    elif case.expected(way) == "named":
        asked["spec"]["schedulerName"] = NAME

    assert admit(from_object(NewPod, asked), way) == "untouched"


@BY_CASE
def test_pods_with_volumes_by_claim_are_those_of_placement(case: Case) -> None:
    """Who is not named on their account is who placement would refuse to bind."""
    whole = from_object(Pod, pod(case))

    if case.name == "named":
        assert list(entries(whole)) == []


def test_of_a_large_pod_only_what_counts_is_kept() -> None:
    (large,) = (case for case in CASES if case.about == "much of everything")
    text = json.dumps(pod(large))

    assert len(text) > 200_000
    assert to_object(from_json(NewPod, text)) == {"spec": {"resourceClaims": large.spec["resourceClaims"]}}
