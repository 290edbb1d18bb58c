"""Every reason that an event or a condition of ours may have: the one table, which docs/runbook.md explains row by row.

Reasons are stable: people search for them and tools match them. Tests hold the table to the code, the runbook and the scenarios. Severity
follows from the reason, so that nobody has to say it twice. Knows no texts.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

Severity = Literal["Normal", "Warning"]

NORMAL: Final = "Normal"
WARNING: Final = "Warning"

POD: Final = "Pod"
CLAIM: Final = "ResourceClaim"
GROUP: Final = "PodGroup"
POLICY: Final = "AllocationPolicy"
RULE: Final = "DeviceTaintRule"
SLICE: Final = "ResourceSlice"
NODE: Final = "Node"
ANY: Final = "any"
"""Objects of every kind that the operator reads."""


class Reason(NamedTuple):
    """What kind of event it is, and on which kinds of objects it is said.

    Attributes:
        severity: `Warning` asks somebody to do something.
        kinds: `ANY` stands for all that the operator reads.
    """

    severity: Severity
    kinds: tuple[str, ...] = (POD,)


EVENTS: Final = {
    "AllocationFailed": Reason(WARNING),
    "Allocated": Reason(NORMAL),
    "Released": Reason(NORMAL),
    "Scheduled": Reason(NORMAL),
    "InvalidClaim": Reason(WARNING, (POD, CLAIM)),
    "InvalidPod": Reason(WARNING),
    "FeatureUnsupported": Reason(WARNING, (POD, CLAIM)),
    "SelectorFailed": Reason(WARNING, (POD, CLAIM)),
    "SelectorNotEvaluated": Reason(WARNING, (POD, CLAIM)),
    "SelectorsCostly": Reason(WARNING, (POD, CLAIM)),
    "MixedClaim": Reason(WARNING, (POD, CLAIM)),
    "AdminAccessNotAllowed": Reason(WARNING, (POD, CLAIM)),
    "DeviceClassMissing": Reason(WARNING, (POD, CLAIM)),
    "ClaimNotReady": Reason(WARNING),
    "ClaimMissing": Reason(WARNING),
    "TemplateMissing": Reason(WARNING),
    "ClaimNotCreated": Reason(WARNING),
    "FailedResourceClaimCreation": Reason(WARNING, (POD, GROUP)),
    "ClaimGeneratedTwice": Reason(WARNING),
    "ClaimDutyNeglected": Reason(WARNING, (POD, CLAIM)),
    "VolumeClaimUnbound": Reason(WARNING),
    "ClaimNotOurs": Reason(WARNING, (POD, CLAIM)),
    "VolumeClaimMissing": Reason(WARNING),
    "VolumeClaimNotReady": Reason(WARNING),
    "OtherGates": Reason(NORMAL),
    "UnknownGate": Reason(WARNING),
    "NotGated": Reason(WARNING),
    "ExtendedResource": Reason(WARNING),
    "UngatedConsumer": Reason(WARNING),
    "GatedConsumer": Reason(WARNING),
    "TooManyConsumers": Reason(WARNING),
    "Settling": Reason(NORMAL),
    "PolicyNotEnforced": Reason(WARNING),
    "WriteRefused": Reason(WARNING),
    "RequestUnknown": Reason(WARNING),
    "BindingConditionsPending": Reason(NORMAL),
    "DeviceBindingFailed": Reason(WARNING),
    "DeviceBindingTimeout": Reason(WARNING),
    "AllocatedElsewhere": Reason(WARNING),
    "NobodyAllocates": Reason(WARNING),
    "NodeGone": Reason(WARNING),
    "NodeUnknown": Reason(WARNING),
    "PodRefused": Reason(WARNING),
    "PodReplaced": Reason(NORMAL),
    "AllocatedPastPolicy": Reason(WARNING, (CLAIM,)),
    "ForeignAllocator": Reason(WARNING, (CLAIM,)),
    "DeviceHeldTwice": Reason(WARNING, (POD, CLAIM)),
    "DevicesUnpublished": Reason(WARNING, (CLAIM,)),
    "AllocationUnused": Reason(WARNING, (CLAIM,)),
    "ConsumerGone": Reason(WARNING, (CLAIM,)),
    "MarkLeft": Reason(WARNING, (CLAIM,)),
    "AttemptLeft": Reason(WARNING),
    "GateUseless": Reason(WARNING),
    "DeletionStuck": Reason(WARNING, (CLAIM, POLICY)),
    "PoolStuck": Reason(WARNING, (SLICE,)),
    "SlicesMissing": Reason(WARNING, (NODE,)),
    "RuleStray": Reason(WARNING, (RULE,)),
    "RulesWrong": Reason(WARNING, (POLICY,)),
    "PolicyUnguarded": Reason(WARNING, (POLICY,)),
    "Unreadable": Reason(WARNING, (ANY,)),
    "Mended": Reason(NORMAL, (POLICY,)),
    "NoPools": Reason(WARNING, (POLICY,)),
    "PoolsUnknown": Reason(WARNING, (POLICY,)),
    "PoolsShared": Reason(WARNING, (POLICY,)),
    "PoolIncomplete": Reason(WARNING, (POLICY,)),
    "PoolInvalid": Reason(WARNING, (POLICY,)),
    "CountsDiffer": Reason(WARNING, (POLICY,)),
    "RulesRefused": Reason(WARNING, (POLICY,)),
    "TaintRulesNotServed": Reason(WARNING, (POLICY,)),
}
"""Reasons of events."""

SILENT: Final = frozenset({"ClaimInFlight", "BoundConsumer"})
"""Reasons for which pods wait without an event: the ordinary course of things, over in a moment."""

CONDITIONS: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "Ready": {
        "True": ("Allocating", "NotEnforced"),
        "False": (
            "Settling",
            "NoPools",
            "OwnedByOtherPolicy",
            "PoolIncomplete",
            "PoolInvalid",
            "RulesRefused",
            "Removing",
        ),
    },
    "Enforced": {
        "True": ("RulesInPlace",),
        "False": ("TaintRulesNotServed", "RulesRefused", "RulesMissing"),
    },
    "Settling": {"True": ("RulesAreYoung",), "False": ("Settled", "RulesRefused")},
    "PoolsFound": {"True": ("AllFound",), "False": ("NoPools", "PoolsUnknown")},
    "PoolsUsable": {"True": ("Complete", "CountsDiffer"), "False": ("PoolIncomplete", "PoolInvalid")},
    "Overlapping": {"True": ("PoolsShared",), "False": ("NoneShared",)},
}
"""Conditions of an AllocationPolicy: type, status, reasons."""


def severity_of(reason: str) -> Severity:
    """Normal or Warning.

    Raises:
        KeyError: the reason is not in the table.
    """
    return EVENTS[reason].severity
