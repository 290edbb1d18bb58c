"""Structural schemas of custom kinds: defaults and the plain checks.

Called through `strategies`. Of OpenAPI it knows type, required, enum, pattern, bounds of numbers, texts and lists, and defaults.
CEL validation rules are in `schemarules`, pruning is in `structs`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dra_operator.validation.causes import Cause
from dra_operator.validation.checks import repeated, required, too_long, too_many, unsupported, wrong

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dra_operator.testing.fakeapi.objects import Obj

_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}
_ROOT = frozenset({"apiVersion", "kind"})


def fill_defaults(schema: Obj, value: Any) -> None:
    """Set missing fields that have a default, in place, at all depths."""
    if isinstance(value, dict):
        _fill_fields(schema, value)
    elif isinstance(value, list):
        for item in value:
            fill_defaults(schema.get("items") or {}, item)


def _fill_fields(schema: Obj, value: Obj) -> None:
    properties = schema.get("properties") or {}
    for name, declared in properties.items():
        if name not in value and "default" in declared:
            value[name] = declared["default"]
        if name in value:
            fill_defaults(declared, value[name])
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict):
        for name in value.keys() - properties.keys():
            fill_defaults(extra, value[name])


def check(schema: Obj, value: Any, path: str = "") -> list[Cause]:
    """All violations of `schema` in `value`."""
    if "x-kubernetes-int-or-string" in schema or value is None:
        return []
    kind = schema.get("type")
    if kind and (
        not isinstance(value, _TYPES[kind]) or (kind in ("integer", "number") and isinstance(value, bool))
    ):
        named = {"dict": "object", "list": "array", "str": "string", "int": "integer", "bool": "boolean"}
        got = named.get(type(value).__name__, type(value).__name__)
        detail = f'in body must be of type {kind}: "{got}"'
        return [Cause(path or "<nil>", "FieldValueTypeInvalid", f'Invalid value: "{got}": {path} {detail}')]
    if isinstance(value, dict):
        return _check_object(schema, value, path)
    if isinstance(value, list):
        return _check_list(schema, value, path)
    return _check_scalar(schema, value, path)


def _check_object(schema: Obj, value: Obj, path: str) -> list[Cause]:
    properties = schema.get("properties") or {}
    causes = [required(_under(path, name)) for name in schema.get("required") or () if name not in value]
    extra = schema.get("additionalProperties")
    for name, item in value.items():
        if not path and name in _ROOT:
            continue
        if not path and name == "metadata":
            causes += _check_name(properties.get(name) or {}, item)
            continue
        declared = properties.get(name) or (extra if isinstance(extra, dict) else {})
        causes += check(declared, item, _under(path, name))
    return causes


def _check_name(schema: Obj, metadata: Obj) -> list[Cause]:
    """Of metadata a definition may narrow down the name, nothing else."""
    declared = (schema.get("properties") or {}).get("name") or {}
    return check(declared, metadata.get("name"), "metadata.name")


def _under(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _check_list(schema: Obj, value: list[Any], path: str) -> list[Cause]:
    if len(value) > schema.get("maxItems", len(value)):
        return [too_many(path, len(value), schema["maxItems"])]
    causes: list[Cause] = []
    if len(value) < schema.get("minItems", 0):
        causes.append(
            wrong(path, len(value), f"{path} in body should have at least {schema['minItems']} items")
        )
    causes += _check_keys(schema, value, path)
    for index, item in enumerate(value):
        causes += check(schema.get("items") or {}, item, f"{path}[{index}]")
    return causes


def _check_keys(schema: Obj, value: list[Any], path: str) -> list[Cause]:
    """Items of a map are unique by their keys, those of a set as a whole."""
    match schema.get("x-kubernetes-list-type"):
        case "map":
            keys = schema.get("x-kubernetes-list-map-keys") or ()
            return repeated(
                path,
                [
                    {key: item.get(key) for key in keys if key in item}
                    for item in value
                    if isinstance(item, dict)
                ],
            )
        case "set":
            return repeated(path, value)
    return []


def _check_scalar(schema: Obj, value: Any, path: str) -> list[Cause]:
    if "enum" in schema and value not in schema["enum"]:
        return [unsupported(path, value, [str(item) for item in schema["enum"]])]
    if isinstance(value, str):
        return _check_text(schema, value, path)
    causes = []
    if value < schema.get("minimum", value):
        causes.append(
            wrong(path, value, f"{path} in body should be greater than or equal to {schema['minimum']}")
        )
    if value > schema.get("maximum", value):
        causes.append(
            wrong(path, value, f"{path} in body should be less than or equal to {schema['maximum']}")
        )
    return causes


def _check_text(schema: Obj, value: str, path: str) -> list[Cause]:
    causes = []
    if len(value) < schema.get("minLength", 0):
        causes.append(
            wrong(path, value, f"{path} in body should be at least {schema['minLength']} chars long")
        )
    if len(value) > schema.get("maxLength", len(value)):
        causes.append(too_long(path, schema["maxLength"]))
    if "pattern" in schema and not re.search(schema["pattern"], value):
        causes.append(wrong(path, value, f"{path} in body should match '{schema['pattern']}'"))
    return causes
