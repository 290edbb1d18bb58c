"""Objects of any shape have findings, and break nothing."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from dra_operator.lint import Finding, documents, look

CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: made, namespace: team, labels: {a: b}, ownerReferences: [{apiVersion: v1, kind: A, name: a, uid: u}]}
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.test
        count: 1
        selectors: [{cel: {expression: "true"}}]
        tolerations: [{key: a, operator: Exists}]
        capacity: {requests: {memory: 1Gi}}
    - name: nic
      firstAvailable: [{name: a, deviceClassName: nic.test}]
    constraints: [{requests: [gpu], matchAttribute: a.test/b}]
    config: [{requests: [gpu], opaque: {driver: gpu.test, parameters: {}}}]
"""
SLICE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: made}
spec:
  driver: gpu.test
  nodeName: worker
  pool: {name: worker, generation: 1, resourceSliceCount: 2}
  devices:
  - name: gpu-0
    attributes: {model: {string: a100}}
    capacity: {memory: {value: 40Gi}}
    consumesCounters: [{counterSet: set, counters: {a: {value: 1}}}]
    taints: [{key: a, effect: NoSchedule}]
"""
COUNTERS = """\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: made}
spec:
  driver: gpu.test
  nodeName: worker
  pool: {name: worker, generation: 1, resourceSliceCount: 2}
  sharedCounters: [{name: set, counters: {a: {value: 1}}}]
"""
RULE = """\
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: made}
spec: {deviceSelector: {driver: gpu.test}, taint: {key: a, effect: NoSchedule}}
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: made}
spec:
  resourceClaims: [{name: gpu, resourceClaimName: made}]
  containers: [{name: a, image: b, resources: {claims: [{name: gpu, request: gpu}]}}]
  initContainers: [{name: c, image: b, resources: {claims: [{name: gpu}]}}]
"""
OTHERS: tuple[Any, ...] = (
    None,
    5,
    1.5,
    True,
    "text",
    "",
    [],
    [None],
    {},
    {"a": None},
    [{}],
    {"a": {"b": [1]}},
)


def lint(value: object) -> list[Finding]:
    return look(documents("made.yaml", yaml.safe_dump(value)))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    return [path, *(place for key, one in members for place in places(one, (*path, key)))]


def replaced(whole: Any, path: tuple[Any, ...], value: object) -> Any:
    if not path:
        return value
    changed = copy.deepcopy(whole)
    inner = changed
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return changed


@pytest.mark.parametrize(
    "text", [CLAIM, SLICE, COUNTERS, RULE, POD], ids=["claim", "slice", "counters", "rule", "pod"]
)
def test_any_value_may_stand_anywhere(text: str) -> None:
    whole = yaml.safe_load(text)
    assert lint(whole) == []

    for path in places(whole):
        for value in OTHERS:
            findings = lint({"apiVersion": "v1", "kind": "List", "items": [replaced(whole, path, value)]})
            assert all(one.line > 0 and one.end_column > one.column for one in findings), (path, value)


@pytest.mark.parametrize(
    ("api_version", "message"),
    [
        ("resource.k8s.io/v9", "ResourceClaim is served as"),
        ("resource.k8s.io", "ResourceClaim is served as"),
        ("v1", "v1 has no kind ResourceClaim"),
        ("resources.k8s.io/v1", "resources.k8s.io/v1 has no kind ResourceClaim"),
        ("Resource.k8s.io/v1", "Resource.k8s.io/v1 has no kind ResourceClaim"),
    ],
)
def test_a_group_or_version_that_is_none_is_told(api_version: str, message: str) -> None:
    (found,) = look(documents("made.yaml", CLAIM.replace("resource.k8s.io/v1", api_version)))

    assert found.code == "UnknownVersion"
    assert message in found.message


def test_a_list_within_a_list_is_told_and_its_items_are_looked_at() -> None:
    inner = {"apiVersion": "v1", "kind": "List", "items": [yaml.safe_load(CLAIM.replace("true", "nope"))]}

    found = lint({"apiVersion": "v1", "kind": "List", "items": [inner]})

    assert {one.code for one in found} == {"NotAnObject", "CelInvalid"}


@pytest.mark.parametrize("kind", ["List", "ResourceClaimList"])
@pytest.mark.parametrize("items", ["text", {"a": 1}, 3, True])
def test_items_that_are_no_list_are_told(kind: str, items: object) -> None:
    """Nothing would be looked at, and all would seem well."""
    (found,) = lint({"apiVersion": "v1", "kind": kind, "items": items})

    assert (found.code, found.path) == ("NotAnObject", "items")


@pytest.mark.parametrize("items", [{}, {"items": None}, {"items": []}])
def test_a_list_of_nothing_is_none_of_a_fault(items: dict[str, object]) -> None:
    assert lint({"apiVersion": "v1", "kind": "List", **items}) == []


def test_kinds_of_the_same_name_in_other_groups_are_passed_over() -> None:
    assert look(documents("made.yaml", CLAIM.replace("resource.k8s.io/v1", "storage.example.com/v1"))) == []
