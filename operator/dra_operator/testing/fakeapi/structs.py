"""What decoding into typed structs makes of a body: unknown fields are dropped (and told), wrong types are refused.

Called by `machinery` on whatever a writer sends. Which kind has which fields stands in `validation/fields.json`; custom kinds bring their schema.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from dra_operator.errors import InvalidQuantity
from dra_operator.quantity import Quantity
from dra_operator.testing.fakeapi.failures import bad_request
from dra_operator.testing.fakeapi.objects import dig
from dra_operator.validation.fields import Fields, table

if TYPE_CHECKING:
    from dra_operator.testing.fakeapi.failures import StatusError
    from dra_operator.testing.fakeapi.kinds import Kind
    from dra_operator.testing.fakeapi.objects import Obj

METADATA = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_JSON_NAMES: dict[type, str] = {
    str: "string",
    bool: "bool",
    int: "number",
    float: "number",
    dict: "object",
    list: "array",
}
_NUMBERS = {"int32": 2**31, "int64": 2**63}
_Check = Callable[[Any], bool]
_SCALARS: dict[str, tuple[_Check, str]] = {
    "string": (lambda value: isinstance(value, str), "string"),
    "bytes": (lambda value: isinstance(value, str), "[]uint8"),
    "bool": (lambda value: isinstance(value, bool), "bool"),
    "float64": (lambda value: isinstance(value, int | float) and not isinstance(value, bool), "float64"),
}


@dataclass(slots=True)
class Decoded:
    """What became of a body."""

    obj: Obj
    unknown: list[str] = field(default_factory=list)
    """Paths of the fields that were dropped."""


def decoded_as(kind: Kind, obj: Obj) -> Decoded:
    """`obj` with only those fields that its kind has.

    Raises:
        StatusError: 400, a field has a value of another type (built-in kinds; the schema checks custom ones later).
    """
    result = Decoded({})
    if kind.custom:
        result.obj = _pruned_root(kind, obj, result.unknown)
        return result
    root = table().kinds.get(f"{kind.api_version}/{kind.kind}")
    if root is None:
        return Decoded(obj)
    if not _as_it_is(f"@{root}")(obj):
        result.obj = _Reader(kind, result.unknown).struct(root, obj, "", "")
        return result
    return Decoded(obj)


@cache
def _as_it_is(code: str) -> _Check:
    """Whether decoding would leave a value of this type alone: nearly always, and ten times as fast to find out."""
    if code[0] == "@":
        return _struct_check(table().structs[code[1:]])
    if code.startswith("[]"):
        return lambda value: isinstance(value, list) and all(map(_as_it_is(code[2:]), value))
    if code.startswith("{}"):
        return lambda value: isinstance(value, dict) and all(map(_as_it_is(code[2:]), value.values()))
    if code == "quantity":
        return _is_canonical
    if limit := _NUMBERS.get(code):
        return lambda value: type(value) is int and -limit <= value < limit
    return _SCALARS[code][0] if code in _SCALARS else lambda _: True


def _struct_check(fields: Fields) -> _Check:
    checks: dict[str, _Check] = {}

    def check(value: Any) -> bool:
        if not isinstance(value, dict):
            return False
        for name, item in value.items():
            found = checks.get(name)
            if found is None:
                if name not in fields:
                    return False
                found = checks[name] = _as_it_is(fields[name])
            if item is not None and not found(item):
                return False
        return True

    return check


def _is_canonical(value: Any) -> bool:
    try:
        return isinstance(value, str) and _canonical_quantity(value) == value
    except InvalidQuantity:
        return False


@dataclass(frozen=True, slots=True)
class _Reader:
    kind: Kind
    unknown: list[str]

    def struct(self, name: str, value: Obj, path: str, plain: str) -> Obj:
        """The known fields of one struct; `plain` is the path without indexes, as Go writes it."""
        fields = table().structs[name]
        found: Obj = {}
        for key, item in value.items():
            code = fields.get(key)
            if code is None:
                self.unknown.append(_under(path, key))
            elif item is None:
                found[key] = None
            else:
                found[key] = self._value(code, item, (_under(path, key), _under(plain, key), name))
        return found

    def _value(self, code: str, value: Any, at: tuple[str, str, str]) -> Any:
        path, plain, owner = at
        if code[0] == "@":
            self._expect(isinstance(value, dict), value, at, code)
            return self.struct(code[1:], value, path, plain)
        if code.startswith("[]"):
            self._expect(isinstance(value, list), value, at, code)
            return [
                self._value(code[2:], item, (f"{path}[{n}]", plain, owner)) for n, item in enumerate(value)
            ]
        if code.startswith("{}"):
            self._expect(isinstance(value, dict), value, at, code)
            return {
                key: self._value(code[2:], item, (_under(path, key), plain, owner))
                for key, item in value.items()
            }
        if code == "quantity":
            return self._quantity(value)
        self._scalar(code, value, at)
        return value

    def _quantity(self, value: Any) -> str:
        try:
            return _canonical_quantity(value.strip() if isinstance(value, str) else repr(value))
        except InvalidQuantity:
            pattern = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
            raise self._unusable(f"quantities must match the regular expression '{pattern}'") from None

    def _scalar(self, code: str, value: Any, at: tuple[str, str, str]) -> None:
        if code in _NUMBERS:
            whole = isinstance(value, int) and not isinstance(value, bool)
            if whole and not -_NUMBERS[code] <= value < _NUMBERS[code]:
                self._refuse(f"number {value}", code, at)
            self._expect(whole, value, at, code)
        elif code in _SCALARS:
            test, go_type = _SCALARS[code]
            self._expect(test(value), value, at, go_type)

    def _expect(self, holds: bool, value: Any, at: tuple[str, str, str], code: str) -> None:  # noqa: FBT001 - a condition
        if not holds:
            name = _JSON_NAMES[type(value)]
            self._refuse(f"number {value}" if isinstance(value, float) else name, _go_type(code), at)

    def _refuse(self, got: str, go_type: str, at: tuple[str, str, str]) -> None:
        struct = at[2].rpartition(".")[2]
        raise self._unusable(
            f"json: cannot unmarshal {got} into Go struct field {struct}.{at[1]} of type {go_type}"
        )

    def _unusable(self, why: str) -> StatusError:
        return bad_request(unusable(self.kind, why))


@lru_cache(maxsize=4096)
def _canonical_quantity(text: str) -> str:
    return str(Quantity.parse(text))


def unusable(kind: Kind, why: str) -> str:
    """The text of a refusal of a body that cannot be decoded."""
    return f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {why}'


def _go_type(code: str) -> str:
    """The Go type of a code: `[]v1.Container`, `map[string]string`, `v1.PodSpec`."""
    if code.startswith("[]") and code != "[]uint8":
        return f"[]{_go_type(code[2:])}"
    if code.startswith("{}"):
        return f"map[string]{_go_type(code[2:])}"
    return ".".join(code[1:].split(".")[-2:]) if code[0] == "@" else code


def _under(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


# --- custom kinds


def _pruned_root(kind: Kind, obj: Obj, unknown: list[str]) -> Obj:
    schema = kind.schema or {}
    found: Obj = {}
    for name, value in obj.items():
        if name in ("apiVersion", "kind"):
            found[name] = value
        elif name == "metadata" and isinstance(value, dict):
            found[name] = _Reader(kind, unknown).struct(METADATA, value, "metadata", "metadata")
        else:
            found |= _pruned_fields(schema, {name: value}, "", unknown)
    return found


def _pruned(schema: Obj, value: Any, path: str, unknown: list[str]) -> Any:
    if isinstance(value, dict):
        return _pruned_fields(schema, value, path, unknown)
    if isinstance(value, list):
        items = schema.get("items") or {}
        return [_pruned(items, item, f"{path}[{n}]", unknown) for n, item in enumerate(value)]
    return value


def _pruned_fields(schema: Obj, value: Obj, path: str, unknown: list[str]) -> Obj:
    properties, extra = dig(schema, "properties") or {}, schema.get("additionalProperties")
    keeps = bool(schema.get("x-kubernetes-preserve-unknown-fields")) or extra is True
    found: Obj = {}
    for name, item in value.items():
        declared = properties.get(name) or (extra if isinstance(extra, dict) else None)
        if declared is not None:
            found[name] = _pruned(declared, item, _under(path, name), unknown)
        elif keeps:
            found[name] = item
        else:
            unknown.append(_under(path, name))
    return found
