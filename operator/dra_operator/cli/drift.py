"""`kubectl dra drift`: what is left over, lost, stuck or given twice, out of plain lists; `explain.drift` does the looking.

Reads and prints, as `main` asks; the same findings as the operator's own, whether one runs or not. One look cannot tell what is wrong
from what is under way, so there are two, and what only one of them found is left out. It must not write.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import yaml
from rich.table import Table

from dra_operator.cel import default_compiler
from dra_operator.cluster import Cluster
from dra_operator.errors import ApiForbidden
from dra_operator.explain.drift import Facts, Finding, findings
from dra_operator.features import DEFAULT_1_37
from dra_operator.kube.discovery import look
from dra_operator.kube.kinds import KINDS
from dra_operator.kube.listing import list_all, listed
from dra_operator.model import PoolId
from dra_operator.placement import PlacementOptions, Placer, Release

from .seen import unreadable
from .yamls import Quoting

if TYPE_CHECKING:
    from dra_operator.kube import Api
    from dra_operator.kube.kinds import Kind
    from dra_operator.kube.listing import Listing
    from dra_operator.model import Pod

    from .snapshots import Snapshot

READ = (
    "ResourceClaim",
    "Pod",
    "PodGroup",
    "AllocationPolicy",
    "DeviceTaintRule",
    "DeviceClass",
    "ResourceSlice",
    "Node",
)
"""Kinds that are read. Claims come before pods: a claim's consumer that is not among the pods listed later is gone."""


@dataclass(slots=True)
class View:
    """The cluster as this user may see it.

    Attributes:
        cluster: what was read.
        unseen: kinds that this user may not read, with the server's words.
        served: kinds that the server has.
    """

    cluster: Cluster = field(default_factory=lambda: Cluster(DEFAULT_1_37))
    unseen: dict[str, str] = field(default_factory=dict)
    served: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Report:
    """What was found.

    Attributes:
        namespace: looked into; empty for all.
        findings: in the order of their table.
        unseen: kinds that this user may not read, with the server's words.
    """

    namespace: str
    findings: tuple[Finding, ...]
    unseen: dict[str, str]

    def text(self, output: str) -> str:
        """All of it as JSON or YAML, or the objects alone as kubectl names them."""
        if output == "name":
            return "\n".join(dict.fromkeys(_name(finding) for finding in self.findings))
        whole = {"findings": [finding.to_object() for finding in self.findings], "notSeen": self.unseen}
        return (
            json.dumps(whole, indent=2)
            if output == "json"
            else yaml.dump(whole, Dumper=Quoting, sort_keys=False).rstrip()
        )

    def table(self) -> Table:
        """A row a finding, as kubectl prints tables."""
        result = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False, header_style="")
        for heading in ("FINDING", "OBJECT", "WHAT"):
            result.add_column(heading, overflow="fold")
        for finding in self.findings:
            result.add_row(finding.finding, f"{finding.kind} {finding.key}", finding.message)
        return result

    def blind_spots(self) -> str:
        """What could not be seen; empty if everything could."""
        if not self.unseen:
            return ""
        return f"Not looked for: findings that need {', '.join(self.unseen)}, which you may not list there."


async def examine(api: Api, namespace: str, *, replace: bool, apart: float) -> Report:
    """Look twice, so many seconds apart (once for 0), and tell what both looks found.

    Raises:
        ApiForbidden: this user may read neither claims nor pods there.
        ApiError: the server cannot be asked.
    """
    found, unseen = await _once(api, namespace, replace=replace)
    if found and apart:
        before = {(finding.finding, finding.uid) for finding in found}
        await asyncio.sleep(apart)
        again, unseen = await _once(api, namespace, replace=replace)
        found = [finding for finding in again if (finding.finding, finding.uid) in before]
    return Report(namespace, tuple(found), unseen)


def examine_snapshot(snapshot: Snapshot, named: str | None, *, replace: bool) -> Report:
    """Look once: what was under way when the snapshot was taken is found, too, as nobody can look again.

    Raises:
        InvalidInput: it has neither claims nor pods.
    """
    namespace = snapshot.namespace(named)
    view = View(served=frozenset(snapshot.facts.served))
    view.unseen = {one.kind: one.message for one in snapshot.facts.not_read if one.kind in READ}
    if {"ResourceClaim", "Pod"} <= view.unseen.keys():
        snapshot.check("ResourceClaim", "Pod")
    for name in READ:
        if name in view.served and name not in view.unseen:
            _fill(view, KINDS[name], listed(KINDS[name], snapshot.texts(name, namespace)))
    now = datetime.fromisoformat(snapshot.facts.taken_at)
    return Report(namespace, tuple(_looked(view, namespace, now, replace=replace)), view.unseen)


async def _once(api: Api, namespace: str, *, replace: bool) -> tuple[list[Finding], dict[str, str]]:
    view = await _read(api, namespace)
    return _looked(view, namespace, datetime.now(UTC), replace=replace), view.unseen


def _looked(view: View, namespace: str, now: datetime, *, replace: bool) -> list[Finding]:
    found = findings(view.cluster, facts_of(view, now, replace=replace))
    # What belongs to no namespace is whoever's business who looks into all of them.
    return [finding for finding in found if namespace in {"", finding.namespace}]


async def _read(api: Api, namespace: str) -> View:
    served = (await look(api)).kinds
    view = View(served=frozenset(served))
    for name in READ:
        if name in served:
            try:
                await _take(api, served[name], namespace, view)
            except ApiForbidden as error:
                if {"ResourceClaim", "Pod"} <= {*view.unseen, name}:
                    raise
                view.unseen[name] = str(error)
    return view


async def _take(api: Api, kind: Kind, namespace: str, view: View) -> None:
    _fill(view, kind, await list_all(api, kind, namespace=namespace))


def _fill(view: View, kind: Kind, listing: Listing) -> None:
    view.cluster.replace(kind.name, listing.objects, listing.version)
    if kind.name == KINDS["ResourceClaim"].name:
        for rejected in listing.rejected:
            view.cluster.hold_unreadable(unreadable(json.loads(rejected.raw), rejected.error))


def facts_of(view: View, now: datetime, *, replace: bool) -> Facts:
    """What the lists do not tell. Nothing is known of attempts: what goes on is gone by the second look."""
    placer = Placer(
        view.cluster, default_compiler(), DEFAULT_1_37, PlacementOptions(replace=replace, selector_work=None)
    )

    def is_idle(pod: Pod) -> bool:
        return isinstance(placer.classify(pod), Release)

    policies = view.cluster.policies.values()
    owned = (pool for policy in policies for pool in policy.status.owned_pools)
    return Facts(
        now=now,
        is_idle=is_idle,
        expected={PoolId(pool.driver, pool.name): pool.name for pool in owned},
        rules_served="DeviceTaintRule" in view.served,
        # Where our own kind is not served any more there are no policies: what is left of them is just what is looked for.
        unseen=frozenset(view.unseen) | (set(READ) - view.served - {"AllocationPolicy"}),
    )


def _name(finding: Finding) -> str:
    kind = KINDS[finding.kind]
    singular = kind.name.lower() + (f".{kind.group}" if kind.group else "")
    return f"{singular}/{finding.name}"
