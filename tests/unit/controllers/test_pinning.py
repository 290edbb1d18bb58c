"""Pinning a gated pod: every rule of the API server about what may change (cp I-22…I-26)."""

from __future__ import annotations

import json
from typing import Any

from dra_operator.controllers.pinning import pinned_terms, placement_spec, release_spec
from dra_operator.model import NodeSelector, Pod, from_object

PIN = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
ZONE = {"key": "zone", "operator": "In", "values": ["a", "b"]}


def pod(*terms: dict[str, Any], affinity: bool = True) -> Pod:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    spec: dict[str, Any] = {"schedulingGates": [{"name": "dra-operator.io/allocate"}]}
    if affinity:
        spec["affinity"] = {"nodeAffinity": required}
    return from_object(Pod, {"metadata": {"name": "p", "namespace": "default"}, "spec": spec})


def terms_of(spec: dict[str, Any]) -> Any:
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return json.loads(json.dumps(required["nodeSelectorTerms"]))  # as it goes over the wire


def test_without_required_terms_one_is_set_i23() -> None:
    assert terms_of(placement_spec(pod(affinity=False), "n1")) == [{"matchFields": [PIN]}]


def test_every_term_gets_the_node_after_what_it_has_i24() -> None:
    before = [{"matchExpressions": [ZONE]}, {"matchFields": [{**PIN, "operator": "NotIn", "values": ["n9"]}]}]
    assert terms_of(placement_spec(pod(*before), "n1")) == [
        {"matchExpressions": [ZONE], "matchFields": [PIN]},
        {"matchFields": [{**PIN, "operator": "NotIn", "values": ["n9"]}, PIN]},
    ]


def test_an_empty_term_stays_empty_i24() -> None:
    assert terms_of(placement_spec(pod({}, {"matchExpressions": [ZONE]}), "n1")) == [
        {},
        {"matchExpressions": [ZONE], "matchFields": [PIN]},
    ]


def test_pinning_twice_is_pinning_once() -> None:
    once = pinned_terms(None, "n1")
    assert pinned_terms(NodeSelector(once), "n1") == once


def test_the_gate_is_removed_by_name_i22() -> None:
    gates = [{"$patch": "delete", "name": "dra-operator.io/allocate"}]
    assert placement_spec(pod(), "n1")["schedulingGates"] == gates
    assert release_spec() == {"schedulingGates": gates}
