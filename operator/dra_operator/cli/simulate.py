"""`kubectl dra simulate`: manifests, and what a cluster tells, in; who would get what out. `dra_operator.simulation` decides, `main` prints."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final

import yaml
from rich.table import Table

from dra_operator.errors import InvalidObject
from dra_operator.lint import ERROR, UNREADABLE, gates, taken
from dra_operator.lint.objects import pod_specs, steps
from dra_operator.placement import NodeScore
from dra_operator.simulation import Given, pods_of, simulate, written
from dra_operator.simulation.outcomes import POD
from dra_operator.simulation.workloads import MOST
from dra_operator.words import listed

from .claims import fold_devices
from .seen import uncollected
from .yamls import Quoting

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dra_operator.lint import Finding
    from dra_operator.lint.objects import Item
    from dra_operator.lint.texts import Document
    from dra_operator.model import DeviceRequestAllocationResult, ResourceClaim
    from dra_operator.simulation import Outcome, Report

PLACED, NOT_PLACED, WRONG_INPUT = 0, 3, 2
"""Exit status."""

TOLD: Final = frozenset({"FeatureOff", "DuplicateKey"})
"""Warnings of lint that change what is simulated."""

SHOWN: Final = 4
"""Pods of a template that a note names. Arbitrary."""


@dataclass(slots=True)
class Input:
    """What was read.

    Attributes:
        given: the objects.
        findings: what is wrong with those that were left out.
        notes: what was done with what was read, a sentence each.
        is_empty: whether nothing was taken, be it from files or a cluster.
        gates: feature gates of the API server that the files are for: fields of others are dropped.
        supposed: what is not so, and taken as if it were, a sentence each.
    """

    given: Given
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_empty: bool = True
    gates: frozenset[str] = gates.DEFAULT
    supposed: list[str] = field(default_factory=list)

    @property
    def is_wrong(self) -> bool:
        """Whether something could not be read, or would be refused."""
        return any(finding.severity == ERROR for finding in self.findings)

    def add(self, documents: Sequence[Document]) -> None:
        """Take the objects of documents in; those that the API server would refuse are left out, and told."""
        items, found = taken(documents, self.given.name_uids, self.gates)
        self.findings += [one for one in found if one.severity == ERROR or one.code in {UNREADABLE, *TOLD}]
        for item in items:
            self._take(item)

    def add_stored(self, raw: Mapping[str, Any]) -> None:
        """Take an object in that an API server has: one that cannot be decoded is left out, and told; if it is a claim, its devices count as taken."""
        try:
            self.given.take(raw)
        except InvalidObject as error:
            self.notes.append(f"{error}: left out")
            if raw["kind"] == "ResourceClaim":
                self.given.hold_unreadable(raw)

    def _take(self, item: Item) -> None:
        raw = {**item.obj, "apiVersion": "resource.k8s.io/v1", "kind": item.kind} if item.is_dra else item.raw
        told = len(item.found)
        try:
            if not self.given.take(raw):
                self._take_pods_of(item)
        except InvalidObject as error:
            item.tell("WrongType", steps(error.path), error.message)
            self.findings += item.found[told:]
            return
        self.is_empty = False

    def _take_pods_of(self, item: Item) -> None:
        paths = [path for path, _ in pod_specs(item.raw)]
        if not paths:
            return
        if item.kind == "DaemonSet" and paths == [("spec", "template", "spec")]:
            self.given.take_daemons(item.raw)
            return
        name = f"{item.kind} {'/'.join(filter(None, (item.namespace, item.name)))}"
        pods = pods_of(item.raw, paths)
        for pod in pods:
            self.given.take(pod)
        names = [str(pod["metadata"]["name"]) for pod in pods]
        most = f", as no template counts as more than {MOST}" if len(pods) >= MOST else ""
        self.notes.append(
            f"{name} counts as {len(pods)} pod(s) of its template{most}: {listed(names, SHOWN)}"
        )


def begin(namespace: str, flags: Sequence[str], minor: int | None = None) -> Input:
    """Nothing read yet.

    Args:
        namespace: of objects that name none.
        flags: feature gates that are named, as `gates.read` takes them.
        minor: of the version of Kubernetes whose defaults the other gates have for files; 1.37 if it is not known. What a cluster itself has comes
            as it stands there: like the operator, the allocator goes by 1.37 for it, as a server that has a feature off keeps its fields off the objects.
    """
    switched = gates.read(flags)
    read = Input(Given(namespace, gates.features(switched)), gates=gates.read(flags, gates.of_version(minor)))
    if minor is not None and (older := sorted(gates.DEFAULT - gates.of_version(minor) - read.gates)):
        read.notes.append(
            f"The cluster is Kubernetes 1.{minor}, and gates cannot be asked for: of the files it drops the fields of what it has off by default "
            f"({', '.join(older)}). Name those that it has on, such as --feature-gates={older[0]}=true"
        )
    if ahead := gates.beyond(switched):
        read.notes.append(
            f"With {', '.join(ahead)} this is what kube-scheduler's allocator could give: the operator allocates without {'it' if len(ahead) == 1 else 'them'} "
            "unless its setting featureGates says so too"
        )
    return read


@uncollected()
def run(read: Input, node_score: str) -> Report:
    """Simulate."""
    return simulate(read.given, NodeScore(node_score))


def status(report: Report, read: Input) -> int:
    """The exit status; wrong input comes first, as what was left out may have taken devices."""
    if read.is_wrong:
        return WRONG_INPUT
    return PLACED if report.all_placed else NOT_PLACED


def as_text(report: Report, read: Input, output: str) -> str:
    """The List of claims and pods as JSON or YAML; beside the items, what was supposed."""
    whole = written(report, read.given)
    if read.supposed:
        whole["supposed"] = read.supposed
    return (
        json.dumps(whole, indent=2)
        if output == "json"
        else yaml.dump(whole, Dumper=Quoting, sort_keys=False, allow_unicode=True).rstrip()
    )


def table(outcomes: Iterable[Outcome]) -> Table:
    """A row a request of what was placed."""
    result = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False, header_style="")
    for heading in ("NAMESPACE", "POD", "NODE", "CLAIM", "REQUEST", "DEVICES"):
        result.add_column(heading, overflow="fold")
    for outcome in outcomes:
        pod = outcome.name if outcome.kind == POD else ""
        for claim in outcome.claims:
            for request, devices in _requests(claim):
                result.add_row(outcome.namespace, pod, outcome.node, claim.metadata.name, request, devices)
    return result


def taken_of_nodes(outcomes: Iterable[Outcome]) -> Iterator[str]:
    """What devices take of the nodes beside what the pods ask for, a sentence a pod."""
    for outcome in outcomes:
        if outcome.takes:
            amounts = ", ".join(f"{name} {amount}" for name, amount in outcome.takes.items())
            yield f"The devices of {outcome.kind} {outcome.key} take of {outcome.node}, beside its requests: {amounts}."


def _requests(claim: ResourceClaim) -> Iterator[tuple[str, str]]:
    """Each request (or chosen alternative) with its devices; a claim that asks for none has one row all the same."""
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation else ()
    by_request: dict[str, list[DeviceRequestAllocationResult]] = {}
    for found in results:
        by_request.setdefault(found.request, []).append(found)
    for request, group in by_request.items():
        yield request, _devices(group)
    if not by_request:
        yield "", ""


def _devices(results: Iterable[DeviceRequestAllocationResult]) -> str:
    whole = [str(one.device_id) for one in results if not _remark(one)]
    others = [f"{one.device_id} ({_remark(one)})" for one in results if _remark(one)]
    return ", ".join(filter(None, (fold_devices(whole), *others)))


def _remark(result: DeviceRequestAllocationResult) -> str:
    """What is special: a share, or only a look."""
    shares = [f"{name} {amount}" for name, amount in sorted(result.consumed_capacity.items())]
    if result.share_id is not None:
        shares = ["shared", *shares]
    return ", ".join([*(["admin access"] if result.admin_access else []), *shares])


def unplaced(outcomes: Iterable[Outcome]) -> Iterator[str]:
    """What is not placed, a paragraph for all of which the same is said but for their own names."""
    groups: dict[tuple[str, ...], list[Outcome]] = {}
    for outcome in outcomes:
        if not outcome.is_placed:
            groups.setdefault(_alike(outcome), []).append(outcome)
    for group in groups.values():
        first = group[0]
        who = "kube-scheduler's" if first.by_kube_scheduler else ""
        why = ", ".join(filter(None, (first.reason, first.verdict, who)))
        if len(group) == 1:
            yield f"{first.kind} {first.key} is not placed ({why}): {first.message}"
        else:
            names = listed([outcome.key for outcome in group], SHOWN)
            yield f"{first.kind}s {names} are not placed ({why}); of the first: {first.message}"


def _alike(outcome: Outcome) -> tuple[str, ...]:
    """Equal for outcomes that differ in names of pods and of their claims."""
    message = outcome.message
    for number, claim in enumerate(outcome.claims):
        message = message.replace(claim.key, f"#{number}")
    return (
        outcome.kind,
        outcome.reason,
        outcome.verdict,
        str(outcome.by_kube_scheduler),
        message.replace(outcome.key, "#"),
    )


def effort(outcome: Outcome) -> str:
    """What one decision cost."""
    figures: dict[str, Any] = {one.name: getattr(outcome.effort, one.name) for one in fields(outcome.effort)}
    shown = ", ".join(f"{name} {figures[name]}" for name in figures)
    return f"{outcome.kind} {outcome.key}: {shown}, work on selectors {outcome.work}"


def summary(report: Report) -> str:
    """One sentence."""
    if not report.outcomes:
        return "Nothing waits: there is no pod with claims, nor a claim that is not allocated."
    placed = [outcome for outcome in report.outcomes if outcome.is_placed]
    by_others = sum(outcome.by_kube_scheduler for outcome in placed)
    left = f", {by_others} of them by kube-scheduler, on a node that it could choose" if by_others else ""
    return f"{len(placed)} of {len(report.outcomes)} placed{left}."
