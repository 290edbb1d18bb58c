"""Why a pod, or a claim, is not served: the verdict, the cause, the figures, and the smallest change that would work.

`placement` decides, as it does for the operator; this explains what it said. Costs nothing until it is asked: it is a pure function of a model of the
cluster, which is read and never changed.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from dra_operator.allocator import Collector
from dra_operator.cel import default_compiler
from dra_operator.cluster import one_node
from dra_operator.model import (
    GATE,
    ObjectMeta,
    Pod,
    PodResourceClaim,
    PodSchedulingGate,
    PodSpec,
    Toleration,
    base_request,
)
from dra_operator.placement import (
    Allocate,
    Cause,
    Ignore,
    PlacementOptions,
    Placer,
    Plan,
    Refuse,
    Release,
    Unplaced,
    Verdict,
    Wait,
)
from dra_operator.placement.ownership import alternatives
from dra_operator.words import listed

from .codes import BY_CAUSE, BY_WHY, CODES, NODES
from .figures import MISMATCH, Figures, Form, Heap, facts
from .near import Changes, Counted, Near
from .sentences import explain
from .sides import Sides, Supposed
from .told import GAVE_UP, NEVER, NOT_NOW, NOW, SERVED, Asked, Fact, Held, Row, Why

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dra_operator.cel.interface import CelCompiler
    from dra_operator.cluster import Cluster
    from dra_operator.features import Features
    from dra_operator.model import Node, ResourceClaim
    from dra_operator.placement import Classification, NodeFinding

    from .figures import Key, Part
    from .told import Change

ROWS: Final = 12
"""Rows told of one request. Arbitrary: the largest groups of pools are what counts."""

NAMES: Final = 4
"""Nodes that a row or a sentence names. Arbitrary."""

TOGETHER: Final = 8
"""Devices told that do not go with others. Arbitrary."""

FACTS: Final = 3
"""Reasons in a sentence. Arbitrary."""

ALL_TAINTS: Final = (Toleration(operator="Exists"),)
"""Of the pod that a claim without pods is placed for: which one will use it is not known, so that taints of nodes keep nobody off."""

_OF_DEVICES: Final = frozenset(
    {Cause.ABSENT, Cause.DEVICES, Cause.FEATURE, Cause.COMBINATION, Cause.FAULT, Cause.LIMIT}
)
_DEARER: Final = frozenset({"FewerDevices", "AddDevices"})
"""Changes that cost more than what keeps a pod off a node that has the devices."""
_ABOUT_NODES: Final = frozenset(NODES) - frozenset(BY_CAUSE[cause] for cause in _OF_DEVICES)
_VERDICTS: Final = {Verdict.NEVER: NEVER, Verdict.NOT_NOW: NOT_NOW, Verdict.GAVE_UP: GAVE_UP}
_CAUSED: Final = {
    "CompletePool": "PoolIncomplete",
    "Tolerate": "Tainted",
    "AskForLess": "Capacity",
    "DropClause": "RequestSelector",
    "DropConstraint": "Constraint",
}
"""Change → the reason that it overcomes."""


def user_of(claim: ResourceClaim) -> Pod:
    """A pod that wants nothing but the claim; it is not in the cluster."""
    metadata = ObjectMeta(name=claim.metadata.name, namespace=claim.metadata.namespace)
    entry = PodResourceClaim(name=claim.metadata.name, resource_claim_name=claim.metadata.name)
    gates = (PodSchedulingGate(GATE),)
    return Pod(metadata, PodSpec(resource_claims=(entry,), scheduling_gates=gates, tolerations=ALL_TAINTS))


def why_claim(cluster: Cluster, features: Features, claim: ResourceClaim) -> Why:
    """Explain a claim: who holds what, or why the first pod that waits for it is not served."""
    meta = claim.metadata
    pods = [pod for pod in cluster.pods_of_claim(claim.key) if not pod.is_done]
    held = tuple(_held([claim]))
    about = Why("ResourceClaim", meta.namespace, meta.name, SERVED, "Allocated", "", "")
    if meta.deletion_timestamp is not None:
        cause = f"it is being deleted since {meta.deletion_timestamp}"
        return replace(
            about,
            verdict=NOT_NOW,
            code="ClaimDeleted",
            cause=cause,
            remedy=CODES["ClaimDeleted"].remedy,
            held=held,
        )
    if held:
        return replace(about, cause=_holding(held[0]), held=held)
    waiting = [pod for pod in pods if not pod.spec.node_name] or pods
    if not waiting:
        found = why_pod(cluster, features, user_of(claim))
        note = "Nobody asks for this claim: no pod names it, and a claim is allocated only once a pod waits for it"
        cause = f"no pod asks for it; {found.cause}" if found.is_served else found.cause
        return replace(
            found,
            kind=about.kind,
            namespace=meta.namespace,
            name=meta.name,
            cause=cause,
            notes=(*found.notes, note),
        )
    found = why_pod(cluster, features, waiting[0])
    names = listed([pod.metadata.name for pod in waiting], NAMES)
    note = f"Asked for by pod {names}; this is what keeps {waiting[0].metadata.name} from being served"
    return replace(
        found, kind=about.kind, namespace=meta.namespace, name=meta.name, notes=(*found.notes, note)
    )


def why_pod(cluster: Cluster, features: Features, pod: Pod) -> Why:
    """Explain a pod."""
    return _Pod(cluster, features, pod).why()


class _Pod:
    def __init__(self, cluster: Cluster, features: Features, pod: Pod) -> None:
        self._cluster, self._features, self._pod = cluster, features, pod
        self._compiler: CelCompiler = default_compiler()
        self._placer = self._placer_of(replace_all=not cluster.policies)
        meta = pod.metadata
        self._blank = Why("Pod", meta.namespace, meta.name, SERVED, "NoClaims", "it asks for no claims", "")

    def _placer_of(self, *, replace_all: bool) -> Placer:
        options = PlacementOptions(replace=replace_all, selector_work=None)
        return Placer(self._cluster, self._compiler, self._features, options)

    def why(self) -> Why:
        claims = list(self._claims())
        held = tuple(_held(claims))
        if self._pod.is_done:
            return replace(self._blank, code="Done", cause="the pod is over", held=held)
        if not self._pod.spec.resource_claims:
            return self._blank
        if self._pod.spec.node_name and all(claim.is_allocated for claim in claims) and claims:
            cause = f"it is bound to node {self._pod.spec.node_name}; {'; '.join(map(_holding, held))}"
            return replace(self._blank, code="Bound", cause=cause, held=held)
        answer = self._placer.classify(self._as_gated())
        if isinstance(answer, Refuse):
            return self._told(NEVER, answer.reason, answer.message, held)
        if isinstance(answer, Wait):
            return self._told(NOT_NOW, answer.reason, answer.message, held)
        if (
            isinstance(answer, Allocate)
            and answer.ours
            and self._cluster.policies
            and self._as_gated() is not self._pod
        ):
            return replace(self._told(NEVER, "NotGated", _NOT_GATED, held), remedy=_GATE_IT)
        return self._planned(self._work(answer), held)

    def _as_gated(self) -> Pod:
        """The pod as if it waited for the operator: placement looks at no other."""
        spec = self._pod.spec
        if spec.node_name or self._pod.names_us or any(gate.name == GATE for gate in spec.scheduling_gates):
            return self._pod
        return replace(
            self._pod, spec=replace(spec, scheduling_gates=(*spec.scheduling_gates, PodSchedulingGate(GATE)))
        )

    def _told(self, verdict: str, code: str, message: str, held: tuple[Held, ...]) -> Why:
        """What placement says in words: they name the next step."""
        return replace(self._blank, verdict=verdict, code=code, cause=message, held=held)

    def _claims(self) -> Iterable[ResourceClaim]:
        found = {
            entry.claim.key: entry.claim for entry in self._cluster.claims_of_pod(self._pod) if entry.claim
        }
        return found.values()

    def _work(self, answer: Classification) -> Allocate:
        """What is to be allocated; for pods that are none of the operator's, by kube-scheduler."""
        if isinstance(answer, Allocate):
            return answer
        if isinstance(answer, Ignore | Release):
            self._placer = self._placer_of(replace_all=False)
        claims = tuple(self._claims())
        waiting = tuple(claim for claim in claims if not claim.is_allocated)
        allocated = tuple(claim for claim in claims if claim.is_allocated)
        return Allocate(theirs=waiting, allocated=allocated, bound_node=self._pod.spec.node_name or "")

    def _planned(self, work: Allocate, held: tuple[Held, ...]) -> Why:
        planned = self._placer.plan(self._pod, work)
        if isinstance(planned, Refuse):
            return self._told(NEVER, planned.reason, planned.message, held)
        if isinstance(planned, Wait):
            return self._told(NOT_NOW, planned.reason, planned.message, held)
        if isinstance(planned, Plan):
            return self._possible(planned, held)
        sides = Sides(self._cluster, self._compiler, self._features, self._placer, self._pod, work)
        return replace(_Unplaced(self._blank, sides, planned).why(), held=held)

    def _possible(self, plan: Plan, held: tuple[Held, ...]) -> Why:
        decisions = (*plan.ours, *plan.theirs)
        if not decisions:
            cause = f"its claims hold devices, and it can run on node {plan.node}"
            return replace(self._blank, code="Allocated", cause=cause, held=held)
        devices = [str(result.device_id) for one in decisions for result in one.allocation.devices.results]
        cause = (
            f"it can be served now on node {plan.node}, with {listed(devices, NAMES)}; nothing is reserved"
        )
        return replace(
            self._blank,
            verdict=NOW,
            code="CanBeAllocated",
            cause=cause,
            remedy=CODES["CanBeAllocated"].remedy,
            held=held,
        )


class _Unplaced:
    """Explains that no node serves a pod."""

    def __init__(self, blank: Why, sides: Sides, unplaced: Unplaced) -> None:
        self._blank, self._sides, self._unplaced = blank, sides, unplaced
        self._told = explain(unplaced)
        self._problems = _problems(unplaced.findings)
        self._counted = list(self._count())
        self._near = Near(sides, self._counted)

    def _count(self) -> Iterable[Counted]:
        for side in self._sides.sides:
            figures = Figures(self._sides, side, self._sides.inputs(side, Supposed(), None))
            for claim in side.claims:
                for request in claim.spec.devices.requests:
                    for name, entry in alternatives(request):
                        form = Form(claim, name, entry)
                        yield Counted(form, figures.parts(form))

    def why(self) -> Why:
        together = self._together()
        changes = Changes(self._near).found() if self._is_about_devices() else ()
        asked = tuple(self._asked(number, one) for number, one in enumerate(self._counted))
        code, cause = self._cause(asked, together, changes)
        remedy = _remedy(code, changes)
        notes = (
            () if changes or not self._is_about_devices() else (_NOTHING.format(count=self._sides.trials),)
        )
        return replace(
            self._blank,
            verdict=_VERDICTS[self._unplaced.verdict],
            code=code,
            cause=cause,
            remedy=remedy,
            nodes=self._nodes(),
            asked=asked,
            together=together,
            nearest=self._nearest(asked),
            changes=changes,
            trials=self._sides.trials,
            notes=notes,
        )

    def _is_about_devices(self) -> bool:
        return any(finding.cause in _OF_DEVICES for finding in self._unplaced.findings)

    def _nodes(self) -> tuple[Fact, ...]:
        """Findings of placement: nodes by cause."""
        counts: Counter[tuple[str, str]] = Counter()
        for finding in self._unplaced.findings:
            counts[BY_CAUSE[finding.cause], finding.text] += finding.count
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        shown = [Fact(code, count, text) for (code, text), count in ranked[:ROWS]]
        rest = sum(count for _, count in ranked[ROWS:])
        return (*shown, *([Fact("Other", rest, "node(s) for other reasons")] if rest else []))

    # --- one request

    def _asked(self, number: int, one: Counted) -> Asked:
        heaps: dict[Key, Heap] = {}
        for part in one.parts:
            for key, heap in part.heaps.items():
                heaps.setdefault(key, Heap()).join(heap)
        rows, more = self._rows(one)
        best = self._best(number)
        return Asked(
            one.form.claim.key,
            one.form.name,
            one.form.entry.device_class_name,
            one.form.wanted,
            sum(part.seen for part in one.parts),
            sum(part.matching for part in one.parts),
            sum(len(part.free) for part in one.parts),
            best.name if best else "",
            self._near.available(number, best) if best else 0,
            _bounded(facts(heaps, self._sides.cluster)),
            rows,
            more,
        )

    def _best(self, number: int) -> Node | None:
        found = self._near.best(1, lambda node: self._near.available(number, node))
        return found[0] if found else None

    def _rows(self, one: Counted) -> tuple[tuple[Row, ...], int]:
        """Pools of which the same is to be said, those with most free devices first, and how many groups are left out."""
        groups: dict[tuple[object, ...], list[Part]] = {}
        for part in one.parts:
            said = tuple((key, len(heap.devices)) for key, heap in sorted(part.heaps.items()))
            problem = self._problems.get(part.place, "")
            groups.setdefault(
                (part.pool.driver, part.seen, len(part.free), said, problem, not part.place), []
            ).append(part)
        ranked = sorted(groups.items(), key=lambda item: (-len(item[1][0].free), -len(item[1])))
        return tuple(self._row(parts, str(key[4])) for key, parts in ranked[:ROWS]), max(
            0, len(ranked) - ROWS
        )

    def _row(self, parts: Sequence[Part], problem: str) -> Row:
        first = parts[0]
        nodes = tuple(dict.fromkeys(part.place for part in parts if part.place))[:NAMES]
        heaps: dict[Key, Heap] = {}
        for part in parts:
            for key, heap in part.heaps.items():
                heaps.setdefault(key, Heap()).join(heap)
        # What devices have and who holds them is of all these pools; the figures are of each, which are equal.
        each = [replace(fact, count=fact.count // len(parts)) for fact in facts(heaps, self._sides.cluster)]
        row = Row(first.pool.driver, len(parts), first.pool.pool, nodes, first.seen, len(first.free))
        return replace(row, facts=_bounded(tuple(each)), node_problem=problem)

    # --- what goes together

    def _together(self) -> tuple[Fact, ...]:
        """What the search says of devices that are free, on the node that comes closest."""
        nodes = self._near.best(1, self._near.score)
        if not nodes or not self._near.meets(nodes[0]):
            return ()
        heard = Collector()
        self._sides.serves(nodes[0], Supposed(), heard)
        found: dict[tuple[str, str], list[str]] = {}
        for ref, devices in heard.devices.items():
            for device, rejection in devices.items():
                if BY_WHY[rejection.why] not in MISMATCH | {"InUse", "Tainted"}:
                    partner = f", against {rejection.partner}" if rejection.partner else ""
                    key = BY_WHY[rejection.why], f"request {ref.request}: {rejection.detail}{partner}"
                    found.setdefault(key, []).append(str(device))
        ranked = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
        return tuple(
            Fact(code, len(devices), detail, example=devices[0])
            for (code, detail), devices in ranked[:TOGETHER]
        )

    # --- sentences

    def _cause(
        self, asked: Sequence[Asked], together: Sequence[Fact], changes: Sequence[Change]
    ) -> tuple[str, str]:
        """Code and sentence of what stands in the way."""
        if self._unplaced.verdict is Verdict.GAVE_UP:
            return "Limit", "the search stopped at its limit, so that a solution may exist"
        blamed = self._blamed(asked)
        blocked = self._blocked_node(asked)
        if blocked is not None and (not changes or changes[0].code in _DEARER):
            return blocked
        if blamed is not None:
            return self._code_of(blamed, changes), _short(blamed, self._facts_on(asked.index(blamed), blamed))
        if together:
            what = "; ".join(
                f"{fact.detail} ({fact.count} device(s), such as {fact.example})" for fact in together[:FACTS]
            )
            node = self._near.best(1, self._near.score)[0].name
            code = _CAUSED.get(changes[0].code, together[0].code) if changes else together[0].code
            return code, f"enough devices are free on node {node}, but they do not go together: {what}"
        first = Counter({finding.cause: 0 for finding in self._unplaced.findings})
        for finding in self._unplaced.findings:
            first[finding.cause] += finding.count
        main = next((cause for cause, _ in first.most_common() if cause is Cause.COMBINATION), None)
        cause = main or (first.most_common(1)[0][0] if first else Cause.ABSENT)
        return BY_CAUSE[cause], self._told.message.partition(". ")[0]

    def _blamed(self, asked: Sequence[Asked]) -> Asked | None:
        """The first request of which no node has enough in any form."""
        met = {
            (one.claim, base_request(one.request))
            for number, one in enumerate(asked)
            if (node := self._best(number)) is not None and self._near.enough(number, node)
        }
        return next((one for one in asked if (one.claim, base_request(one.request)) not in met), None)

    def _blocked_node(self, asked: Sequence[Asked]) -> tuple[str, str] | None:
        """A node with enough devices that cannot take the pod for another reason."""
        for node in self._near.nodes:
            if asked and self._near.meets(node):
                cause, text = self._sides.problem(node)
                if text:
                    plain = text.removeprefix("node(s) ")
                    told = f"node {node.name} has the devices, but cannot take the pod: {plain}"
                    return BY_CAUSE[Cause(cause)], told
        return None

    def _facts_on(self, number: int, one: Asked) -> tuple[Fact, ...]:
        """Why the other devices cannot be had on the best node; on all, if none has any."""
        node = self._sides.cluster.nodes.get(one.best_node)
        if node is None:
            return one.facts
        heaps: dict[Key, Heap] = {}
        for part in self._near.parts(number, node):
            for key, heap in part.heaps.items():
                heaps.setdefault(key, Heap()).join(heap)
        return facts(heaps, self._sides.cluster)

    def _code_of(self, blamed: Asked, changes: Sequence[Change]) -> str:
        found = self._facts_on(
            next(number for number, one in enumerate(self._counted) if one.form.name == blamed.request),
            blamed,
        )
        if changes and changes[0].code in _CAUSED:
            return _CAUSED[changes[0].code]
        codes = [fact.code for fact in found]
        if changes and changes[0].code == "FreeClaim":
            return next((code for code in codes if code not in MISMATCH and code != "Tainted"), "InUse")
        if blamed.best:
            return "TooFewDevices"
        matching = [code for code in codes if code not in MISMATCH]
        return (matching or codes or ["NoDevices"])[0]

    def _nearest(self, asked: Sequence[Asked]) -> str:
        parts = []
        for one in asked:
            wanted = f"{one.wanted}" if one.wanted else "all"
            if one.best_node:
                parts.append(f"request {one.request}: best is {one.best_node} with {one.best} of {wanted}")
            else:
                parts.append(f"request {one.request}: no node has one of {wanted}")
        return "; ".join(parts[:NAMES])


def _remedy(code: str, changes: Sequence[Change]) -> str:
    """The cheapest change, with the next if it is no matter of waiting; what the code says where no change is known."""
    if not changes or code in _ABOUT_NODES:
        return CODES[code].remedy
    shown = changes[:1] if changes[0].code == "CompletePool" else changes[:2]
    return ", or ".join(change.text for change in shown)


_NOT_GATED: Final = "it asks for devices of pools that an AllocationPolicy owns, which kube-scheduler cannot have, and it does not wait for the operator"
_GATE_IT: Final = (
    "create it anew in a namespace with the label dra-operator.io/enabled=true, or with the scheduling gate"
)
_NOTHING: Final = "No single change was found that would work; {count} were tried"


def _bounded(found: tuple[Fact, ...]) -> tuple[Fact, ...]:
    """The largest reasons, and how many devices the others keep off."""
    rest = sum(fact.count for fact in found[ROWS:])
    return (*found[:ROWS], *([Fact("Other", rest)] if rest else []))


def _problems(findings: Sequence[NodeFinding]) -> Mapping[str, str]:
    """What keeps the pod off nodes besides devices, as placement found it."""
    return {
        finding.node: f"{BY_CAUSE[finding.cause]}: {finding.text.removeprefix('node(s) ')}"
        for finding in findings
        if finding.node and finding.cause not in _OF_DEVICES
    }


def _short(one: Asked, found: Sequence[Fact]) -> str:
    """A request that no node has enough devices for."""
    wanted = f"{one.wanted} device(s)" if one.wanted else "all devices"
    head = f"request {one.request} wants {wanted} of class {one.device_class} on one node"
    reasons = "; ".join(map(in_words, found[:FACTS]))
    if one.best_node:
        place = f"the best, {one.best_node}, has {one.best} of {one.wanted or 'all'} free"
        return f"{head}, and {place}{f' ({reasons})' if reasons else ''}"
    if not one.seen:
        return f"{head}, and no device is published that it could have"
    return f"{head}, and none of the {one.seen} device(s) seen can be had ({reasons})"


def in_words(fact: Fact) -> str:
    """A fact for the middle of a sentence."""
    text = _WORDS.get(fact.code, fact.code)
    detail = fact.clause or fact.detail
    saw = f", devices have {', '.join(fact.saw)}" if fact.saw else ""
    by = f" by {', '.join(fact.by)}" if fact.by else ""
    return f"{fact.count} {text}{f' {detail}' if detail else ''}{saw}{by}"


_WORDS: Final = {
    "ClassSelector": "not matching the class selector",
    "RequestSelector": "not matching",
    "SelectorError": "on which a selector fails:",
    "InUse": "in use",
    "SharedOut": "with shares in use",
    "Tainted": "tainted",
    "Counters": "short of counter",
    "Groups": "not going with others of counter set",
    "Capacity": "short of capacity",
    "PoolIncomplete": "in an incomplete pool:",
    "PoolInvalid": "in an invalid pool:",
    "GateOff": "needing the feature",
    "NotBuilt": "published in the form of",
    "Other": "for other reasons",
}


def _held(claims: Iterable[ResourceClaim]) -> Iterable[Held]:
    for claim in claims:
        allocation = claim.status.allocation
        if allocation is None:
            continue
        devices = [str(result.device_id) for result in allocation.devices.results]
        node = one_node(allocation.node_selector) if allocation.node_selector is not None else ""
        pods = tuple(consumer.name for consumer in claim.status.reserved_for)[:NAMES]
        yield Held(claim.key, tuple(devices), node, pods, allocation.allocation_timestamp or "")


def _holding(held: Held) -> str:
    where = f" on node {held.node}" if held.node else ""
    pods = f", for pod {', '.join(held.pods)}" if held.pods else ", and no pod uses it"
    since = f", since {held.since}" if held.since else ""
    return f"claim {held.claim} holds {listed(held.devices, NAMES)}{where}{pods}{since}"
