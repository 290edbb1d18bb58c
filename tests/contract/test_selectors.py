"""Field and label selectors: every operator, the fields that the operator asks by, and what is no selector."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contract.client import CLAIM, CONFIG, DRA, POD
from tests.contract.objects import claim, config, pod

if TYPE_CHECKING:
    from tests.contract.client import Client, Obj

SLICES = f"{DRA}/resourceslices"
NO_KEY = (
    'unable to parse requirement: <nil>: Invalid value: "a/b/c": a valid label key must consist of alphanumeric'
    " characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or"
    " 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an"
    " optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)
EVENTS = "/api/v1/namespaces/{ns}/events"


async def _names(api: Client, path: str, **query: str) -> list[str]:
    body = (await api.get(path, **query)).ok().body
    return [
        item["metadata"]["name"] for item in body["items"] if item["metadata"]["name"] != "kube-root-ca.crt"
    ]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("tier=front", ["a"]),
        ("tier==front", ["a"]),
        ("tier!=front", ["b", "c"]),
        ("tier in (front,back)", ["a", "b"]),
        ("tier in (front, back)", ["a", "b"]),
        ("tier notin (front)", ["b", "c"]),
        ("tier", ["a", "b"]),
        ("!tier", ["c"]),
        ("tier,rank>1", ["b"]),
        ("rank<2", ["a"]),
        ("example.com/owner=me", ["c"]),
        ("tier in (front),rank in (1)", ["a"]),
        ("tier=", []),
        ("", ["a", "b", "c"]),
    ],
)
async def test_label_operator(api: Client, selector: str, expected: list[str]) -> None:
    (await api.create(CONFIG, config("a", labels={"tier": "front", "rank": "1"}))).ok()
    (await api.create(CONFIG, config("b", labels={"tier": "back", "rank": "2"}))).ok()
    (await api.create(CONFIG, config("c", labels={"example.com/owner": "me"}))).ok()
    assert await _names(api, CONFIG, labelSelector=selector) == expected


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("=b", "found '=', expected: !, identifier, or 'end of string'"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a=b,", "found '', expected: identifier after ','"),
        (
            "a>x",
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer",
        ),
        (
            "a/b/c=d",
            NO_KEY,
        ),
    ],
)
async def test_text_that_is_no_label_selector(api: Client, selector: str, said: str) -> None:
    refused = await api.get(CONFIG, labelSelector=selector)
    assert (refused.code, refused.reason, refused.body["message"]) == (400, "BadRequest", said)


@pytest.mark.parametrize(
    ("path", "selector", "said"),
    [
        (POD, "spec.priority=1", "field label not supported: spec.priority"),
        (
            CONFIG,
            "data.a=1",
            '"data.a" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
        (
            CLAIM,
            "status.allocation=x",
            '"status.allocation" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
        (
            SLICES,
            "spec.pool.generation=1",
            "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: spec.pool.generation",
        ),
        ("/api/v1/nodes", "spec.podCIDR=x", "field label not supported: spec.podCIDR"),
    ],
)
async def test_field_that_is_not_selectable(api: Client, path: str, selector: str, said: str) -> None:
    for query in ({}, {"watch": "1"}):
        refused = await api.get(path, fieldSelector=selector, **query)
        assert (refused.code, refused.reason) == (400, "BadRequest")
        assert refused.body["message"] == said


async def test_text_that_is_no_field_selector(api: Client) -> None:
    refused = await api.get(POD, fieldSelector="metadata.name")
    assert (refused.code, refused.reason) == (400, "BadRequest")
    assert "invalid selector: 'metadata.name'; can't understand 'metadata.name'" in refused.body["message"]


async def test_claim_by_name_and_namespace(api: Client) -> None:
    for name in ("a", "b"):
        (await api.create(CLAIM, claim(name))).ok()
    assert await _names(api, CLAIM, fieldSelector="metadata.name=a") == ["a"]
    assert await _names(api, CLAIM, fieldSelector=f"metadata.namespace={api.ns},metadata.name!=a") == ["b"]
    everywhere = f"{DRA}/resourceclaims"
    assert await _names(api, everywhere, fieldSelector=f"metadata.namespace={api.ns}") == ["a", "b"]


async def test_pods_of_a_node_everywhere(api: Client, unique: str) -> None:
    """How usage of one node would be asked for."""
    (await api.create(POD, pod("bound", nodeName=unique))).ok()
    (await api.create(POD, pod("free"))).ok()
    assert await _names(api, "/api/v1/pods", fieldSelector=f"spec.nodeName={unique}") == ["bound"]


async def test_pods_by_phase(api: Client) -> None:
    (await api.create(POD, pod("a"))).ok()
    (await api.create(POD, pod("b"))).ok()
    (await api.merge(f"{POD}/b/status", {"status": {"phase": "Succeeded"}})).ok()
    assert await _names(api, POD, fieldSelector="status.phase=Pending") == ["a"]
    assert await _names(api, POD, fieldSelector="status.phase!=Pending") == ["b"]
    assert await _names(api, POD, fieldSelector="status.phase!=Succeeded,status.phase!=Failed") == ["a"]


async def test_pods_by_scheduler(api: Client) -> None:
    (await api.create(POD, pod("a", schedulerName="mine"))).ok()
    (await api.create(POD, pod("b"))).ok()
    assert await _names(api, POD, fieldSelector="spec.schedulerName=default-scheduler") == ["b"]


async def test_events_about_one_object(api: Client) -> None:
    """What `kubectl describe` asks for."""
    body: Obj = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "namespace": api.ns, "name": "p", "uid": "u1"},
        "reason": "R",
        "message": "m",
        "type": "Warning",
    }
    (await api.create(EVENTS, body)).ok()
    asked = f"involvedObject.name=p,involvedObject.namespace={api.ns},involvedObject.kind=Pod,involvedObject.uid=u1"
    assert await _names(api, EVENTS, fieldSelector=asked) == ["e"]
    assert await _names(api, EVENTS, fieldSelector=asked.replace("u1", "u2")) == []
    assert await _names(api, EVENTS, fieldSelector="reason=R,type!=Normal") == ["e"]


async def test_delete_collection_by_field_and_label(api: Client) -> None:
    for name in ("a", "b", "c"):
        (await api.create(CLAIM, claim(name, labels={"x": "y"}))).ok()
    (await api.delete(CLAIM, labelSelector="x=y", fieldSelector="metadata.name!=b")).ok()
    assert await _names(api, CLAIM) == ["b"]


async def test_label_selector_of_a_watch_that_does_not_parse(api: Client) -> None:
    refused = await api.get(CONFIG, labelSelector="a in b", watch="1")
    assert (refused.code, refused.reason) == (400, "BadRequest")
