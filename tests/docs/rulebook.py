"""The rules of the claim controller (C-) and of standing beside the stock control plane (I-), a line each in our own words.

Ids are those that tests and comments name. A rule that no test on a real control plane can show has the reason here. Data only.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Rule(NamedTuple):
    """One rule.

    Attributes:
        text: what holds.
        unseen: why nobody can see it from outside on a real control plane; empty where an end-to-end test has to show it.
    """

    text: str
    unseen: str = ""


RACE: Final = (
    "a race between two writes that cannot be brought about at a real server; scenarios bring it about"
)
SERVER: Final = "kube-apiserver's own rule; the contract suite holds the embedded server to it"
INSIDE: Final = "a property of the code, without a trace in objects"
ADVICE: Final = "a choice among ways to stand beside kube-scheduler; the operator's is shown under the rules that follow from it"

RULES: Final[dict[str, Rule]] = {
    "C-1": Rule("pods, claims, templates and PodGroups are followed"),
    "C-2": Rule("a pod with a special claim for extended resources counts as one with claims"),
    "C-3": Rule("claims are made whatever the pod's gates, scheduler name or namespace"),
    "C-4": Rule("a pod that ended, or went, has its claims looked at"),
    "C-5": Rule("an entry for which nothing can be done does not keep later entries from their claims"),
    "C-6": Rule("a claim that comes or changes has its pods looked at"),
    "C-7": Rule("a template that comes late is noticed at once"),
    "C-8": Rule("failures are tried again, without an end"),
    "C-10": Rule("the claim of an entry: by name, by the pod's status, or none needed"),
    "C-11": Rule("a generated claim must be the pod's own, or its PodGroup's"),
    "C-12": Rule("reserved for the pod: its uid, or its PodGroup's name, is among the consumers"),
    "C-13": Rule("any pod may be reserved for, up to 256"),
    "C-20": Rule("entries are handled in order, then recorded, then reserved; a PodGroup that is missing is waited for"),
    "C-21": Rule("a recorded claim that is missing or another's is made anew"),
    "C-22": Rule("a claim that exists for the entry is used, and none is made"),
    "C-23": Rule("the search sees claims that were just made, although no feed has told of them", RACE),
    "C-24": Rule("the template counts when the claim is made, and never again"),
    "C-25": Rule("templates that need a feature that is off are refused", "the gates are locked on in Kubernetes 1.37"),
    "C-26": Rule("name, labels, annotations, owner and spec of a generated claim"),
    "C-27": Rule("long names are shortened in proportion"),
    "C-28": Rule("a name that is taken counts as a failure and is tried again", "names end in five random characters: they never collide on demand"),
    "C-29": Rule("a quota's or webhook's refusal is told and tried again"),
    "C-40": Rule("names of claims are recorded in the pod's status by server-side apply"),
    "C-41": Rule("every record holds all entries"),
    "C-42": Rule("only entries that name templates are recorded"),
    "C-43": Rule("an entry recorded without a name needs no claim, for everybody"),
    "C-44": Rule("a claim of the PodGroup is recorded in its pods, too"),
    "C-45": Rule("the record must fit the pod's spec", SERVER),
    "C-46": Rule("the record of a special claim stays in the pod"),
    "C-50": Rule("a bound pod is reserved for in its claims that are allocated"),
    "C-51": Rule("the claim controller never allocates"),
    "C-52": Rule("it compares no nodes"),
    "C-53": Rule("it reserves for no pod without a node"),
    "C-60": Rule("a claim that cannot be made is told on the pod or PodGroup"),
    "C-61": Rule("consumers that are gone, replaced or done are dropped; PodGroups only when they are gone"),
    "C-62": Rule("with the last consumer the allocation goes, and then the finalizer"),
    "C-63": Rule("a claim deleted while allocated and unused is freed and goes"),
    "C-64": Rule("an unused allocation of somebody else stays"),
    "C-65": Rule("the generated claim of a pod that is done or replaced is deleted"),
    "C-66": Rule("claims of PodGroups are left to the garbage collector"),
    "C-67": Rule("the whole end of a generated claim, in whatever order"),
    "C-68": Rule("a running pod that is being deleted keeps its reservations"),
    "C-69": Rule("at its start the controller looks at every claim"),
    "C-70": Rule("an entry is the PodGroup's if all its fields are"),
    "C-71": Rule("such a claim is reserved for the PodGroup"),
    "C-72": Rule("the PodGroup's claim is made for the group, and recorded there"),
    "C-73": Rule("a PodGroup that changes has its pods looked at"),
    "C-74": Rule("without PodGroups, their pods get no claims in their stead", "kube-apiserver drops spec.schedulingGroup while the gate is off"),
    "C-75": Rule("a reservation for a PodGroup lasts as long as the group"),
    "C-80": Rule("a crash between creation and record makes no second claim"),
    "C-81": Rule("nor does a record that failed, with a stale model", RACE),
    "C-82": Rule("a claim deleted by hand is made anew; kube-controller-manager 1.37 does not"),
    "C-83": Rule("a pod made anew under its name gets a claim of its own"),
    "C-84": Rule("a consumer that the pods' feed has not told of yet is kept", RACE),
    "C-85": Rule("a claim that changed in between is read again", RACE),
    "C-86": Rule("of two consumers only the one that is done goes"),
    "C-87": Rule("consumers of unknown kinds stay, and the allocation with them"),
    "C-88": Rule("pods that went while nobody looked are dropped at the next start"),
    "I-1": Rule("nothing but metadata says whose an allocation is; metadata stays everybody's"),
    "I-2": Rule("kube-scheduler leaves a claim alone that is reserved for the pod"),
    "I-3": Rule("it reserves an allocation of ours for its own pods"),
    "I-4": Rule("the 257th pod waits at the gate with a reason"),
    "I-5": Rule("a claim that is being deleted holds its pods up"),
    "I-6": Rule("a device of any allocated claim is taken"),
    "I-7": Rule("binding conditions are waited for before the pod goes on"),
    "I-8": Rule("results name the sub-request of a prioritized list"),
    "I-10": Rule("kube-scheduler takes an allocation away whose nodes the pod may not use"),
    "I-11": Rule("a reservation alone does not protect from that", "follows from I-10; the pin protects (I-15)"),
    "I-12": Rule("after that both would allocate, in turns", "the pin prevents it (I-15)"),
    "I-13": Rule("one allocator a pool: the server checks no devices"),
    "I-14": Rule("preemption frees no devices", "kube-scheduler's own; its gate is off"),
    "I-15": Rule("the pin goes with the gate, and kube-scheduler never takes the devices of a pinned pod away"),
    "I-16": Rule("a placeholder consumer keeps an allocation", ADVICE),
    "I-17": Rule("a scheduler profile of one's own", ADVICE),
    "I-18": Rule("pools are partitioned between the allocators"),
    "I-19": Rule("an admission policy puts the gate on every pod with claims"),
    "I-20": Rule("a gated pod is not scheduled, and says so"),
    "I-21": Rule("it gets its claims all the same"),
    "I-22": Rule("pin and release are one write"),
    "I-23": Rule("affinity is only ever tightened"),
    "I-24": Rule("each term of the affinity is pinned"),
    "I-25": Rule("nothing can be changed after the release", SERVER),
    "I-26": Rule("the pin names one node, by matchFields"),
    "I-27": Rule("what kube-scheduler would refuse the pod for is looked at before"),
    "I-28": Rule("pods bound without us get devices of their node"),
    "I-30": Rule("without the plugin kube-scheduler ignores claims: nothing is released before all is done"),
    "I-31": Rule("the feature gate is no switch for that", "it is locked on"),
    "I-32": Rule("without the stock claim controller all its duties are ours"),
    "I-33": Rule("one generator of claims"),
    "I-34": Rule("two taint eviction controllers do no harm", "the operator has none"),
    "I-35": Rule("nor do two pool status controllers", "the operator has none"),
    "I-40": Rule("nobody frees an allocation merely because it is unused, but we free ours"),
    "I-41": Rule("with a finalizer of our own the allocation would stay", "the operator uses Kubernetes' finalizer (I-42)"),
    "I-42": Rule("Kubernetes' finalizer is on what we allocate"),
    "I-43": Rule("allocation and reservation are one write, so that nothing leaks when the pod goes"),
    "I-44": Rule("immediate allocation", "the operator allocates for pods only"),
    "I-45": Rule("an allocation that lost its reservation is reserved again, or taken back"),
    "I-46": Rule("the end of a claim never waits for the operator"),
    "I-50": Rule("mark and finalizer, then status, then pod"),
    "I-51": Rule("what a crash left half-done is finished or undone"),
    "I-52": Rule("undoing: status first, then the finalizer"),
    "I-53": Rule("devices of decisions under way are taken", INSIDE),
    "I-54": Rule("one decision at a time, one leader", INSIDE),
    "I-55": Rule("no finalizer or annotation of Kopf's"),
    "I-56": Rule("every write carries the version that it was computed from", INSIDE),
    "I-60": Rule("the shipped rights are enough"),
}  # fmt: skip
