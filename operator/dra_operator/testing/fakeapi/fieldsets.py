"""Field sets of server-side apply: which leaves an object has, and how FieldsV1 writes them down.

Called by `managers` and `apply`. A path is a tuple of FieldsV1 elements (`f:spec`, `k:{"name":"a"}`, `v:"x"`). Only leaves and
items of keyed lists are paths here; the `.` entries of the real format are written for items alone, which is what readers of
managedFields need.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from dra_operator.testing.fakeapi.listkeys import Path, apply_keys, is_set

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dra_operator.testing.fakeapi.kinds import Kind
    from dra_operator.testing.fakeapi.objects import Obj

FieldPath = tuple[str, ...]
Leaves = dict[FieldPath, Any]


class _Item:
    """The value of a path that is an item of a keyed list: any two are equal."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Item)

    def __hash__(self) -> int:
        return 0


ITEM: Final = _Item()

_UNOWNED = frozenset({
    "name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
    "deletionGracePeriodSeconds", "managedFields", "generateName", "selfLink",
})  # fmt: skip


def leaves(kind: Kind, obj: Obj) -> Leaves:
    """Every path of `obj` that somebody can own, with its value."""
    found: Leaves = {}
    for field, value in obj.items():
        if field == "metadata":
            owned = {name: item for name, item in value.items() if name not in _UNOWNED}
            found.update(_walk(kind, owned, ("metadata",), ("f:metadata",), root=True))
        elif field not in ("apiVersion", "kind"):
            found.update(_walk(kind, value, (field,), (f"f:{field}",)))
    return found


def _walk(
    kind: Kind, value: Any, names: Path, at: FieldPath, *, root: bool = False
) -> Iterator[tuple[FieldPath, Any]]:
    if isinstance(value, dict) and (value or root):
        for field, item in value.items():
            yield from _walk(kind, item, (*names, field), (*at, f"f:{field}"))
    elif isinstance(value, list):
        yield from _walk_list(kind, value, names, at)
    else:
        yield at, value


def _walk_list(kind: Kind, items: list[Any], names: Path, at: FieldPath) -> Iterator[tuple[FieldPath, Any]]:
    keys = apply_keys(kind, names)
    if keys:
        for item in items:
            path = (*at, item_element(item, keys))
            yield path, ITEM
            if isinstance(item, dict):
                yield from _walk(kind, item, names, path)
    elif is_set(kind, names):
        for item in items:
            yield (*at, f"v:{json.dumps(item)}"), item
    else:
        yield at, items


def item_element(item: Any, keys: tuple[str, ...]) -> str:
    """The FieldsV1 element of a keyed list's item; missing keys get their defaults."""
    values = {
        key: item.get(key, "TCP" if key == "protocol" else None) for key in keys if isinstance(item, dict)
    }
    present = {key: value for key, value in values.items() if value is not None}
    return f"k:{json.dumps(present, separators=(',', ':'), sort_keys=True)}"


def to_fields_v1(paths: Iterable[FieldPath]) -> Obj:
    """The nested FieldsV1 form."""
    root: Obj = {}
    for path in paths:
        node = root
        for element in path:
            node = node.setdefault(element, {})
        if path[-1].startswith("k:"):
            node.setdefault(".", {})
    return root


def from_fields_v1(fields: Obj) -> set[FieldPath]:
    """The paths of a FieldsV1 document, leaves and items."""
    return set(_unnested(fields, ()))


def _unnested(node: Obj, at: FieldPath) -> Iterator[FieldPath]:
    children = [element for element in node if element != "."]
    if at and (not children or at[-1].startswith("k:")):
        yield at
    for element in children:
        yield from _unnested(node[element], (*at, element))


def removed(kind: Kind, obj: Obj, gone: Iterable[FieldPath], kept: Iterable[FieldPath]) -> Obj:
    """A copy of `obj` without the paths in `gone`; an item stays as long as a path in `kept` lies under it."""
    protected = {path[:length] for path in kept for length in range(1, len(path) + 1)}
    doomed = {path for path in gone if path not in protected}
    if not doomed:
        return obj
    result = _pruned(kind, obj, (), (), doomed)
    return result if isinstance(result, dict) else {}


def _pruned(kind: Kind, value: Any, names: Path, at: FieldPath, doomed: set[FieldPath]) -> Any:
    """`value` without what is doomed; None if nothing is left of a container that lost something."""
    if at in doomed:
        return None
    if isinstance(value, dict):
        pruned = {
            field: _pruned(kind, item, (*names, field), (*at, f"f:{field}"), doomed)
            for field, item in value.items()
        }
        result = {field: item for field, item in pruned.items() if item is not None}
        return result if result or not value else None
    if isinstance(value, list) and names:
        return _pruned_list(kind, value, names, at, doomed)
    return value


def _pruned_list(kind: Kind, items: list[Any], names: Path, at: FieldPath, doomed: set[FieldPath]) -> Any:
    keys = apply_keys(kind, names)
    if keys:
        kept = [_pruned(kind, item, names, (*at, item_element(item, keys)), doomed) for item in items]
        kept = [item for item in kept if item is not None]
    elif is_set(kind, names):
        kept = [item for item in items if (*at, f"v:{json.dumps(item)}") not in doomed]
    else:
        return items
    return kept or (None if items else kept)
