"""The little of kubectl's JSONPath that printer columns of custom kinds use.

Called by `tables`. Fields, quoted fields, indexes, `[*]` and filters on equality; anything else finds nothing.
"""

from __future__ import annotations

import re
from typing import Any

_STEP = re.compile(
    r"""\.?(?:
        \['(?P<quoted>[^']+)'\]
      | \[(?P<index>\d+)\]
      | \[(?P<star>\*)\]
      | \[\?\(@\.(?P<field>[\w.\\/-]+)\s*==\s*(?P<quote>['"])(?P<value>.*?)(?P=quote)\)\]
      | (?P<name>(?:\\.|[^.\[\\])+)
    )""",
    re.VERBOSE,
)


def found(obj: Any, path: str) -> list[Any]:
    """Every value at `path` (such as `.status.conditions[?(@.type=="Ready")].status`)."""
    values = [obj]
    for match in _STEP.finditer(path.strip("{}")):
        values = [value for item in values for value in _stepped(item, match)]
    return values


def _stepped(item: Any, match: re.Match[str]) -> list[Any]:
    if match["star"]:
        return list(item.values()) if isinstance(item, dict) else list(item) if isinstance(item, list) else []
    if match["index"]:
        index = int(match["index"])
        return [item[index]] if isinstance(item, list) and index < len(item) else []
    if match["field"]:
        return [entry for entry in item if _has(entry, match)] if isinstance(item, list) else []
    name = match["quoted"] or match["name"].replace("\\", "")
    return [item[name]] if isinstance(item, dict) and name in item else []


def _has(entry: Any, match: re.Match[str]) -> bool:
    value = found(entry, match["field"])
    return bool(value) and str(value[0]) == match["value"]
