"""What the operators' processes leave behind: their memory as Linux tells it, and tracebacks in their logs. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORD = re.compile(r"^(?=\d{4}-\d\d-\d\dT)", re.MULTILINE)
"""Where a record of the log begins."""

KNOWN = ("task kopf has ended", "410")
"""Kopf ends at a 410 in the place of a watch, which the process survives no more than any end of a task, and starts anew."""


def resident(status: str) -> float | None:
    """MiB in memory, out of /proc/PID/status; None for a process that is ending, and has none any more."""
    found = re.search(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE)
    return int(found[1]) / 1024 if found else None


def tracebacks(log: str) -> Iterator[str]:
    """Records with a traceback, but for what is `KNOWN`."""
    for record in RECORD.split(log):
        if "Traceback" in record and not all(word in record for word in KNOWN):
            yield record
