"""The structured allocator: from claims and what one node sees to devices, or to reasons.

A pure function of its inputs: no I/O, no clock, no randomness; it cannot write, and a dropped answer needs no undo. Called by placement and
explain. `allocate` is the entry, `state` what goes in, `reporter` what comes out besides the answer.
"""

from .allocate import Allocator
from .matcher import bound_driver, request_matches
from .nodes import node_matches, selector_matches
from .pools import pool_problem
from .reporter import SILENT, Collector, Rejection, Reporter, RequestRef, Why
from .state import AllocatedState, Inputs, Options, SharedDeviceId, SliceList, SliceSource
from .taints import tolerates, untolerated

__all__ = [
    "SILENT",
    "AllocatedState",
    "Allocator",
    "Collector",
    "Inputs",
    "Options",
    "Rejection",
    "Reporter",
    "RequestRef",
    "SharedDeviceId",
    "SliceList",
    "SliceSource",
    "Why",
    "bound_driver",
    "node_matches",
    "pool_problem",
    "request_matches",
    "selector_matches",
    "tolerates",
    "untolerated",
]
