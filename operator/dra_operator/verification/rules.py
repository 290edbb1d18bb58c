"""The rules that allocations have to obey, as data: what each is about, and where the specification has it."""

from __future__ import annotations

from typing import Final, NamedTuple


class Rule(NamedTuple):
    """One rule.

    Attributes:
        spec: ids of the rules of the specification (`alloc`).
        words: what an allocation that obeys it looks like.
    """

    spec: str
    words: str


RULES: Final[dict[str, Rule]] = {
    # what was asked for
    "request": Rule("O-2, R-2", "each result names a request of the claim, or an alternative of one, whose class exists"),
    "alternative": Rule("S-4, O-2", "one alternative of a prioritized list is used"),
    "count": Rule("R-4, R-6", "a request has as many devices as it asks for, and at least one if it asks for all"),
    "all": Rule("R-5", "a request for all devices has each that it selects"),
    "order": Rule("O-1", "results are in the order of the claim's requests"),
    "different": Rule("R-9", "the devices of a request are different ones"),
    "limit": Rule("E-8, S-8", "a claim has at most 32 devices"),
    "gate": Rule("E-7a, E-7b, E-7d, D-7, L-1, S-15, K-12", "what the claim or the device uses is switched on"),
    # the devices
    "device": Rule("P-7, P-13", "the device is in the newest generation of its pool that the node sees"),
    "pool": Rule("P-9, P-11, P-12", "the pool is complete and its slices do not contradict each other"),
    "node": Rule("N-1, L-1", "the device can be used on the node"),
    "node-operations": Rule("O-7", "a node that knows of them takes devices that skip node operations"),
    "selector": Rule("L-1, L-4", "each selector of the class and of the request is true on the device"),
    "taint": Rule("T-2, T-3, T-5", "each taint that keeps allocations off is tolerated by the request"),
    # use
    "in-use": Rule("S-11, A-2, Q-8", "no other claim holds the device"),
    "double": Rule("S-11, S-13", "a dedicated device is given once, and not after the same call looked at it"),
    "admin-twice": Rule("S-12", "admin access looks at devices that the claim does not have already"),
    "shared": Rule("Q-8", "a device of which there are shares is not given as a whole"),
    "counters": Rule("K-3, K-7, K-8", "devices draw no more from the counters of their pool than there is"),
    "groups": Rule("M-3, M-9", "devices on a counter set have a compatibility group in common, or none has any"),
    "capacity": Rule("Q-1, Q-12", "shares of a device together take no more of a capacity than there is"),
    "capacity-name": Rule("Q-1", "the device has each capacity that is asked for"),
    "capacity-policy": Rule("Q-2, Q-3, Q-4b, Q-5, Q-6", "amounts are such as the policy of the capacity allows"),
    "constraint": Rule("C-5, C-6, C-10, C-13, C-16, D-5", "the claim's constraints hold"),
    # what is written
    "admin-access": Rule("O-4", "adminAccess is true for requests for it, and absent otherwise"),
    "tolerations": Rule("O-5", "tolerations are those of the request"),
    "binding-conditions": Rule("O-6", "binding conditions are those of the device"),
    "skip-node-operations": Rule("O-7", "operations that the node skips are those of the device's slice"),
    "share-id": Rule("Q-9, Q-11", "shares have an id, each its own, and dedicated devices have none"),
    "consumed-capacity": Rule("Q-2, Q-9", "what a share takes of each capacity is recorded"),
    "config": Rule("O-8, O-9, O-10", "config is that of the classes and of the claim, with the requests that it is for"),
    "node-selector": Rule("O-14…O-20", "the node selector says where all the devices can be used, and no more"),
}  # fmt: skip
"""By id."""
