"""Which fields the kinds have, and of which types: one table, out of the OpenAPI documents of Kubernetes.

`fields.json` is written by `tests/contract/fieldtable.py`, for the release that the project is tested with.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

TABLE = Path(__file__).with_name("fields.json")

Fields = dict[str, str]


class Table(msgspec.Struct, frozen=True):
    """`fields.json`: struct names by `apiVersion/Kind`, type codes by struct and field, and how lists merge.

    `merges` has the merge key (may be empty) and the patch strategy by `struct.field`.
    """

    kinds: dict[str, str]
    structs: dict[str, Fields]
    merges: dict[str, tuple[str, str]]


@cache
def table() -> Table:
    """The table, read once."""
    return msgspec.json.decode(TABLE.read_bytes(), type=Table)
