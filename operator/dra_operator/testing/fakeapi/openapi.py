"""Schemas of the served kinds, as `/openapi/v3` shows them: for `kubectl explain`, `apply` and `diff`.

Called by `discovery`. Those of built-in kinds are made from the table of fields (`structs`), without descriptions; custom kinds show the
schema of their definition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi.objects import Obj, copied
from dra_operator.testing.fakeapi.structs import METADATA
from dra_operator.validation.fields import table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dra_operator.testing.fakeapi.kinds import Kind

_PREFIX = "#/components/schemas/"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_LEAVES: Mapping[str, tuple[str, Obj]] = {
    "quantity": (
        "io.k8s.apimachinery.pkg.api.resource.Quantity",
        {"oneOf": [{"type": "string"}, {"type": "number"}]},
    ),
    "time": (f"{_META}.Time", {"type": "string", "format": "date-time"}),
    "micro-time": (f"{_META}.MicroTime", {"type": "string", "format": "date-time"}),
    "int-or-string": (
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
        {"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"},
    ),
}
_SCALARS: Mapping[str, Obj] = {
    "string": {"type": "string"},
    "bytes": {"type": "string", "format": "byte"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "float64": {"type": "number", "format": "double"},
    "any": {},
}


def schemas_of(kinds: Iterable[Kind]) -> Obj:
    """`components.schemas` of one group and version."""
    found: Obj = dict(_LEAVES.values())
    for kind in kinds:
        if kind.custom:
            found[_custom_name(kind)] = _custom(kind)
            _add_structs(found, METADATA)
        else:
            root = table().kinds[f"{kind.api_version}/{kind.kind}"]
            _add_structs(found, root)
            found[root] = {**found[root], **_identity(kind)}
    return found


def _identity(kind: Kind) -> Obj:
    known = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    return {"x-kubernetes-group-version-kind": [known]}


def _add_structs(found: Obj, root: str) -> None:
    todo = [root]
    while todo:
        name = todo.pop()
        if name in found:
            continue
        fields = table().structs[name]
        found[name] = {
            "type": "object",
            "properties": {field: _field(name, field, code) for field, code in fields.items()},
        }
        todo += [code.partition("@")[2] for code in fields.values() if "@" in code]


def _field(struct: str, field: str, code: str) -> Obj:
    key, how = table().merges.get(f"{struct}.{field}", ("", ""))
    extra = {"x-kubernetes-patch-merge-key": key, "x-kubernetes-patch-strategy": how}
    return {**_schema(code), **{name: value for name, value in extra.items() if value}}


def _schema(code: str) -> Obj:
    if code.startswith("[]"):
        return {"type": "array", "items": _schema(code[2:])}
    if code.startswith("{}"):
        return {"type": "object", "additionalProperties": _schema(code[2:])}
    if code[0] == "@":
        return {"allOf": [{"$ref": f"{_PREFIX}{code[1:]}"}]}
    if code in _LEAVES:
        return {"$ref": f"{_PREFIX}{_LEAVES[code][0]}"}
    return dict(_SCALARS[code])


def _custom_name(kind: Kind) -> str:
    domain = ".".join(reversed(kind.group.split(".")))
    return f"{domain}.{kind.version}.{kind.kind}"


def _custom(kind: Kind) -> Obj:
    schema = copied(kind.schema or {})
    schema.pop("x-selectable-fields", None)
    metadata = {"allOf": [{"$ref": f"{_PREFIX}{METADATA}"}]}
    properties = {**(schema.get("properties") or {}), "metadata": metadata}
    for name in ("apiVersion", "kind"):
        properties[name] = {"type": "string"}
    return {"type": "object", **schema, "properties": properties, **_identity(kind)}
