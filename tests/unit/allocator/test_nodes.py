"""Node selectors (alloc N-1, N-2)."""

from __future__ import annotations

from typing import Any

import pytest

from dra_operator.allocator import node_matches, selector_matches
from dra_operator.errors import InvalidInput
from dra_operator.model import Device, NodeSelector, from_object

from .worlds import NODE


def selector(*terms: dict[str, Any]) -> NodeSelector:
    return from_object(NodeSelector, {"nodeSelectorTerms": list(terms)})


def label(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def field(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchFields": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (label("zone", "In", "west", "east"), True),
        (label("zone", "In", "west"), False),
        (label("rack", "In", "1"), False),
        (label("zone", "NotIn", "east"), False),
        (label("rack", "NotIn", "1"), True),
        (label("zone", "Exists"), True),
        (label("rack", "Exists"), False),
        (label("rack", "DoesNotExist"), True),
        (label("cores", "Gt", "63"), True),
        (label("cores", "Gt", "64"), False),
        (label("cores", "Lt", "65"), True),
        (label("zone", "Lt", "65"), False),
        (label("rack", "Gt", "1"), False),
        (field("metadata.name", "In", "n1"), True),
        (field("metadata.name", "NotIn", "n1"), False),
        (field("metadata.uid", "In", "n1"), False),
        ({}, False),
        ({**label("zone", "Exists"), **field("metadata.name", "In", "n2")}, False),
    ],
)
def test_a_term(*, term: dict[str, Any], expected: bool) -> None:
    assert selector_matches(selector(term), NODE) is expected


def test_terms_are_ored_and_no_terms_match_nothing() -> None:
    assert selector_matches(selector(label("zone", "In", "west"), label("zone", "In", "east")), NODE)
    assert not selector_matches(selector(), NODE)


@pytest.mark.parametrize(
    "term",
    [
        label("zone", "Like", "e"),
        label("zone", "In"),
        label("zone", "Exists", "east"),
        label("cores", "Gt", "many"),
        label("cores", "Lt", "1", "2"),
        label("not a key", "Exists"),
        label("-/name", "Exists"),
        label("zone", "In", "no spaces, please"),
        field("metadata.name", "Exists"),
        field("metadata.name", "In", "n1", "n2"),
    ],
)
def test_a_selector_that_kubernetes_cannot_parse_is_an_error_even_behind_a_term_that_matches(
    term: dict[str, Any],
) -> None:
    with pytest.raises(InvalidInput, match=r"nodeSelectorTerms\[1\]"):
        selector_matches(selector(label("zone", "Exists"), term), NODE)


@pytest.mark.parametrize(
    ("published", "expected"),
    [
        ({"nodeName": "n1", "nodeSelector": {"nodeSelectorTerms": []}}, True),
        ({"nodeName": "n2", "allNodes": True}, False),
        ({"nodeName": "", "allNodes": True}, True),
        ({"allNodes": False, "nodeSelector": {"nodeSelectorTerms": [label("zone", "Exists")]}}, True),
        ({}, False),
    ],
)
def test_the_first_field_that_is_set_decides(*, published: dict[str, Any], expected: bool) -> None:
    assert node_matches(NODE, from_object(Device, {"name": "d", **published})) is expected
