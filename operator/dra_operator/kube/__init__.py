"""All I/O with the API server: connection, feeds, writer, discovery, events. Nothing else in the project speaks HTTP to it.

Called by `controllers`, `handlers` and `app`; tests and the demo use it too. It decides nothing about claims or devices, knows
nothing of Kopf, and lets no exception of a client library out: everything that can go wrong is one of `errors.Api*`.
"""

from .api import APPLY, JSON, JSON_PATCH, MERGE, STRATEGIC, Answer, Api
from .credentials import Connection, Credentials, StaticCredentials
from .discovery import Served, discover
from .events import EventWriter, Reference
from .feeds import FeedOptions, Sink, StreamFeed
from .kinds import KINDS, Kind, fed_by
from .listing import Listing, RawMeta, list_all
from .reader import Reader
from .sync import SyncGuard
from .timing import REAL, Timing, timestamp
from .writer import MANAGER, Writer, guard, is_ambiguous, preconditions

__all__ = [  # what the other packages use
    "APPLY",
    "JSON",
    "JSON_PATCH",
    "KINDS",
    "MANAGER",
    "MERGE",
    "REAL",
    "STRATEGIC",
    "Answer",
    "Api",
    "Connection",
    "Credentials",
    "EventWriter",
    "FeedOptions",
    "Kind",
    "Listing",
    "RawMeta",
    "Reader",
    "Reference",
    "Served",
    "Sink",
    "StaticCredentials",
    "StreamFeed",
    "SyncGuard",
    "Timing",
    "Writer",
    "discover",
    "fed_by",
    "guard",
    "is_ambiguous",
    "list_all",
    "preconditions",
    "timestamp",
]
