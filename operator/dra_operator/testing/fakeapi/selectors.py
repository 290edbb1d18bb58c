"""Label and field selectors of list and watch requests.

Called by `reading` and by owners of label selectors in objects. Parsing is strict: what a real server refuses with 400 is
refused here, too. No knowledge of stores.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dra_operator.testing.fakeapi import labels
from dra_operator.testing.fakeapi.failures import bad_request
from dra_operator.testing.fakeapi.kinds import DRA, Kind
from dra_operator.testing.fakeapi.objects import Obj, dig, meta

Test = Callable[[Obj], bool]

_EQUAL = re.compile(r"^(?P<key>[^\s!=]+)\s*(?P<op>==|=|!=)\s*(?P<value>[^\s=!]*)$")

_EVENT_FIELDS = (
    *(f"involvedObject.{name}" for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion")),
    "involvedObject.fieldPath", "reason", "reportingComponent", "source", "type",
)  # fmt: skip

FIELDS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("", "pods"): (
        "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "status.phase",
        "status.podIP", "status.nominatedNodeName", "spec.hostNetwork",
    ),
    ("", "nodes"): ("spec.unschedulable",),
    ("", "namespaces"): ("status.phase",),
    ("", "secrets"): ("type",),
    ("", "events"): _EVENT_FIELDS,
    (DRA, "resourceslices"): ("spec.nodeName", "spec.driver", "spec.pool.name"),
}  # fmt: skip
"""Field selectors beyond metadata.name and metadata.namespace (for slices: cp V-107)."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What a request selects: a test, and whether it is trivial (everything passes)."""

    test: Test
    trivial: bool

    def __call__(self, obj: Obj) -> bool:
        """Whether `obj` is selected."""
        return self.trivial or self.test(obj)


def selection(kind: Kind, query: Mapping[str, str]) -> Selection:
    """The selection of a request's `labelSelector` and `fieldSelector`.

    Raises:
        StatusError: 400, a selector does not parse, or the kind has no such field label.
    """
    tests = [
        *label_tests(query.get("labelSelector", "")),
        *_field_tests(kind, query.get("fieldSelector", "")),
    ]
    return Selection(lambda obj: all(test(obj) for test in tests), not tests)


def label_tests(text: str) -> list[Test]:
    """One test for each requirement of a label selector such as `a=b,c in (d,e),!f`.

    Raises:
        StatusError: 400, it does not parse.
    """
    return [_of_labels(test) for test in labels.parsed(text)]


def _of_labels(test: labels.LabelTest) -> Test:
    return lambda obj: test(meta(obj).get("labels") or {})


def _field_tests(kind: Kind, text: str) -> list[Test]:
    return [_field_test(kind, part.strip()) for part in text.split(",") if part.strip()]


def _field_test(kind: Kind, part: str) -> Test:
    match = _EQUAL.match(part)
    if not match:
        raise bad_request(f"invalid selector: '{part}'; can't understand '{part}'")
    path = match["key"]
    if path not in ("metadata.name", "metadata.namespace") and path not in FIELDS.get(
        kind.resource, kind_fields(kind)
    ):
        raise bad_request(_unselectable(kind, path))
    steps, value, wanted = path.split("."), match["value"], match["op"] != "!="
    return lambda obj: (_text(dig(obj, *steps)) == value) is wanted


def _unselectable(kind: Kind, path: str) -> str:
    if kind.group == DRA and kind.resource in FIELDS:
        return f"field label not supported for {kind.api_version}, Kind={kind.kind}: {path}"
    if kind.custom or kind.resource in FIELDS:
        return f"field label not supported: {path}"
    return f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"'


def kind_fields(kind: Kind) -> tuple[str, ...]:
    """The selectable fields that a custom resource definition declares."""
    return tuple(str(field) for field in (kind.schema or {}).get("x-selectable-fields", ()))


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return str(value.get("component", ""))
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)
