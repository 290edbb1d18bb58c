"""The kinds of drift: what may be left over, lost or given twice, whatever failed. The one table, and the values that `drift` answers with.

The name of a kind is the reason of its events and the value of the label `finding`; docs/runbook.md explains each. Knows no cluster.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dra_operator.features import DEFAULT_1_37, Features

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from dra_operator.model import Pod, PoolId

CLAIM: Final = "ResourceClaim"
POD: Final = "Pod"
POOL: Final = "Pool"
"""No kind of the API: what a pool of slices is looked at under, by `driver/name`."""
SLICE: Final = "ResourceSlice"
NODE: Final = "Node"
RULE: Final = "DeviceTaintRule"
POLICY: Final = "AllocationPolicy"


class Subject(NamedTuple):
    """What is looked at: a kind, and `namespace/name`, a bare name, or a pool's `driver/name`."""

    kind: str
    key: str


@dataclass(frozen=True, slots=True)
class Kind:
    """One row.

    Attributes:
        name: CamelCase.
        means: what it is, in a sentence without its subject.
        repair: what the operator does about it itself, once it has looked so for a while; empty if it only reports.
        remedy: what people can do, for the end of a sentence.
        needs: kinds of objects without all of which it cannot be told.
        rules: ids of the specification.
        at_once: whether it is told without waiting whether it lasts.
    """

    name: str
    means: str
    repair: str
    remedy: str
    needs: tuple[str, ...]
    rules: tuple[str, ...] = ()
    at_once: bool = False


_ROWS: Final = (
    Kind(
        "AllocationUnused",
        "a claim is allocated by dra-operator, reserved for nobody, and no living pod names it",
        "takes the allocation back",
        "start a pod that uses the claim, or see in the log why taking it back fails",
        (CLAIM, POD),
        ("I-43", "I-45"),
    ),
    Kind(
        "ConsumerGone",
        "a claim is reserved for a pod that is gone, done or another one by now",
        "with --generate-claims=always, removes the reservation",
        "see whether kube-controller-manager runs with its resourceclaim-controller; it removes such entries within seconds",
        (CLAIM, POD),
        ("C-61", "I-40"),
    ),
    Kind(
        "MarkLeft",
        "a claim bears dra-operator's mark, and mostly its finalizer, and is not allocated",
        "takes mark and finalizer off",
        "see in the log why that fails",
        (CLAIM,),
        ("I-42", "I-52"),
    ),
    Kind(
        "AttemptLeft",
        "a pod still waits at a gate although its claims are allocated and reserved for it, and no attempt goes on",
        "finishes the attempt, or takes it back",
        "see in the log why that fails, or recreate the pod",
        (CLAIM, POD),
        ("I-51", "I-52"),
    ),
    Kind(
        "DevicesUnpublished",
        "a claim holds devices that no ResourceSlice publishes any more",
        "takes back its own allocation while the pod still waits; the pod gets other devices",
        "recreate the pod, or have the driver publish the devices again",
        (CLAIM, SLICE),
        ("S-14", "I-52"),
    ),
    Kind(
        "DeviceHeldTwice",
        "a device is allocated to several claims",
        "takes back its own allocation while the pod still waits; never a running pod's",
        "delete the pods of all but one of them, and find out who else allocates from the pool",
        (CLAIM,),
        ("I-13", "V-54"),
        at_once=True,
    ),
    Kind(
        "DeletionStuck",
        "a claim or a policy has been in deletion for long",
        "",
        "end what holds it",
        (),
        ("C-63", "C-69"),
        at_once=True,
    ),
    Kind(
        "Unreadable",
        "a claim cannot be read; its devices count as taken",
        "",
        "correct the path that is named, or delete and create the claim anew",
        (CLAIM,),
        ("A-3",),
        at_once=True,
    ),
    Kind(
        "PoolStuck",
        "a pool has been incomplete or invalid for long: nothing is allocated from it",
        "",
        "see the driver: it has to publish the pool anew",
        (SLICE,),
        ("P-8", "P-11", "P-12"),
    ),
    Kind(
        "SlicesMissing",
        "a node is there, and a driver that published its devices publishes none of it any more",
        "",
        "restart the driver's pod on the node; where it was taken off on purpose, this ends with the operator's next start",
        (SLICE, NODE),
        ("P-2",),
    ),
    Kind(
        "GateUseless",
        "a pod waits at dra-operator's gate and has nothing to wait for",
        "takes the gate off",
        "see in the log why that fails; see whether dra-operator runs",
        (POD, CLAIM, SLICE, POLICY, "DeviceClass"),
        ("I-20",),
    ),
    Kind(
        "RuleStray",
        "a DeviceTaintRule of dra-operator belongs to no AllocationPolicy: it keeps kube-scheduler off the pools for nothing",
        "deletes it",
        "delete it",
        (RULE, POLICY),
        ("U-1",),
    ),
    Kind(
        "RulesWrong",
        "a DeviceTaintRule of an AllocationPolicy is missing or says something else: nothing keeps kube-scheduler off the pools",
        "writes it anew",
        "see the conditions of the policy; mostly a right is missing",
        (RULE, POLICY),
        ("U-1",),
    ),
    Kind(
        "PolicyUnguarded",
        "an AllocationPolicy lacks dra-operator's finalizer, so that it would go before its taint rules do",
        "puts it back",
        "see whether dra-operator runs and may patch the policy",
        (POLICY,),
    ),
)

KINDS: Final[Mapping[str, Kind]] = {row.name: row for row in _ROWS}
"""Kind by its name, in the order in which findings are listed."""


def nothing_works(_: str) -> bool:
    """No attempt works on any pod."""
    return False


def always_waits(_: Pod) -> bool:
    """Every pod at the gate has something to wait for."""
    return False


@dataclass(frozen=True, slots=True)
class Facts:
    """What the cluster model does not tell.

    Attributes:
        now: wall time, to compare with times that the API server wrote.
        deletion_seconds: how long an object may be in deletion.
        works_on: whether an attempt for the pod of that key goes on, or waits for something that it knows.
        is_idle: whether a pod at our gate has nothing to wait for.
        expected: pools that were published, with the node that their slices named.
        rules_served: whether the API server has DeviceTaintRules.
        unseen: kinds of objects that could not be read: what needs them is not looked for.
        features: decide which slices count.
    """

    now: datetime
    deletion_seconds: float = 300.0
    works_on: Callable[[str], bool] = nothing_works
    is_idle: Callable[[Pod], bool] = always_waits
    expected: Mapping[PoolId, str] = field(default_factory=dict)
    rules_served: bool = True
    unseen: frozenset[str] = frozenset()
    features: Features = DEFAULT_1_37


@dataclass(frozen=True, slots=True)
class Finding:
    """One object with one thing wrong.

    Attributes:
        finding: name of the kind.
        kind, namespace, name, uid: of the object that it is about.
        text: what exactly, beginning with the path in the object; ends without a full stop.
        others: further objects concerned, as `Kind namespace/name`.
    """

    finding: str
    kind: str
    namespace: str
    name: str
    uid: str
    text: str
    others: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """`namespace/name`, or the bare name."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def message(self) -> str:
        """What is wrong and what to do, for people."""
        return f"{self.text}. {_capital(KINDS[self.finding].remedy)}"

    def to_object(self) -> dict[str, Any]:
        """Its JSON form."""
        row = KINDS[self.finding]
        about = {"kind": self.kind, "namespace": self.namespace, "name": self.name, "uid": self.uid}
        return {
            "finding": self.finding,
            "object": about,
            "text": self.text,
            "others": list(self.others),
            "remedy": row.remedy,
            "repair": row.repair,
        }


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
