"""Server-side apply: what an applied configuration makes of the live object.

Called by `machinery`. Pure; validation, defaults and storing follow as for any other write. Left out against the real thing:
conversion between versions, and nested unions.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from dra_operator.testing.fakeapi.failures import StatusError, bad_request
from dra_operator.testing.fakeapi.fieldsets import ITEM, FieldPath, Leaves, item_element, leaves, removed
from dra_operator.testing.fakeapi.listkeys import Path, apply_keys, is_set
from dra_operator.testing.fakeapi.managers import Manager, Owned, Ownership, ownership, taken, with_ownership
from dra_operator.testing.fakeapi.objects import Obj, copied, meta
from dra_operator.validation.causes import Cause
from dra_operator.validation.checks import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dra_operator.testing.fakeapi.kinds import Kind


def applied(kind: Kind, live: Obj | None, config: Obj, manager: Manager, *, force: bool, time: str) -> Obj:
    """The object, managedFields included, after `manager` has applied `config`.

    Raises:
        StatusError: 400 (managedFields in the configuration), 409 (fields of others would change and `force` is off).
    """
    if meta(config).get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    owners = ownership(live) if live else {}
    wanted = leaves(kind, config)
    if live is not None:
        _settle_conflicts(owners, leaves(kind, live), wanted, manager, force=force)
    result = merged(kind, live or {}, config, ())
    assert isinstance(result, dict)
    previous = owners[manager].paths if manager in owners else set()
    others = {path for other, owned in owners.items() if other != manager for path in owned.paths}
    result = removed(kind, copied(result), previous - wanted.keys(), others | wanted.keys())
    unchanged = manager in owners and previous == wanted.keys() and live is not None
    when = owners[manager].time if unchanged else time
    owners[manager] = Owned(kind.api_version, when, set(wanted))
    return with_ownership(result, owners)


def _settle_conflicts(
    owners: Ownership, live: Leaves, wanted: Leaves, manager: Manager, *, force: bool
) -> None:
    differing = {
        path for path, value in wanted.items() if value is not ITEM and path in live and live[path] != value
    }
    fights = [
        (other, owned, path)
        for other, owned in owners.items()
        if other != manager
        for path in sorted(owned.paths & differing)
    ]
    if fights and not force:
        raise _conflict(fights)
    taken(owners, differing, but=manager)


def _conflict(fights: list[tuple[Manager, Owned, FieldPath]]) -> StatusError:
    causes = [
        Cause(
            _dotted(path),
            "FieldManagerConflict",
            f"conflict with {who.described(owned.api_version)}",
        )
        for who, owned, path in fights
    ]
    if len(causes) == 1:
        text = f"Apply failed with 1 conflict: {causes[0].message}: {causes[0].path}"
    else:
        lines = "\n".join(f"- {cause.path}" for cause in causes)
        text = f"Apply failed with {len(causes)} conflicts: {causes[0].message.replace('conflict', 'conflicts', 1)}:\n{lines}"
    return StatusError(409, "Conflict", text, causes=causes)


def _dotted(path: FieldPath) -> str:
    text = ""
    for element in path:
        tag, _, name = element.partition(":")
        text += f".{name}" if tag == "f" else f"[={name}]" if tag == "v" else _shown_key(json.loads(name))
    return text


def _shown_key(keys: Obj) -> str:
    return f"[{','.join(f'{key}={quoted(value)}' for key, value in keys.items())}]"


def check_entries(kind: Kind, config: Obj) -> None:
    """No two entries of a keyed list have the same keys; keys that are left out have a default, which validation sees.

    Raises:
        StatusError: 500.
    """
    for path, why in _bad_entries(kind, config, ()):
        name = f"{meta(config).get('namespace', '')}/{meta(config).get('name', '')}"
        what = f"({name}; {kind.group}/{kind.version}, Kind={kind.kind})"
        text = f"failed to create typed patch object {what}: .{'.'.join(path)}: {why}"
        raise StatusError(500, "", text)


def _bad_entries(kind: Kind, value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, dict):
        for field, item in value.items():
            yield from _bad_entries(kind, item, (*path, field))
    elif isinstance(value, list):
        if keys := apply_keys(kind, path):
            yield from _bad_keys(value, keys, path)
        for item in value:
            yield from _bad_entries(kind, item, path)


def _bad_keys(items: list[Any], keys: tuple[str, ...], path: Path) -> Iterator[tuple[Path, str]]:
    seen: set[str] = set()
    for item in items:
        if not isinstance(item, dict):
            continue
        element = item_element(item, keys)
        if element in seen:
            yield path, f"duplicate entries for key {_shown_key(json.loads(element.partition(':')[2]))}"
        seen.add(element)


def merged(kind: Kind, live: Any, config: Any, path: Path) -> Any:
    """`config` laid over `live`: maps and keyed lists merge, sets unite, all else replaces."""
    if isinstance(config, dict):
        base = live if isinstance(live, dict) else {}
        changes = {
            field: merged(kind, base.get(field), item, (*path, field))
            for field, item in config.items()
            if item is not None
        }
        return {**base, **changes}
    if isinstance(config, list) and isinstance(live, list):
        return _merged_list(kind, live, config, path)
    return config


def _merged_list(kind: Kind, live: list[Any], config: list[Any], path: Path) -> list[Any]:
    if is_set(kind, path):
        return [*live, *(item for item in config if item not in live)]
    keys = apply_keys(kind, path)
    if not keys:
        return config
    wanted = {item_element(item, keys): item for item in config}
    present = {item_element(item, keys) for item in live}
    kept = [merged(kind, item, wanted.get(item_element(item, keys), {}), path) for item in live]
    return [*kept, *(item for element, item in wanted.items() if element not in present)]
