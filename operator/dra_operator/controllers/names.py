"""Names that the operator writes, and the pure functions that make them; those that the core reads, too, are in `model.marks`.

Called by the controllers; no I/O. Sources: architecture section 10, cp C-26, C-27.
"""

from __future__ import annotations

from dra_operator.model.marks import (
    EPOCH,
    GENERATED,
    MARK,
    POLICY_FINALIZER,
    POLICY_LABEL,
    digest,
    has_finalizer,
    holds_our_allocation,
    is_marked,
    pod_owner,
    rule_name,
)

__all__ = [
    "EPOCH",
    "GENERATED",
    "MARK",
    "MAX_GENERATE_NAME",
    "POLICY_FINALIZER",
    "POLICY_LABEL",
    "digest",
    "generate_name",
    "has_finalizer",
    "holds_our_allocation",
    "is_marked",
    "pod_owner",
    "rule_name",
]

MAX_GENERATE_NAME = 57
"""Longest generateName that keeps room for the server's five random characters (cp C-27)."""


def generate_name(pod_name: str, entry_name: str) -> str:
    """The generateName of a pod's claim (cp C-27): shortened in proportion, without the last hyphen then."""
    base = f"{pod_name}-{entry_name}-"
    if len(base) <= MAX_GENERATE_NAME:
        return base
    pod_part = pod_name[: len(pod_name) * MAX_GENERATE_NAME // len(base)]
    entry_part = entry_name[: len(entry_name) * MAX_GENERATE_NAME // len(base)]
    return f"{pod_part}-{entry_part}"
