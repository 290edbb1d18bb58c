"""Renews `validation/fields.json`, the table of fields of the kinds: `python -m tests.contract.fieldtable FOLDER`.

FOLDER holds the OpenAPI v3 documents of a Kubernetes release (`api/openapi-spec/v3` of its source, or what `kubectl get --raw
/openapi/v3/…` prints). Only names and types of fields are taken. `test_fields.py` holds the table to the server under contract.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dra_operator.testing.fakeapi.kinds import BUILTIN
from dra_operator.validation.fields import TABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

Obj = dict[str, Any]

_SCALARS = {
    ("string", ""): "string",
    ("string", "byte"): "bytes",
    ("boolean", ""): "bool",
    ("integer", "int32"): "int32",
    ("integer", "int64"): "int64",
    ("integer", ""): "int64",
    ("number", "double"): "float64",
}
_SPECIAL = {
    "Quantity": "quantity",
    "IntOrString": "int-or-string",
    "Time": "time",
    "MicroTime": "micro-time",
    "RawExtension": "any",
    "FieldsV1": "any",
    "JSON": "any",
    "JSONSchemaPropsOrBool": "any",
    "JSONSchemaPropsOrArray": "any",
    "JSONSchemaPropsOrStringArray": "any",
    "JSONSchemaProps": "any",
}
"""Types that are read by a decoder of their own; the schemas in definitions of kinds are left alone."""


def code(schema: Obj) -> str:
    """How the table writes a type down: a scalar, `@Struct`, `[]type` or `{}type`."""
    reference = schema.get("$ref") or next(
        (part["$ref"] for part in schema.get("allOf", ()) if "$ref" in part), ""
    )
    if reference:
        full = reference.rpartition("/")[2]
        return _SPECIAL.get(full.rpartition(".")[2], f"@{full}")
    if schema.get("type") == "array":
        return f"[]{code(schema['items'])}"
    if "additionalProperties" in schema:
        return f"{{}}{code(schema['additionalProperties'])}"
    return _SCALARS.get((schema.get("type", ""), schema.get("format", "")), "any")


def fields_of(schema: Obj) -> dict[str, str]:
    """The fields of one struct."""
    return {name: code(declared) for name, declared in sorted(schema.get("properties", {}).items())}


def merges_of(name: str, schema: Obj) -> Iterator[tuple[str, tuple[str, str]]]:
    """How lists and maps of one struct take part in strategic merge patches, by `struct.field`."""
    for field, declared in schema.get("properties", {}).items():
        key, how = (declared.get(f"x-kubernetes-patch-{what}", "") for what in ("merge-key", "strategy"))
        if key or how:
            yield f"{name}.{field}", (key, how)


def kinds_in(document: Obj) -> Iterator[tuple[str, str]]:
    """`apiVersion/Kind` and schema name of every kind that a document declares."""
    for name, schema in document["components"]["schemas"].items():
        for known in schema.get("x-kubernetes-group-version-kind", ()):
            group, version = known["group"], known["version"]
            yield f"{group}/{version}/{known['kind']}".lstrip("/"), name


def table_of(documents: list[Obj], wanted: set[str]) -> Obj:
    """The table for the wanted kinds, with every struct that they reach."""
    schemas: Obj = {}
    for document in documents:
        schemas |= document["components"]["schemas"]
    kinds = {kind: name for document in documents for kind, name in kinds_in(document) if kind in wanted}
    structs: dict[str, dict[str, str]] = {}
    todo = sorted(kinds.values())
    while todo:
        name = todo.pop()
        if name not in structs:
            structs[name] = fields_of(schemas[name])
            todo += [item.partition("@")[2] for item in structs[name].values() if "@" in item]
    merges = dict(found for name in structs for found in merges_of(name, schemas[name]))
    return {"kinds": kinds, "structs": structs, "merges": merges}


def wanted_kinds() -> set[str]:
    """`apiVersion/Kind` of all built-in kinds of the embedded server."""
    return {f"{kind.api_version}/{kind.kind}" for kind in BUILTIN}


def main() -> int:
    """Writes the table; 2 without a folder."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    groups = {kind.api_version for kind in BUILTIN}
    names = [f"api{'s' if '/' in group else ''}__{group.replace('/', '__')}_openapi.json" for group in groups]
    documents = [json.loads((Path(sys.argv[1]) / name).read_text()) for name in sorted(names)]
    TABLE.write_text(json.dumps(table_of(documents, wanted_kinds()), indent=0, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
