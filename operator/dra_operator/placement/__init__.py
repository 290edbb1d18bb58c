"""Which pods, claims and requests are ours, and on which node a pod's claims can be had together.

The allocation controller makes one `Placer` and asks it, pod by pod: `decide(pod)`, or `classify(pod)` and then
`plan(pod, allocate)`. Answers are the frozen values of outcomes.py. Pure: reads the cluster model, writes nothing, and a dropped
plan needs no undo.
"""

from .admission import DEFAULT_SCHEDULER, Admission, Way, admit
from .bound import RUNNING
from .checks import NodeChecks
from .entries import CLAIM_MISSING, unknown_requests
from .faults import selector_fault
from .findings import COMBINATION
from .gates import UNKNOWN_GATE, unknown_gate_text, unknown_gates
from .intake import MAX_CONSUMERS
from .options import DEFAULT_SELECTOR_WORK, PlacementOptions
from .outcomes import (
    Allocate,
    Cause,
    ClaimDecision,
    Classification,
    Decision,
    DeviceTally,
    Effort,
    Ignore,
    NodeFinding,
    Offer,
    Outcome,
    Plan,
    Refuse,
    Release,
    Unplaced,
    Verdict,
    Wait,
)
from .plan import Placer
from .rank import rank
from .room import NodeScore
from .signature import signature
from .vocabulary import IN_USE, why_of

__all__ = [
    "CLAIM_MISSING",
    "COMBINATION",
    "DEFAULT_SCHEDULER",
    "DEFAULT_SELECTOR_WORK",
    "IN_USE",
    "MAX_CONSUMERS",
    "RUNNING",
    "UNKNOWN_GATE",
    "Admission",
    "Allocate",
    "Cause",
    "ClaimDecision",
    "Classification",
    "Decision",
    "DeviceTally",
    "Effort",
    "Ignore",
    "NodeChecks",
    "NodeFinding",
    "NodeScore",
    "Offer",
    "Outcome",
    "PlacementOptions",
    "Placer",
    "Plan",
    "Refuse",
    "Release",
    "Unplaced",
    "Verdict",
    "Wait",
    "Way",
    "admit",
    "rank",
    "selector_fault",
    "signature",
    "unknown_gate_text",
    "unknown_gates",
    "unknown_requests",
    "why_of",
]
