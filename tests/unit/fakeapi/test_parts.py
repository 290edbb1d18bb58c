"""The pure parts: history, patches, field sets, JSONPath, schemas."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_operator.testing.fakeapi import StatusError
from dra_operator.testing.fakeapi.fieldsets import from_fields_v1, leaves, to_fields_v1
from dra_operator.testing.fakeapi.jsonpath import found
from dra_operator.testing.fakeapi.kinds import Kind, Kinds
from dra_operator.testing.fakeapi.patches import merged, strategic
from dra_operator.testing.fakeapi.requests import Target, target
from dra_operator.testing.fakeapi.schemas import check, fill_defaults
from dra_operator.testing.fakeapi.store import FIRST_VERSION, Store

Obj = dict[str, Any]

POD = Kinds().named("pods")
CLAIM = Kinds().named("resourceclaims", "resource.k8s.io")


def _object(name: str, value: int = 0) -> Obj:
    return {"metadata": {"name": name, "namespace": "ns", "uid": name}, "value": value}


def test_history_is_kept_up_to_its_limit_and_410_before() -> None:
    store = Store(history=3)
    resource = ("", "things")
    for value in range(10):
        store.put(resource, _object("a", value))
    history = store.history(resource)
    assert 3 <= len(history.changes) <= 6
    kept = history.since(history.forgotten)
    assert kept[-1].record.obj["value"] == 9
    assert [change.version for change in kept] == list(range(history.forgotten + 1, store.version + 1))
    with pytest.raises(StatusError, match="too old resource version"):
        history.since(FIRST_VERSION)


def test_deleted_change_has_a_new_version_and_the_old_state() -> None:
    store = Store()
    resource = ("", "things")
    put = store.put(resource, _object("a", 1))
    store.remove(resource, ("ns", "a"))
    change = store.history(resource).since(put.version)[0]
    assert (change.type, change.version, change.record.obj["value"]) == ("DELETED", put.version + 1, 1)
    assert change.record.obj["metadata"]["resourceVersion"] == str(put.version + 1)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(live=st.dictionaries(st.text(max_size=2), _JSON, max_size=3), patch=_JSON)
def test_merge_patch_is_idempotent(live: Obj, patch: Any) -> None:
    """RFC 7386: applying a patch twice is applying it once."""
    once = merged(live, patch)
    assert merged(once, patch) == once


@pytest.mark.parametrize(
    ("live", "patch", "expected"),
    [
        ([], [{"type": "A"}], [{"type": "A"}]),
        ([{"type": "A"}], [{"type": "B"}], [{"type": "B"}, {"type": "A"}]),
        ([{"type": "A", "x": 1}], [{"type": "A", "y": 2}], [{"type": "A", "x": 1, "y": 2}]),
        ([{"type": "A"}, {"type": "B"}], [{"type": "A", "$patch": "delete"}], [{"type": "B"}]),
        ([{"type": "A"}], [{"type": "C"}, {"$patch": "replace"}], [{"type": "C"}]),
    ],
)
def test_strategic_merge_of_keyed_lists(live: list[Obj], patch: list[Obj], expected: list[Obj]) -> None:
    result = strategic(POD, {"status": {"conditions": live}}, {"status": {"conditions": patch}})
    assert result["status"]["conditions"] == expected


def test_strategic_merge_keeps_the_order_that_the_patch_names() -> None:
    live = {"spec": {"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}}
    patch = {
        "spec": {
            "$setElementOrder/containers": [{"name": "c"}, {"name": "a"}],
            "containers": [{"name": "c", "image": "x"}],
        }
    }
    names = [item["name"] for item in strategic(POD, live, patch)["spec"]["containers"]]
    assert names.index("c") < names.index("a")
    assert sorted(names) == ["a", "b", "c"]


def test_strategic_merge_retains_named_keys_only() -> None:
    live = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
    volume = {"name": "v", "hostPath": {"path": "/x"}, "$retainKeys": ["name", "hostPath"]}
    result = strategic(POD, live, {"spec": {"volumes": [volume]}})
    assert result["spec"]["volumes"] == [{"name": "v", "hostPath": {"path": "/x"}}]


def test_strategic_merge_needs_the_merge_key() -> None:
    with pytest.raises(StatusError, match="does not contain declared merge key: type"):
        strategic(
            POD, {"status": {"conditions": [{"type": "A"}]}}, {"status": {"conditions": [{"status": "x"}]}}
        )


def test_field_sets_survive_their_written_form() -> None:
    claim = {
        "metadata": {"name": "c", "labels": {"a": "b"}, "finalizers": ["x.io/y"]},
        "spec": {"devices": {"requests": [{"name": "gpu"}]}},
        "status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]},
    }
    paths = set(leaves(CLAIM, claim))
    assert ("f:spec", "f:devices", "f:requests") in paths
    assert ("f:metadata", "f:finalizers", 'v:"x.io/y"') in paths
    assert ("f:status", "f:reservedFor", 'k:{"uid":"u"}', "f:name") in paths
    assert from_fields_v1(to_fields_v1(paths)) == paths


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".spec.driver", ["d"]),
        (".spec.missing", []),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[*].type", ["Settling", "Ready"]),
        (".status.conditions[1].type", ["Ready"]),
        (r".metadata.annotations.example\.com/a", ["x"]),
        (".metadata.annotations['example.com/a']", ["x"]),
    ],
)
def test_printer_column_paths(path: str, expected: list[Any]) -> None:
    obj = {
        "metadata": {"annotations": {"example.com/a": "x"}},
        "spec": {"driver": "d"},
        "status": {
            "conditions": [{"type": "Settling", "status": "False"}, {"type": "Ready", "status": "True"}]
        },
    }
    assert found(obj, path) == expected


def test_schema_defaults_reach_into_lists_and_maps() -> None:
    item = {"type": "object", "properties": {"pool": {"type": "string", "default": ""}}}
    schema = {
        "type": "object",
        "properties": {"list": {"type": "array", "items": item}, "map": {"additionalProperties": item}},
    }
    value: Obj = {"list": [{}, {"pool": "x"}], "map": {"k": {}}}
    fill_defaults(schema, value)
    assert value == {"list": [{"pool": ""}, {"pool": "x"}], "map": {"k": {"pool": ""}}}
    assert check(schema, value) == []


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/v1/pods", Target("", "v1", "pods")),
        ("/api/v1/namespaces", Target("", "v1", "namespaces")),
        ("/api/v1/namespaces/a", Target("", "v1", "namespaces", "", "a")),
        ("/api/v1/namespaces/a/status", Target("", "v1", "namespaces", "", "a", "status")),
        ("/api/v1/namespaces/a/pods/p/binding", Target("", "v1", "pods", "a", "p", "binding")),
        ("/apis/g/v1/things/x", Target("g", "v1", "things", "", "x")),
        ("/apis/g/v1/namespaces/a/things", Target("g", "v1", "things", "a")),
        ("/apis/g/v1", None),
        ("/version", None),
    ],
)
def test_request_paths(path: str, expected: Target | None) -> None:
    assert target(path) == expected


def test_kinds_are_found_by_path_and_by_type() -> None:
    kinds = Kinds()
    assert kinds.of({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}) == CLAIM
    kinds.add(Kind("g", "v1", "things", "Thing"))
    assert kinds.at("g", "v1", "things").api_version == "g/v1"
    kinds.remove(("g", "things"))
    with pytest.raises(StatusError, match="could not find the requested resource"):
        kinds.at("g", "v1", "things")
