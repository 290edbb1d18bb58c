"""Every reason code of `kubectl dra explain`: the one table, which docs/reasons.md shows row by row.

Codes are stable: tools match them. A code says why a device, a node or a pod came to nothing, or which change is proposed. Where the operator tells an
event for the same thing, its reason is used as it is (`reasons.EVENTS`, docs/runbook.md). Knows no cluster.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from dra_operator.allocator import Why
from dra_operator.placement import Cause


class Code(NamedTuple):
    """What a code means, and what to do about it."""

    meaning: str
    remedy: str


DEVICES: Final = {
    "ClassSelector": Code(
        "a selector of the DeviceClass does not match the device",
        "name another class, or have an admin change the class",
    ),
    "RequestSelector": Code(
        "a selector of the request does not match the device; the clause that fails is named, with what the device has instead",
        "correct or drop the clause in the template or manifest, and create claim and pod anew",
    ),
    "SelectorError": Code(
        "a selector fails on the device", "correct the selector, or guard the name that the device lacks"
    ),
    "InUse": Code("a claim holds the device", "wait until its pods end, or end them"),
    "SharedOut": Code(
        "claims hold shares of the device, which is not shared any more",
        "wait until the pods with the shares end, or end them",
    ),
    "Tainted": Code(
        "the device has a taint that the request does not tolerate",
        "tolerate the taint in the request, or have whoever put it on the device take it off",
    ),
    "Counters": Code(
        "a counter that the device shares with others has too little left",
        "free devices that draw on the same counter, or ask for smaller ones",
    ),
    "Groups": Code(
        "the device does not go with others in use on the same counter set",
        "free the others, or use devices of another counter set",
    ),
    "Capacity": Code(
        "the device has too little left of a capacity, or its request policy does not allow the amount",
        "ask for less, or free shares of the device",
    ),
    "OtherNode": Code("the device is for other nodes", "use devices of the node that the pod runs on"),
    "PoolIncomplete": Code(
        "the driver has not published all slices of the pool",
        "wait for the driver; see its log if that lasts",
    ),
    "PoolInvalid": Code("the slices of the pool contradict each other", "have the driver publish them anew"),
    "GateOff": Code("the device needs a feature that is switched off", "have an admin switch the feature on"),
    "NotBuilt": Code(
        "the device is published in a form that this release does not allocate",
        "use devices without that form",
    ),
    "NodeFeature": Code(
        "the node does not declare a feature that the device needs",
        "upgrade the node's kubelet, or use another node",
    ),
    "Constraint": Code(
        "the device does not go with another one that a constraint joins it to",
        "loosen the constraint, or add devices that go together",
    ),
    "Taken": Code("another request of the same pod takes the device", "ask for fewer devices in one pod"),
    "Avoided": Code("binding the device failed lately for this claim", "look at the device's driver"),
    "TooMany": Code("the claim would have more devices than one can hold", "split the claim"),
    "NoMembers": Code("all devices are asked for, and there is none", "check class and selectors"),
}
"""Why one device does not serve a request."""

BY_WHY: Final = {
    Why.CLASS_SELECTOR: "ClassSelector",
    Why.REQUEST_SELECTOR: "RequestSelector",
    Why.IN_USE: "InUse",
    Why.TAKEN: "Taken",
    Why.NODE: "OtherNode",
    Why.TAINT: "Tainted",
    Why.CONSTRAINT: "Constraint",
    Why.CAPACITY: "Capacity",
    Why.COUNTERS: "Counters",
    Why.GROUPS: "Groups",
    Why.NODE_FEATURE: "NodeFeature",
    Why.NOT_BUILT: "NotBuilt",
    Why.AVOIDED: "Avoided",
    Why.GATE_OFF: "GateOff",
    Why.POOL_INCOMPLETE: "PoolIncomplete",
    Why.POOL_INVALID: "PoolInvalid",
    Why.NO_MEMBERS: "NoMembers",
    Why.TOO_MANY: "TooMany",
}
"""Reasons of the search."""

NODES: Final = {
    "NodeState": Code("the node is cordoned or not ready", "bring the node back"),
    "NodeUnwanted": Code(
        "taints of the node, or the pod's node selector or affinity, keep the two apart",
        "change the pod's tolerations, node selector or affinity",
    ),
    "KubeletFeature": Code(
        "the node does not declare a feature that the pod uses", "leave the feature out, or upgrade the node"
    ),
    "Neighbours": Code(
        "affinity or spread over other pods keeps the pod off the node",
        "loosen the affinity or spread constraints",
    ),
    "Volumes": Code(
        "the pod's volumes are elsewhere", "give it other volumes, or add devices where they are"
    ),
    "Room": Code(
        "the node has too little cpu, memory, other resources or ports left",
        "lower the pod's requests, or add nodes",
    ),
    "Budget": Code(
        "what the pod states for itself as a whole is too little with its devices",
        "raise spec.resources of the pod",
    ),
    "Unreferenced": Code(
        "no container refers to a claim, and one has to", "name the claim in resources.claims of a container"
    ),
    "ClaimElsewhere": Code(
        "another claim of the pod holds devices of another node",
        "end the pods that use that claim, or use another one",
    ),
    "NoDevices": Code(
        "no device matches the request",
        "check class and selectors against the published devices, and that the driver runs",
    ),
    "TooFewDevices": Code(
        "no node has as many matching devices as the request asks for",
        "ask for fewer, or add nodes with more",
    ),
    "FeatureMissing": Code(
        "the devices need a feature that this release does not allocate", "use devices without it"
    ),
    "Combination": Code(
        "enough devices are free, but no set of them meets all requests and constraints",
        "loosen constraints or selectors, or add devices that go together",
    ),
    "Fault": Code("pools or selectors of the node cannot be judged", "correct what the message names"),
    "Limit": Code(
        "the search stopped at its limit, so that a solution may exist",
        "make the claim easier: fewer devices, narrower selectors, fewer constraints",
    ),
}
"""Why a node does not serve a pod."""

BY_CAUSE: Final = {
    Cause.STATE: "NodeState",
    Cause.POD: "NodeUnwanted",
    Cause.KUBELET: "KubeletFeature",
    Cause.NEIGHBOURS: "Neighbours",
    Cause.VOLUMES: "Volumes",
    Cause.ROOM: "Room",
    Cause.BUDGET: "Budget",
    Cause.UNREFERENCED: "Unreferenced",
    Cause.CLAIM: "ClaimElsewhere",
    Cause.ABSENT: "NoDevices",
    Cause.DEVICES: "TooFewDevices",
    Cause.FEATURE: "FeatureMissing",
    Cause.COMBINATION: "Combination",
    Cause.FAULT: "Fault",
    Cause.LIMIT: "Limit",
}
"""Causes of placement."""

STATES: Final = {
    "CanBeAllocated": Code(
        "there are devices for it now, as a search has just found; nothing is reserved",
        "nothing: whoever allocates will; see the events of the pod if that takes long",
    ),
    "Allocated": Code("all claims of the pod hold devices", "nothing on the side of devices"),
    "Bound": Code("the pod has a node, and its claims hold devices", "nothing on the side of devices"),
    "Done": Code("the pod is over", "nothing"),
    "NoClaims": Code("the pod asks for no claims", "nothing on the side of devices"),
    "ClaimInFlight": Code("a decision for the claim is being written", "wait a moment"),
    "ClaimDeleted": Code("the claim is being deleted", "create it anew under its name, or under another one"),
}
"""Where nothing is wrong with devices, or nobody has to do anything."""

CHANGES: Final = {
    "CompletePool": Code(
        "would work once the pool is complete, with what is published already", "wait for the driver"
    ),
    "Tolerate": Code(
        "would work if the request tolerated this taint", "add the toleration, or have the taint taken off"
    ),
    "FreeClaim": Code("would work if this claim were freed", "wait for its pods, or end them"),
    "AskForLess": Code("would work with so much of a capacity", "ask for that much"),
    "DropClause": Code("would work without this clause of a selector", "drop or correct the clause"),
    "DropConstraint": Code("would work without this constraint", "drop or loosen the constraint"),
    "FewerDevices": Code("would work with so many devices", "ask for that many"),
    "AddDevices": Code("would work with so many more devices on one node", "add them, or a node with enough"),
}
"""Changes that are proposed, the cheapest first; each was tried by running the allocator on the changed input."""

CODES: Final = {**DEVICES, **NODES, **STATES, **CHANGES}
"""All."""
