"""Feeds manifests to a real control plane with the operator beside it, and tells what became of each pod.

    python -m tests.e2e.feed PATH… [--devices FILE]… [--kubeconfig FILE]

Each file gets a namespace of its own and is gone before the next. Slices and classes, of the files' folders and of `--devices`, are
published first, with a node for each name that a slice has. What a file only refers to is taken from the files beside it; a template
or claim that no pod uses gets a probe pod; an MPIJob is replaced by the pods that its controller would make. For people who want to know how
their manifests fare; prints a table and decides nothing.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.e2e.fleet import is_settled
from tests.e2e.harness.cluster import ControlPlane
from tests.e2e.harness.kubectl import Kubectl, KubectlError, as_documents
from tests.e2e.harness.objects import node, pod, policy
from tests.e2e.harness.operator_process import OperatorProcess, install
from tests.e2e.harness.plugin import ENABLED
from tests.e2e.harness.waiting import NotInTimeError, wait_until
from tests.inputs.manifests import CLUSTER_SCOPED, Object, documents, node_names, pods_of, without_owners
from tests.inputs.outcomes import GATE, Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

PATIENCE = 15.0  # seconds until a pod is served or told why not
FLEET_KINDS = frozenset({"DeviceClass", "Node", "ResourceSlice"})
POLICY = "feed"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    file: str
    subject: str
    outcome: str

    def text(self) -> str:
        """The line, the outcome folded below it."""
        body = textwrap.fill(self.outcome, 130, initial_indent="      ", subsequent_indent="      ")
        return f"{self.file}  {self.subject}\n{body}"


@dataclass(slots=True)
class Batch:
    """The objects of one file, in the order of kubectl apply.

    Attributes:
        name: of the file, for the table.
        objects: of the file.
        beside: objects of the files beside it.
    """

    name: str
    objects: list[Object]
    beside: list[Object] = field(default_factory=list)

    def fleet(self) -> list[Object]:
        """What its driver or its admin publishes."""
        return [obj for obj in self.objects if obj["kind"] in FLEET_KINDS]

    def labels(self) -> dict[str, str]:
        """Labels of the namespace that the file makes for itself."""
        found: dict[str, str] = {}
        for obj in self.objects:
            if obj["kind"] == "Namespace":
                found |= obj["metadata"].get("labels") or {}
        return found

    def used(self) -> list[Object]:
        """What goes into the namespace: the file's objects, what they refer to, a pod for what nobody uses."""
        own = [obj for obj in self.objects if obj["kind"] not in CLUSTER_SCOPED]
        wanted = {name for obj in own for made in pods_of(obj) for name in _references(made)}
        have = {obj["metadata"].get("name") for obj in own}
        lent = [
            obj
            for obj in self.beside
            if obj["kind"].startswith("ResourceClaim") and obj["metadata"].get("name") in wanted - have
        ]
        return [*lent, *own, *_probes(own, wanted)]


def _references(found: Object) -> Iterator[str]:
    for entry in found["spec"].get("resourceClaims") or ():
        yield str(entry.get("resourceClaimTemplateName") or entry.get("resourceClaimName"))


def _probes(own: Iterable[Object], wanted: set[str]) -> Iterator[Object]:
    for obj in own:
        name = str(obj["metadata"].get("name"))
        if name in wanted or not obj["kind"].startswith("ResourceClaim"):
            continue
        field_name = "templates" if obj["kind"] == "ResourceClaimTemplate" else "claims"
        yield pod(f"probe-{name}", **{field_name: {"devices": name}})


class Feeder:
    """Feeds batches one after the other.

    Args:
        kubectl: administrator of a control plane where the operator runs.
    """

    def __init__(self, kubectl: Kubectl) -> None:
        self._kubectl = kubectl
        self._count = 0
        self._rows: list[Row] = []

    def publish(self, batches: Iterable[Batch]) -> list[Row]:
        """Makes nodes, classes and slices, and gives all pools to the operator. Returns what was refused or mended."""
        self._rows = []
        fleet = [(batch.name, obj) for batch in batches for obj in batch.fleet()]
        named = {obj["metadata"]["name"] for _, obj in fleet if obj["kind"] == "Node"}
        for name in node_names(obj for _, obj in fleet):
            if name not in named:
                self._kubectl.apply(node(name, cpu="256", memory="2Ti"))
        for name, obj in fleet:
            self._apply(self._kubectl, name, obj)
        drivers = {obj["spec"]["driver"] for _, obj in fleet if obj["kind"] == "ResourceSlice"}
        self._kubectl.apply(policy(POLICY, *({"driver": driver} for driver in sorted(drivers))))
        self._kubectl.until("allocationpolicy", POLICY, is_settled, "rules in place and settled")
        return self._rows

    def withdraw(self, batches: Iterable[Batch]) -> None:
        """Takes the classes and slices away again."""
        self._kubectl.delete("allocationpolicy", POLICY)
        for kind in ("resourceslice", "deviceclass"):
            self._kubectl.run("delete", kind, "--all", "--wait=true")
        for obj in (obj for batch in batches for obj in batch.fleet() if obj["kind"] == "Node"):
            self._kubectl.delete("node", obj["metadata"]["name"])

    def feed(self, batch: Batch) -> list[Row]:
        """Applies one file and tells what became of it."""
        self._rows = []
        self._count += 1
        namespace = f"feed-{self._count}"
        inside = self._open(namespace, batch.labels())
        try:
            for obj in batch.used():
                self._apply(inside, batch.name, obj)
            self._rows += self._outcomes(inside, batch.name)
        finally:
            self._kubectl.in_namespace(namespace).run("delete", "deployments,jobs,pods", "--all", "--force")
            self._kubectl.delete("namespace", namespace)
        return self._rows

    def _open(self, namespace: str, labels: dict[str, str]) -> Kubectl:
        metadata = {"name": namespace, "labels": labels | ENABLED}
        self._kubectl.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        inside = self._kubectl.in_namespace(namespace)
        inside.until("serviceaccount", "default", lambda _: True, "made by its controller")
        return inside

    def _apply(self, kubectl: Kubectl, file: str, obj: Object) -> None:
        """As it is; when that is refused for what ties it to another cluster, without that."""
        metadata = {key: value for key, value in obj["metadata"].items() if key != "namespace"}
        subject = f"{obj['kind']} {metadata.get('name') or metadata.get('generateName')}"
        parts = pods_of(obj) if obj["kind"] == "MPIJob" else [{**obj, "metadata": metadata}]
        for part in parts:
            try:
                kubectl.apply(as_documents(part))
            except KubectlError as error:
                self._rows.append(Row(file, subject, f"refused: {error.stderr.strip()}"))
                self._mend(kubectl, file, subject, part)

    def _mend(self, kubectl: Kubectl, file: str, subject: str, obj: Object) -> None:
        bare = without_owners(obj)
        if bare == obj:
            return
        try:
            kubectl.apply(as_documents(bare))
        except KubectlError as error:
            self._rows.append(Row(file, subject, f"refused again: {error.stderr.strip()}"))
        else:
            self._rows.append(Row(file, subject, "applied without owner references, uid and resourceVersion"))

    def _outcomes(self, kubectl: Kubectl, file: str) -> list[Row]:
        try:
            seen = wait_until(
                lambda: snapshot(kubectl), "every pod served or told", timeout=PATIENCE, accept=_is_over
            )
        except NotInTimeError:
            seen = snapshot(kubectl)
        return [Row(file, f"pod {item['metadata']['name']}", _outcome(seen, item)) for item in seen.pods]


def snapshot(kubectl: Kubectl) -> Snapshot:
    """What is in the namespace of `kubectl` now, and all slices; by one call, as each costs a tenth of a second."""
    found = kubectl.get_all("pods,resourceclaims,events,resourceslices")
    by_kind: dict[str, list[Object]] = {}
    for obj in found:
        by_kind.setdefault(obj["kind"], []).append(obj)
    kinds = ("Pod", "ResourceClaim", "Event", "ResourceSlice")
    return Snapshot(*(by_kind.get(kind, []) for kind in kinds))


def _is_over(seen: Snapshot) -> bool:
    return bool(seen.pods) and all(_is_answered(seen, item) for item in seen.pods)


def _is_answered(seen: Snapshot, found: Object) -> bool:
    return bool(found["spec"].get("nodeName") or seen.told(found, ""))


def _outcome(seen: Snapshot, found: Object) -> str:
    told = [f"{reason}: {text}" for reason, text in seen.told(found, "")]
    if found["spec"].get("nodeName"):
        got = [
            f"{request}: {', '.join(device.id for device in devices)}"
            for request, devices in seen.devices(found).items()
        ]
        return f"on {found['spec']['nodeName']}, {'; '.join(got) or 'without devices'}"
    if any(gate["name"] == GATE for gate in found["spec"].get("schedulingGates") or ()):
        return f"waits. {' | '.join(told) or 'nobody says why'}"
    return f"not gated, not scheduled. {' | '.join(told) or 'nobody says why'}"


def batches_of(paths: Iterable[Path]) -> tuple[list[Batch], list[Row]]:
    """The files of paths (files, or folders with all below them), and those that are no YAML."""
    batches, failures = [], []
    for path in paths:
        files = sorted(path.rglob("*.y*ml")) if path.is_dir() else [path]
        for file in files:
            name = f"{file.parent.name}/{file.name}"
            try:
                beside = [obj for other in sorted(file.parent.glob("*.y*ml")) for obj in _known(other)]
                batches.append(Batch(name, list(_known(file)), beside))
            except ValueError as error:
                failures.append(Row(name, "file", f"not readable: {error}"))
    return batches, failures


def _known(file: Path) -> Iterator[Object]:
    """Objects with a kind and metadata; nothing else can be applied."""
    for obj in documents(file):
        if "kind" in obj and "metadata" in obj:
            yield obj


def run(kubectl: Kubectl, paths: Sequence[Path], devices: Sequence[Path]) -> Iterator[Row]:
    """All rows, as they come."""
    batches, failures = batches_of(paths)
    fleets, more = batches_of(devices)
    yield from (*failures, *more)
    feeder = Feeder(kubectl)
    yield from feeder.publish([*fleets, *batches])
    for batch in batches:
        if batch.used():
            yield from feeder.feed(batch)
    feeder.withdraw([*fleets, *batches])


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.feed", description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path, help="manifests, or folders of them")
    parser.add_argument(
        "--devices", action="append", default=[], type=Path, help="published before; may be repeated"
    )
    parser.add_argument(
        "--kubeconfig", type=Path, help="a control plane where the operator runs; one is started without"
    )
    arguments = parser.parse_args(argv)
    if arguments.kubeconfig:
        _print(run(Kubectl(arguments.kubeconfig), arguments.paths, arguments.devices))
        return 0
    with (
        ControlPlane.start() as control_plane,
        OperatorProcess.start(control_plane, install(control_plane), "--settle-seconds=1"),
    ):
        _print(run(control_plane.kubectl, arguments.paths, arguments.devices))
    return 0


def _print(rows: Iterable[Row]) -> None:
    for row in rows:
        print(row.text(), flush=True)


if __name__ == "__main__":
    sys.exit(main())
