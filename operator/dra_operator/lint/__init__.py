"""What is wrong with manifests, before they are applied: `texts` reads, `shape` and `refused` tell what the API server refuses, the others what it takes and all the same will not do.

Pure: texts and what is known of a cluster in, findings out. `look` is the way in; `kubectl dra lint` reads and prints. It must not know files nor the cluster,
and never says that something is right which it could not look at: that is a finding of its own.
"""

from . import gates, report
from .findings import CODES, ERROR, UNREADABLE, WARNING, Code, Finding
from .known import Known
from .look import look, taken
from .objects import items
from .texts import documents, unreadable

__all__ = [
    "CODES", "ERROR", "UNREADABLE", "WARNING", "Code", "Finding", "Known", "documents", "gates", "items", "look", "report", "taken", "unreadable",
]  # fmt: skip
