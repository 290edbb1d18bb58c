"""What devices there are, in which state, and who holds them: rows for tables, maps and counts.

`survey` looks at a model of a cluster as it is at this moment: what is published and what is written in claims, never at decisions in flight. Pure; it
decides nothing, and knows nothing of how rows are shown. Why a request cannot have a device is `explain`'s business.
"""

from .claims import claim_rows
from .devices import attribute_text
from .known import Known
from .pools import pool_rows, survey
from .rows import (
    BLOCKED,
    FREE,
    IN_USE,
    SHARED,
    STATES,
    TAINTED,
    UNUSABLE,
    ClaimRow,
    DeviceRow,
    Holder,
    Partition,
    PoolRow,
    Shares,
    Survey,
)

__all__ = [
    "BLOCKED",
    "FREE",
    "IN_USE",
    "SHARED",
    "STATES",
    "TAINTED",
    "UNUSABLE",
    "ClaimRow",
    "DeviceRow",
    "Holder",
    "Known",
    "Partition",
    "PoolRow",
    "Shares",
    "Survey",
    "attribute_text",
    "claim_rows",
    "pool_rows",
    "survey",
]
