"""What may never be so, at no version of any object: the rules of the independent checker, as a function of what watches tell.

Pure, and nothing of the operator is imported: it knows claims and pods only as the API shows them. Claims and pods come by two
watches; resourceVersions order the writes of both, so that what needs both is judged when both are known as far as that.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

Object = dict[str, Any]
Device = tuple[str, str, str]

FINALIZER = "resource.kubernetes.io/delete-protection"
OVERTAKEN = "kube-apiserver: claim removed in spite of a finalizer that came meanwhile"
"""kube-apiserver reads an object, finds no finalizer, and deletes whatever is there then; no client can keep it from doing so. Such a claim has
no deletionTimestamp in its last version; one whose finalizer was there in time always has."""

HISTORY = 40
"""Versions of one claim that are kept in words, for the story of a violation."""

CHECKS = {
    "claim versions": "no device in two claims, no allocation changed, no reservation or allocation half there",
    "devices given": "nobody else has it",
    "consumers removed": "none that was bound and alive",
    "pods bound": "each claim allocated and reserved for the pod at that moment",
}
"""What is counted, and what was looked at each time."""


@dataclass(frozen=True, slots=True)
class State:
    """A claim at one version."""

    version: int
    devices: frozenset[Device]
    allocated: bool
    consumers: frozenset[str]
    finalizer: bool
    name: str
    going: bool = False

    @classmethod
    def of(cls, claim: Object) -> State:
        """As the API shows it."""
        metadata, status = claim["metadata"], claim.get("status") or {}
        allocation = status.get("allocation")
        results = ((allocation or {}).get("devices") or {}).get("results") or []
        exclusive = [item for item in results if not item.get("adminAccess") and not item.get("shareID")]
        return cls(
            int(metadata["resourceVersion"]),
            frozenset((item["driver"], item["pool"], item["device"]) for item in exclusive),
            allocation is not None,
            frozenset(item["uid"] for item in status.get("reservedFor") or []),
            FINALIZER in metadata.get("finalizers", []),
            f"{metadata['namespace']}/{metadata['name']}",
            "deletionTimestamp" in metadata,
        )

    def words(self, event: str) -> str:
        """One line of a claim's story."""
        held = ", ".join("/".join(device) for device in sorted(self.devices)) or "nothing"
        users = ", ".join(sorted(self.consumers)) or "nobody"
        guarded = "" if self.finalizer else ", no finalizer"
        going = ", to be deleted" if self.going else ""
        return f"{self.version} {event}: holds {held}, reserved for {users}{guarded}{going}"


@dataclass(slots=True)
class Pod:
    """A pod's life in versions."""

    name: str
    bound: int = 0
    ended: int = 0
    claims: tuple[str, ...] = ()

    def was_at_work(self, version: int) -> bool:
        """Whether it was bound and not over at a version."""
        return bool(self.bound) and self.bound <= version and not (self.ended and self.ended <= version)


@dataclass(slots=True)
class ClaimLife:
    """All states of one claim (one uid), and its story in words."""

    states: list[State] = field(default_factory=list)
    story: deque[str] = field(default_factory=lambda: deque(maxlen=HISTORY))

    def at(self, version: int) -> State | None:
        """The state that held at a version."""
        place = bisect_right([state.version for state in self.states], version)
        return self.states[place - 1] if place else None


@dataclass(frozen=True, slots=True)
class Violation:
    """What was so and may not be, and the story of the claims that it is about."""

    text: str
    story: tuple[str, ...]


class Ledger:
    """Takes events.

    Attributes:
        violations: what was wrong.
        checked: how often what was looked at.
        noticed: what is strange, and nobody's fault that is looked for.
    """

    def __init__(self) -> None:
        self.violations: list[Violation] = []
        self.checked: Counter[str] = Counter()
        self.noticed: Counter[str] = Counter()
        self.reached = {"claims": 0, "pods": 0}
        self.pods: dict[str, Pod] = {}
        self.claims: dict[str, ClaimLife] = {}
        self._named: dict[str, list[str]] = defaultdict(list)
        self._holders: dict[Device, set[str]] = defaultdict(set)
        self._removals: list[tuple[int, str, str]] = []
        self._robbed: set[str] = set()
        self._bindings: list[tuple[int, str]] = []

    # --- what the watches tell

    def take(self, kind: str, event: str, obj: Object) -> None:
        """One event of `claims` or `pods`: ADDED, MODIFIED or DELETED."""
        version = int(obj["metadata"]["resourceVersion"])
        if kind == "claims":
            self._take_claim(event, obj)
        else:
            self._take_pod(event, obj)
        self.advance(kind, version)

    def advance(self, kind: str, version: int) -> None:
        """Everything of a kind up to a version is known (a bookmark)."""
        self.reached[kind] = max(self.reached[kind], version)
        self._judge(min(self.reached.values()))

    def finish(self) -> None:
        """No more will come: judge what waits."""
        self._judge(max(self.reached.values()))

    # --- claims

    def _take_claim(self, event: str, obj: Object) -> None:
        uid, state = obj["metadata"]["uid"], State.of(obj)
        if uid not in self.claims:
            self.claims[uid] = ClaimLife()
            self._named[state.name].append(uid)
        life = self.claims[uid]
        before = life.states[-1] if life.states else None
        if before is not None and state.version <= before.version:
            return
        life.story.append(state.words(event))
        self.checked["claim versions"] += 1
        if event == "DELETED":
            self._check_end(uid, before or state)
            state = State(state.version, frozenset(), False, frozenset(), False, state.name)
        else:
            self._check_state(uid, before, state)
        self._move(uid, before.devices if before else frozenset(), state)
        removed = (before.consumers if before else frozenset()) - state.consumers
        self._removals.extend((state.version, uid, consumer) for consumer in removed)
        life.states.append(state)

    def _check_state(self, uid: str, before: State | None, state: State) -> None:
        if state.consumers and not state.allocated:
            self._violated(f"claim {state.name} is reserved without an allocation", uid)
        if state.allocated and not state.finalizer:
            self._violated(f"claim {state.name} is allocated without the finalizer", uid)
        changed = before is not None and before.allocated and state.allocated
        if changed and before is not None and before.devices != state.devices:
            self._violated(f"claim {state.name} had its allocation changed", uid)

    def _check_end(self, uid: str, before: State) -> None:
        if before.allocated and before.finalizer and not before.going:
            self.noticed[OVERTAKEN] += 1
            self._robbed |= before.consumers
        elif before.allocated:
            self._violated(f"claim {before.name} was removed while it was allocated", uid)

    def _move(self, uid: str, before: frozenset[Device], state: State) -> None:
        for device in before - state.devices:
            self._holders[device].discard(uid)
        for device in state.devices - before:
            self.checked["devices given"] += 1
            others = self._holders[device]
            if others:
                names = ", ".join(self.claims[other].states[-1].name for other in others)
                self._violated(
                    f"device {'/'.join(device)} is given to {state.name} while {names} holds it", uid, *others
                )
            others.add(uid)

    # --- pods

    def _take_pod(self, event: str, obj: Object) -> None:
        metadata, status = obj["metadata"], obj.get("status") or {}
        version, uid = int(metadata["resourceVersion"]), metadata["uid"]
        pod = self.pods.setdefault(uid, Pod(f"{metadata['namespace']}/{metadata['name']}"))
        pod.claims = tuple(_claim_names(obj)) or pod.claims
        if obj["spec"].get("nodeName") and not pod.bound:
            pod.bound = version
            self._bindings.append((version, uid))
        if (event == "DELETED" or status.get("phase") in {"Succeeded", "Failed"}) and not pod.ended:
            pod.ended = version

    # --- what needs both

    def _judge(self, version: int) -> None:
        due = [item for item in self._removals if item[0] <= version]
        if due:
            self._removals = [item for item in self._removals if item[0] > version]
            for removal in due:
                self._judge_removal(*removal)
        bound = [item for item in self._bindings if item[0] <= version]
        if bound:
            self._bindings = [item for item in self._bindings if item[0] > version]
            for binding in bound:
                self._judge_binding(*binding)

    def _judge_removal(self, version: int, claim_uid: str, consumer: str) -> None:
        self.checked["consumers removed"] += 1
        pod = self.pods.get(consumer)
        if pod is not None and pod.was_at_work(version):
            name = self.claims[claim_uid].states[-1].name
            self._violated(
                f"claim {name} lost its consumer {pod.name} at {version}: bound since {pod.bound} and alive",
                claim_uid,
            )

    def _judge_binding(self, version: int, pod_uid: str) -> None:
        pod = self.pods[pod_uid]
        self.checked["pods bound"] += 1
        if pod_uid in self._robbed:
            return  # `OVERTAKEN`: neither kube-scheduler nor the operator can know before it has happened
        if pod.ended and pod.ended <= version:
            return  # it was over (Succeeded, Failed) before, so its claims rightly were let go; the binding was under way
        for name in pod.claims:
            uid, state = self._at(name, version)
            if state is None or not state.allocated or pod_uid not in state.consumers:
                what = "not reserved for it" if state and state.allocated else "not allocated"
                self._violated(
                    f"pod {pod.name} ({pod_uid}) was bound at {version} while {name} was {what}",
                    *([uid] if uid else []),
                )

    def _at(self, name: str, version: int) -> tuple[str, State | None]:
        """The claim that had a name at a version, and its state then."""
        for uid in reversed(self._named.get(name, ())):
            state = self.claims[uid].at(version)
            if state is not None:
                return uid, state
        return "", None

    def _violated(self, text: str, *claim_uids: str) -> None:
        story = [line for uid in claim_uids for line in (f"claim {uid}", *self.claims[uid].story)]
        self.violations.append(Violation(text, tuple(story)))


def _claim_names(pod: Object) -> Iterator[str]:
    """namespace/name of a pod's claims, as far as they have names yet."""
    namespace = pod["metadata"]["namespace"]
    statuses = (pod.get("status") or {}).get("resourceClaimStatuses") or []
    generated = {entry["name"]: entry.get("resourceClaimName") for entry in statuses}
    for entry in pod["spec"].get("resourceClaims") or []:
        name = entry.get("resourceClaimName") or generated.get(entry["name"])
        if name:
            yield f"{namespace}/{name}"
