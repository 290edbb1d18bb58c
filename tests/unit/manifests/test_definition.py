"""The AllocationPolicy kind as users meet it: every field told by `kubectl explain`, columns that show what exists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.manifests.build import built, of_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.unit.manifests.build import Obj

STANDARD = {".apiVersion", ".kind", ".metadata", ".metadata.name"}
"""The API server tells these itself."""


def version() -> Obj:
    (crd,) = of_kind(built("crds"), "CustomResourceDefinition")
    (only,) = crd["spec"]["versions"]
    return dict(only)


def fields(schema: Obj, path: str = "") -> Iterator[tuple[str, Obj]]:
    """Every field and every kind of list entry, by path."""
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from fields(inner, f"{path}.{name}")
    if "items" in schema:
        yield from fields(schema["items"], f"{path}[]")


SCHEMA = version()["schema"]["openAPIV3Schema"]


def test_every_field_is_described_in_sentences() -> None:
    described = {
        path: schema.get("description", "") for path, schema in fields(SCHEMA) if path not in STANDARD
    }

    assert len(described) > 15
    assert [path for path, text in described.items() if not text.endswith(".") or "\n" in text] == []


def test_every_text_list_and_map_has_a_bound() -> None:
    """The API server estimates the cost of rules by these; without a bound a policy could be as large as a request."""
    unbounded = [
        path
        for path, schema in fields(SCHEMA)
        if path not in STANDARD
        and (
            (schema["type"] == "string" and not {"maxLength", "enum", "format"} & set(schema))
            or (schema["type"] == "array" and "maxItems" not in schema)
            or "additionalProperties" in schema
        )
    ]

    assert unbounded == []


def test_rules_say_what_to_do() -> None:
    rules = [rule for _, schema in fields(SCHEMA) for rule in schema.get("x-kubernetes-validations", [])]

    assert len(rules) >= 2
    assert all("copy" in rule["message"] and "ResourceSlice" in rule["message"] for rule in rules)


def test_the_status_is_apart_from_the_spec() -> None:
    assert version()["subresources"] == {"status": {}}


def test_columns_show_fields_that_exist() -> None:
    known = {path for path, _ in fields(SCHEMA)} | {".metadata.creationTimestamp"}

    columns = version()["additionalPrinterColumns"]
    plain = [
        column["jsonPath"].replace('[?(@.type=="Ready")]', "[]").replace('[?(@.type=="Enforced")]', "[]")
        for column in columns
    ]

    assert [path for path in plain if path not in known] == []
    assert [column["name"] for column in columns if not column.get("priority")] == [
        "Pools",
        "Devices",
        "Allocated",
        "Enforced",
        "Ready",
        "Reason",
        "Age",
    ]
