"""Names that the operator writes; the core reads them, too, so that they are made in `model.marks`.

Called by the controllers; no I/O. Source: architecture section 10.
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
    "POLICY_FINALIZER",
    "POLICY_LABEL",
    "digest",
    "has_finalizer",
    "holds_our_allocation",
    "is_marked",
    "pod_owner",
    "rule_name",
]
