"""What `kubectl dra taint` shows: claims that a DeviceTaintRule would touch, pods that would be evicted. `simulation.eviction` decides.

Reads a cluster or a snapshot, and prints. It must never write: that is `kubectl apply`'s business. Imported by `taint` only when it is asked, as clients of clusters are
most of a command's start.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from dra_operator.allocator.taints import taint_text
from dra_operator.errors import ApiForbidden, InvalidInput
from dra_operator.kube import Api
from dra_operator.kube.kinds import KINDS
from dra_operator.kube.listing import list_all, listed
from dra_operator.model import (
    DeviceTaintRule,
    Pod,
    ResourceClaim,
    ResourceSlice,
    from_object,
    to_object,
)

from .claims import fold_devices
from .shown import dumped, print_table
from .snapshots import load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dra_operator.kube.listing import Listing
    from dra_operator.model import DeviceId, DeviceTaint, DeviceTaintSelector
    from dra_operator.simulation.eviction import Touched

    from .where import Where

CLAIM: Final = "ResourceClaim"
POD: Final = "Pod"
SLICE: Final = "ResourceSlice"
HEADINGS: Final = ("NAMESPACE", "CLAIM", "DEVICES", "POD", "NODE", "GOES")


@dataclass(slots=True)
class LookedAt:
    """What was read.

    Attributes:
        slices: None if they could not be read.
        notes: what could not be read, a sentence each.
    """

    claims: list[ResourceClaim] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)
    slices: list[ResourceSlice] | None = None
    notes: list[str] = field(default_factory=list)

    def take(self, kind: str, listing: Listing) -> None:
        """Take a list in."""
        if listing.rejected:
            count = len(listing.rejected)
            self.notes.append(f"{count} {kind}(s) cannot be decoded, and are not looked at")
        self.claims += [one for one in listing.objects if isinstance(one, ResourceClaim)]
        self.pods += [one for one in listing.objects if isinstance(one, Pod)]
        if kind == SLICE:
            self.slices = [one for one in listing.objects if isinstance(one, ResourceSlice)]


@dataclass(frozen=True, slots=True)
class Preview:
    """What one rule would do.

    Attributes:
        name: of the rule; empty for one that is given by arguments.
        selector, taint: of it.
        published: devices that it selects; None if slices could not be read.
        touched: claims that hold such devices; with the effect `None`, what `NoExecute` would do to them.
    """

    name: str
    selector: DeviceTaintSelector | None
    taint: DeviceTaint
    published: tuple[DeviceId, ...] | None
    touched: tuple[Touched, ...]

    @property
    def evicts(self) -> bool:
        """Whether its effect is one that evicts."""
        return self.taint.effect == "NoExecute"

    def going(self) -> dict[str, int]:
        """Pods (`namespace/name`) that would go, with the seconds until then: the least of their claims (cp T-9)."""
        found: dict[str, int] = {}
        for one in self.touched:
            for pod in one.pods if one.seconds is not None else ():
                found[pod.key] = min(found.get(pod.key, one.seconds or 0), one.seconds or 0)
        return found

    def to_object(self) -> dict[str, Any]:
        """Its JSON form."""
        going = self.going()
        return {
            **({"rule": self.name} if self.name else {}),
            "deviceSelector": None if self.selector is None else to_object(self.selector),
            "taint": to_object(self.taint),
            **({} if self.published is None else {"published": [str(one) for one in self.published]}),
            "claims": [
                {
                    "claim": one.claim,
                    "devices": [str(device) for device in one.devices],
                    "pods": [pod.key for pod in one.pods],
                    "tolerated": one.seconds is None,
                }
                for one in self.touched
            ],
            "evicted": [{"pod": key, "afterSeconds": going[key]} for key in sorted(going) if self.evicts],
        }


def preview(name: str, selector: DeviceTaintSelector | None, taint: DeviceTaint, seen: LookedAt) -> Preview:
    """What a rule would do to what was seen."""
    from dra_operator.simulation.eviction import NO_EXECUTE, published, touched

    # As upstream previews it (cp T-19).
    judged = msgspec.structs.replace(taint, effect=NO_EXECUTE) if taint.effect == "None" else taint
    devices = None if seen.slices is None else tuple(published(selector, seen.slices))
    return Preview(name, selector, taint, devices, tuple(touched(judged, selector, seen.claims, seen.pods)))


Rule = tuple[str, "DeviceTaintSelector | None", "DeviceTaint"]
"""Name, selector, taint."""


def named(device: str, taint: str) -> Rule:
    """The rule for a device and a taint, as one writes them.

    Raises:
        InvalidInput: one of them cannot be read.
    """
    from dra_operator.simulation.supposing import selector_of, taint_of

    return "", selector_of(device, device), taint_of(taint, taint)


def of_files(names: tuple[str, ...]) -> Iterator[Rule]:
    """The DeviceTaintRules of files, as `simulate` reads them.

    Raises:
        InvalidInput: something in them is wrong, or there is none.
    """
    from dra_operator.lint import ERROR

    from .files import read
    from .simulate import begin

    found = begin("default", ())
    found.add(read(names, recursive=True))
    for wrong in (one for one in found.findings if one.severity == ERROR):
        raise InvalidInput(
            wrong.file, f"{wrong.message}; `kubectl dra lint -f {wrong.file}` tells all that is wrong"
        )
    rules = found.given.raw("DeviceTaintRule").values()
    if not rules:
        raise InvalidInput(", ".join(names), "there is no DeviceTaintRule in it")
    for rule in (from_object(DeviceTaintRule, raw) for raw in rules):
        yield rule.metadata.name, rule.spec.device_selector, rule.spec.taint


def looked_at(where: Where) -> LookedAt:
    """Claims, pods and slices of the snapshot or the cluster, of all namespaces.

    Raises:
        InvalidInput, ApiError: claims or pods cannot be read.
    """
    if where.snapshot is None:
        return asyncio.run(_read(where))
    snapshot = load(where.snapshot)
    snapshot.check(CLAIM, POD)
    found = LookedAt()
    for kind in (CLAIM, POD):
        found.take(kind, listed(KINDS[kind], snapshot.texts(kind)))
    unread = {one.kind: one.message for one in snapshot.facts.not_read}
    if SLICE in unread:
        found.notes.append(f"{SLICE}s are not counted: {unread[SLICE]}")
    else:
        found.take(SLICE, listed(KINDS[SLICE], snapshot.texts(SLICE)))
    return found


async def _read(where: Where) -> LookedAt:
    found = LookedAt()
    async with await Api.connect(where.kubeconfig, where.context) as api:
        for kind in (CLAIM, POD, SLICE):
            try:
                found.take(kind, await list_all(api, KINDS[kind]))
            except ApiForbidden as error:
                if kind != SLICE:
                    raise
                found.notes.append(f"{SLICE}s are not counted: {error}")
    return found


# --- output


def show(previews: list[Preview], output: str) -> bool:
    """Print them. Returns: whether pods would go."""
    going = {key: None for one in previews if one.evicts for key in one.going()}
    if output == "name":
        for key in sorted(going):
            click.echo(f"pod/{key.partition('/')[2]}")
    elif output == "table":
        for one in previews:
            if one.touched:
                print_table(HEADINGS, list(_rows(one)))
            click.echo(_sentence(one), err=True)
    else:
        click.echo(dumped([one.to_object() for one in previews], output))
    return bool(going)


def _rows(preview: Preview) -> Iterator[tuple[str, ...]]:
    """A row a pod of a claim that is touched; a claim without pods has one all the same."""
    going = preview.going()
    for one in preview.touched:
        namespace, _, name = one.claim.partition("/")
        claim = namespace, name, fold_devices(map(str, one.devices))
        for pod in one.pods:
            when = _when(preview, one, going.get(pod.key))
            yield (*claim, pod.metadata.name, pod.spec.node_name, when)
        if not one.pods:
            yield (*claim, "", "", "")


def _when(preview: Preview, one: Touched, seconds: int | None) -> str:
    if not preview.evicts and preview.taint.effect != "None":
        return f"stays: {preview.taint.effect} evicts nobody"
    would = "" if preview.evicts else "with NoExecute: "
    if one.seconds is None and seconds is None:
        return f"{would}stays: tolerates it"
    by = "" if one.seconds == seconds else ", by another claim"
    return f"{would}at once{by}" if not seconds else f"{would}after {seconds} s{by}"


def _sentence(preview: Preview) -> str:
    """What it comes to."""
    subject = f"{preview.name}: " if preview.name else ""
    if preview.selector is None:
        return f"{subject}Without a deviceSelector it selects no device. To select all of them, write deviceSelector: {{}}."
    everything = not any((preview.selector.driver, preview.selector.pool, preview.selector.device))
    selected = (
        "devices" if preview.published is None else f"{len(preview.published)} published device(s) selected"
    )
    parts = [
        f"{selected}{', all that there are' if everything else ''}",
        f"{len(preview.touched)} claim(s) hold such",
    ]
    going = preview.going()
    late = sum(map(bool, going.values()))
    count = f"{len(going)} pod(s) would be evicted{f', {late} of them after a while' if late else ''}"
    if preview.evicts:
        parts.append(count)
    elif preview.taint.effect == "None":
        parts.append(f"None evicts nobody; with NoExecute {count}")
    else:
        parts.append(
            f"{preview.taint.effect} evicts nobody, and keeps new claims off that do not tolerate it"
        )
    return f"{subject}{taint_text(preview.taint)}: {'; '.join(parts)}. Nothing was written."
