"""One sentence of reasons and one of advice for a pod that no node can serve.

The form is kube-scheduler's ("0/5 nodes can serve this pod: 3 node(s) …, 1 Insufficient cpu"), as users and tools know it; what
kube-scheduler leaves out is added: figures about devices, whether waiting helps, and the next step. Equal reasons of nodes are
folded, the most frequent first. Texts fit into an Event. It must not decide anything.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dra_operator.allocator import Why
from dra_operator.placement import COMBINATION, IN_USE, Cause, Verdict, why_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dra_operator.placement import DeviceTally, NodeFinding, Offer, Unplaced

MAX_BYTES: Final = 1024
"""The API server refuses longer event messages."""

MAX_PARTS: Final = 100
"""Reasons that are tried to fit; nodes may have as many different ones as there are nodes. Arbitrary: far more than fit."""

MAX_REASONS: Final = 3
"""Device reasons spelled out a request; the rest is counted. Arbitrary: keeps a part readable."""

MAX_TEXT: Final = 240
"""Characters of one reason, which may hold an expression or an error of a driver. Arbitrary."""

_VERDICTS: Final = {
    Verdict.NEVER: "Waiting will not help",
    Verdict.NOT_NOW: "Waiting: the {about} goes on by itself as soon as that changes",
    Verdict.GAVE_UP: "The search gave up, so a solution may exist",
}

_STEPS: Final = {
    Cause.LIMIT: "make the claim easier: fewer devices, narrower selectors, fewer constraints",
    Cause.COMBINATION: "loosen the constraints or selectors of the claim, or add devices that go together",
    Cause.DEVICES: "ask for fewer devices in one pod, or add nodes with more",
    Cause.FEATURE: "use devices that are published without that feature; or have an admin name its gate in the operator's featureGates, if the "
    "cluster has it on, or take their pool out of the AllocationPolicy, which leaves the pod to kube-scheduler",
    Cause.BUDGET: "raise spec.resources of the pod, or leave it out: the devices' part counts, too",
    Cause.UNREFERENCED: "name the claim in resources.claims of the container that uses it",
    Cause.CLAIM: "delete the claim that is allocated elsewhere, or let the pod use devices of the same node",
    Cause.POD: "change the pod's tolerations, node selector or affinity",
    Cause.KUBELET: "take the feature out of the pod's spec, or add nodes that name it in status.declaredFeatures",
    Cause.VOLUMES: "add nodes or devices where the pod's volumes are, or give it other volumes: the nodes with its devices cannot reach them",
    Cause.NEIGHBOURS: "label the nodes with the topologyKey that the pod's affinity or topologySpreadConstraints name, or take those out of "
    "the pod",
    Cause.ROOM: "lower the pod's resource requests or host ports, or add larger nodes",
    Cause.FAULT: "correct the selector or the pool that the message names",
    Cause.STATE: "bring a node back",
    Cause.ABSENT: "check the class and the selectors against the published devices (kubectl get deviceclasses,resourceslices "
    "-o yaml; without the right to, ask an admin), and that the driver runs on its nodes",
}
"""Advice by cause when waiting does not help; the cause that is nearest to a solution comes first."""

_BY_WHY: Final = {
    Cause.DEVICES: (
        (Why.IN_USE, "", ""),
        (
            Why.TAINT,
            "tolerate the taint in the claim's request, or have whoever put it on the devices take it off",
            "to go on at once, tolerate the taint in the claim's request, or have whoever put it on the devices take it off",
        ),
    ),
    Cause.COMBINATION: (
        (Why.CONSTRAINT, "", ""),
        (
            Why.COUNTERS,
            "ask for fewer or smaller devices, or add some: these draw on counters that would not suffice if nothing were in use",
            "to go on at once, end pods whose devices draw on the same counters, or ask for smaller devices",
        ),
        (
            Why.CAPACITY,
            "ask only for capacities that the devices have, and no more than they have of them",
            "to go on at once, end pods that have shares of such devices, or add some",
        ),
    ),
}
"""What else to do for a cause where that is what keeps devices off, when waiting does not help, and when it does; empty for what the tables
say. The first that was found counts: others may well be of devices that would not be needed then."""

_OF_THE_POD: Final = frozenset({Cause.POD, Cause.KUBELET, Cause.VOLUMES, Cause.NEIGHBOURS, Cause.ROOM})
"""Causes that have nothing to do with devices: none of them is nearer to a solution than the other."""

_FREEING: Final = {
    Cause.DEVICES: "to go on at once, end a pod that holds such devices or add some",
    Cause.COMBINATION: "to go on at once, loosen the claim's constraints or free more devices",
    Cause.BUDGET: "to go on at once, create the pod anew with more in spec.resources, or without it: the devices' part counts, too",
    Cause.CLAIM: "to go on at once, end the pods that use the claim which the message names, or use another claim",
    Cause.VOLUMES: "to go on at once, free or add volumes where the pod can run",
    Cause.NEIGHBOURS: "to go on at once, loosen the affinity or topologySpreadConstraints of the pod, end the pods that keep it off, or add "
    "nodes",
    Cause.ROOM: "to go on at once, free resources on those nodes",
    Cause.STATE: "to go on at once, uncordon or mend a node",
    Cause.FAULT: "the driver of the pool that the message names has to publish its ResourceSlices anew, or is still at it",
}
"""Advice by cause when waiting helps."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """What to tell the user.

    Args:
        verdict: never, not now, or gave up.
        message: at most `MAX_BYTES` bytes of UTF-8.
    """

    verdict: Verdict
    message: str


def explain(unplaced: Unplaced, about: str = "pod") -> Explanation:
    """Fold what was found on the nodes into an answer for the user; `about` is what is to be placed."""
    verdict = unplaced.verdict
    head = f"0/{unplaced.total} nodes can serve this {about}"
    tail = f"{_VERDICTS[verdict].format(about=about)}; {_advice(verdict, unplaced.findings)}."
    parts = _parts(unplaced.findings)
    return Explanation(verdict, _assemble(head, parts, tail))


def _assemble(head: str, parts: Sequence[str], tail: str) -> str:
    """All parts if they fit, else the first ones and how many more there are; head and tail always stay."""
    # More do not fit: each part has a figure, a space and a word, and each try is as long as all of them.
    for kept in range(min(len(parts), MAX_PARTS), -1, -1):
        hidden = len(parts) - kept
        shown = [*parts[:kept], *([f"and {hidden} more reason(s)"] if hidden else [])]
        text = f"{head}: {', '.join(shown)}. {tail}" if shown else f"{head}. {tail}"
        if len(text.encode()) <= MAX_BYTES:
            return text
    return f"{head}. {tail}"


def _parts(findings: Iterable[NodeFinding]) -> list[str]:
    """One part for each distinct text, most nodes first, then in the order found."""
    groups: dict[str, list[NodeFinding]] = {}
    for finding in findings:
        groups.setdefault(_shorten(finding.text), []).append(finding)
    ranked = sorted(groups.items(), key=lambda item: -_nodes(item[1]))
    return [f"{_nodes(group)} {text}{_figures(group)}" for text, group in ranked]


def _nodes(findings: Iterable[NodeFinding]) -> int:
    return sum(finding.count for finding in findings)


def _figures(findings: Sequence[NodeFinding]) -> str:
    """What became of the devices, summed over the nodes, in brackets; nothing for reasons without devices."""
    by_request: dict[str, list[DeviceTally]] = {}
    for finding in findings:
        for tally in finding.tallies:
            by_request.setdefault(tally.request, []).append(tally)
    several = len(by_request) > 1
    texts = [_tally_text(tallies, name if several else "") for name, tallies in by_request.items()]
    return f" ({'; '.join(texts)})" if texts else ""


def _tally_text(found: Sequence[DeviceTally], name: str) -> str:
    first = found[0]
    # What nodes share is the same for all of them: it counts once.
    tallies = [tally for tally in found if not tally.shared] + [tally for tally in found if tally.shared][:1]
    wanted = f"{first.wanted} wanted" if first.wanted else "all wanted"
    counts: Counter[str] = Counter()
    for tally in tallies:
        counts.update(tally.rejected)
    text = f"class {first.device_class}, {wanted}, {sum(tally.seen for tally in tallies)} devices seen"
    reasons = _counted(counts)
    free = sum(tally.seen for tally in tallies) - counts.total()
    if reasons and (free > 0 or IN_USE in counts) and COMBINATION not in counts:
        reasons += f", {max(free, 0)} free"
    prefix = f"{name}: " if name else ""
    return f"{prefix}{text}: {reasons}" if reasons else f"{prefix}{text}"


def _counted(counts: Counter[str]) -> str:
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{count} {_shorten(reason)}" for reason, count in ranked[:MAX_REASONS]]
    rest = sum(count for _, count in ranked[MAX_REASONS:])
    return ", ".join([*shown, *([f"{rest} for other reasons"] if rest else [])])


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


def _advice(verdict: Verdict, findings: Iterable[NodeFinding]) -> str:
    """The next step for the most promising cause: when waiting helps, one that passes; else one of the pod's devices."""
    if verdict is Verdict.GAVE_UP:
        return _STEPS[Cause.LIMIT]
    table = _FREEING if verdict is Verdict.NOT_NOW else _STEPS
    telling = [finding for finding in findings if verdict is not Verdict.NOT_NOW or not finding.lasting]
    causes = {finding.cause for finding in telling}
    first = next((cause for cause in table if cause in causes), None)
    if first is None:
        return "add nodes"
    if first is Cause.COMBINATION and (
        offers := [found.offer for found in telling if found.offer is not None]
    ):
        return _for_less(offers)
    special = _by_why(first, telling)
    if special is not None:
        return special[verdict is Verdict.NOT_NOW]
    main = _most_nodes(first, telling)
    return _without(telling) or table[main] if main is Cause.ROOM else table[main]


def _by_why(first: Cause, findings: Iterable[NodeFinding]) -> tuple[str, str] | None:
    """Advice by what became of the devices; None where that of the cause is right."""
    tallies = (tally for finding in findings if finding.cause is first for tally in finding.tallies)
    found = {why_of(reason) for tally in tallies for reason in tally.rejected}
    rows = _BY_WHY.get(first, ())
    why = next((row for row in rows if row[0] in found), None)
    return why[1:] if why is not None and why[1] else None


def _for_less(offers: Sequence[Offer]) -> str:
    """Advice to ask for less of a capacity: what could be had that is nearest to what is asked for."""
    best = max(offers, key=lambda offer: (-len(offer.amounts), offer.part))
    amounts = " and ".join(f"{amount} of {name}" for name, amount in best.amounts.items())
    place = f"with device {best.device} on node {best.node}"
    if best.later:
        return f"ask for less: {best.request} could have up to {amounts}, {place}, while that is free; or add larger devices"
    return f"to go on at once, ask for less: {best.request} could have up to {amounts} now, {place}; or free more of such devices"


def _most_nodes(first: Cause, findings: Sequence[NodeFinding]) -> Cause:
    """The first cause, or, if it is about the pod and not its devices, the one of that kind that keeps it off most nodes."""
    if first not in _OF_THE_POD:
        return first
    nodes = Counter({first: 0})
    for finding in findings:
        if finding.cause in _OF_THE_POD:
            nodes[finding.cause] += finding.count
    return nodes.most_common(1)[0][0]


def _without(findings: Iterable[NodeFinding]) -> str:
    """Advice about resources that none of the nodes offers at all, as nothing else about room helps then; else empty."""
    absent = [finding.absent for finding in findings if finding.cause is Cause.ROOM]
    names = [name for name in absent[0] if all(name in others for others in absent)]
    if not names:
        return ""
    return (
        f"take {', '.join(names)} out of the resource requests and limits of the pod, as no node that was looked at has it, or add "
        "nodes that have"
    )
