"""The structured allocator: from claims and what one node sees to devices, or to reasons.

A pure function of its inputs: no I/O, no clock, no randomness; it cannot write, and a dropped answer needs no undo. Called by placement and
explain. `allocate` is the entry, `state` what goes in, `reporter` what comes out besides the answer.
"""

from .allocate import Allocator
from .counters import Draws, PoolCounters
from .groups import PoolGroups
from .matcher import ClaimSpot, bound_driver, matcher_of, request_matches
from .nodes import node_matches, selector_matches
from .pools import Candidate, Pool, pool_problem, view_of, whole_pool
from .reporter import SILENT, Collector, Rejection, Reporter, RequestRef, Why
from .state import AllocatedState, Inputs, Options, SliceList, SliceSource
from .taints import taint_text, tolerates, untolerated
from .unbuilt import device_needs, gate_of

__all__ = [
    "SILENT",
    "AllocatedState",
    "Allocator",
    "Candidate",
    "ClaimSpot",
    "Collector",
    "Draws",
    "Inputs",
    "Options",
    "Pool",
    "PoolCounters",
    "PoolGroups",
    "Rejection",
    "Reporter",
    "RequestRef",
    "SliceList",
    "SliceSource",
    "Why",
    "bound_driver",
    "device_needs",
    "gate_of",
    "matcher_of",
    "node_matches",
    "pool_problem",
    "request_matches",
    "selector_matches",
    "taint_text",
    "tolerates",
    "untolerated",
    "view_of",
    "whole_pool",
]
