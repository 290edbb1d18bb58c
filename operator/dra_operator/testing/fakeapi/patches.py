"""The patch formats except apply: JSON patch, merge patch, strategic merge patch.

Called by `machinery`. Each takes the live object and returns a new one, without changing the former. JSON patch itself is the
library's; merge patch is ten lines; strategic merge patch exists in no Python library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonpatch
import jsonpointer

from dra_operator.testing.fakeapi.failures import StatusError, bad_request, unprocessable
from dra_operator.testing.fakeapi.listkeys import PRIMITIVE_SETS, Path, merge_key

if TYPE_CHECKING:
    from dra_operator.testing.fakeapi.kinds import Kind
    from dra_operator.testing.fakeapi.objects import Obj

JSON = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"

DIRECTIVE = "$patch"
_DELETE_PRIMITIVE = "$deleteFromPrimitiveList/"
_SET_ORDER = "$setElementOrder/"
_RETAIN = "$retainKeys"
_NO_OBJECT = (
    "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"
)


def patched(kind: Kind, live: Obj, media_type: str, patch: Any) -> Obj:
    """The object after `patch`.

    Raises:
        StatusError: 400 (the patch has the wrong shape), 415 (no such format), 422 (a JSON patch that does not hold).
    """
    if media_type == JSON:
        return _json_patched(live, patch)
    if not isinstance(patch, dict):
        raise bad_request(_NO_OBJECT)
    if media_type == MERGE:
        result = merged(live, patch)
        assert isinstance(result, dict)
        return result
    return strategic(kind, live, patch)


def _json_patched(live: Obj, patch: Any) -> Obj:
    if not isinstance(patch, list):
        raise bad_request("json: cannot unmarshal object into a JSON patch")
    try:
        result = jsonpatch.apply_patch(live, patch)
    except (jsonpatch.JsonPatchConflict, jsonpatch.JsonPatchTestFailed, jsonpointer.JsonPointerException):
        raise unprocessable() from None
    except jsonpatch.JsonPatchException:
        raise unprocessable() from None
    if not isinstance(result, dict):
        raise bad_request("a JSON patch may not replace the object by something else")
    return result


def merged(live: Any, patch: Any) -> Any:
    """RFC 7386: null deletes, objects merge, all else replaces."""
    if not isinstance(patch, dict):
        return patch
    base = live if isinstance(live, dict) else {}
    result = dict(base)
    for field, value in patch.items():
        if value is None:
            result.pop(field, None)
        else:
            result[field] = merged(base.get(field), value)
    return result


def strategic(kind: Kind, live: Obj, patch: Obj, path: Path = ()) -> Obj:
    """Strategic merge of one map at `path`."""
    directive = patch.get(DIRECTIVE)
    if directive == "replace":
        return _without_directives(patch)
    if directive == "delete":
        return {}
    result = _retained(live, patch)
    for field, value in patch.items():
        if field.startswith(_DELETE_PRIMITIVE):
            name = field.removeprefix(_DELETE_PRIMITIVE)
            result[name] = [item for item in result.get(name) or () if item not in value]
        elif not field.startswith("$"):
            _merge_field(kind, result, (*path, field), value)
    for field, order in patch.items():
        if field.startswith(_SET_ORDER):
            name = field.removeprefix(_SET_ORDER)
            result[name] = _ordered(kind, result.get(name) or [], order, live.get(name) or [], (*path, name))
    return result


def _retained(live: Obj, patch: Obj) -> Obj:
    kept = patch.get(_RETAIN)
    return dict(live) if kept is None else {field: value for field, value in live.items() if field in kept}


def _merge_field(kind: Kind, result: Obj, path: Path, value: Any) -> None:
    field = path[-1]
    current = result.get(field)
    if value is None:
        result.pop(field, None)
    elif isinstance(value, dict):
        result[field] = strategic(kind, current if isinstance(current, dict) else {}, value, path)
    elif isinstance(value, list):
        result[field] = _merged_list(kind, current if isinstance(current, list) else [], value, path)
    else:
        result[field] = value


def _merged_list(kind: Kind, live: list[Any], patch: list[Any], path: Path) -> list[Any]:
    if path[-1] in PRIMITIVE_SETS:
        united = [*live, *(item for item in patch if item not in live)]
        return _ordered(kind, united, patch, live, path)
    key = merge_key(kind, path)
    if key is None:
        return patch
    if any(item.get(DIRECTIVE) == "replace" for item in patch):
        return [item for item in patch if DIRECTIVE not in item]
    result = list(live)
    for item in patch:
        _merge_item(kind, result, item, key, path)
    return _ordered(kind, result, patch, live, path)


def _merge_item(kind: Kind, items: list[Any], patch: Obj, key: str, path: Path) -> None:
    if key not in patch:
        raise _no_merge_key(key, path)
    at = next((i for i, item in enumerate(items) if item.get(key) == patch[key]), None)
    if patch.get(DIRECTIVE) == "delete":
        if at is not None:
            del items[at]
    elif at is None:
        items.append(strategic(kind, {}, patch, path))
    else:
        items[at] = strategic(kind, items[at], patch, path)


def _no_merge_key(key: str, path: Path) -> StatusError:
    return bad_request(f"map: {'.'.join(path)} does not contain declared merge key: {key}")


def _identity(kind: Kind, path: Path, item: Any) -> Any:
    key = merge_key(kind, path)
    return item.get(key) if key is not None and isinstance(item, dict) else item


def _ordered(kind: Kind, items: list[Any], order: list[Any], live: list[Any], path: Path) -> list[Any]:
    """Items in the order of the patch, with those that it does not name put where they were among the others.

    An item that the server did not have comes before those that the patch does not name, as upstream's merge does it.
    """
    wanted = [_identity(kind, path, item) for item in order]
    places = [_identity(kind, path, item) for item in live]
    named = [item for item in items if _identity(kind, path, item) in wanted]
    named.sort(key=lambda item: wanted.index(_identity(kind, path, item)))
    result: list[Any] = []
    for item in (item for item in items if _identity(kind, path, item) not in wanted):
        here = places.index(_identity(kind, path, item))
        while named and not _later(places, _identity(kind, path, named[0]), here):
            result.append(named.pop(0))
        result.append(item)
    return [*result, *named]


def _later(places: list[Any], identity: Any, here: int) -> bool:
    return identity in places and places.index(identity) > here


def _without_directives(patch: Obj) -> Obj:
    return {field: value for field, value in patch.items() if not field.startswith("$")}
