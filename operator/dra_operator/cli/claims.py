"""`kubectl dra claims`: a row a claim, out of claims and pods alone. Pure; `main` reads and prints."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from rich.table import Table

from dra_operator.words import listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dra_operator.model import NodeSelector, Pod, ResourceClaim


DIGITS: Final = "0123456789"

RUN: Final = 3
"""Devices from which on a run is shorter than its members."""

SHOWN: Final = 4
"""Pods that a cell of the table names; a claim may have 256. Arbitrary."""


@dataclass(frozen=True, slots=True)
class Holding:
    """What one claim holds.

    Attributes:
        namespace, claim: its name.
        state: `pending`, `allocated` (nobody has reserved it) or `in use`.
        devices: `driver/pool/device`, in the order of its results.
        node: where they are; `any` for devices of all nodes, `several` for a selector of more than one node, empty when
            pending.
        consumers: names of pods (or `resource/name` of other consumers) in `reservedFor`.
        waiting: pods that name the claim and are not bound yet.
    """

    namespace: str
    claim: str
    state: str
    devices: tuple[str, ...]
    node: str
    consumers: tuple[str, ...]
    waiting: tuple[str, ...]

    def to_object(self) -> dict[str, Any]:
        """Its JSON form."""
        return asdict(self)


def holdings(claims: Iterable[ResourceClaim], pods: Iterable[Pod]) -> list[Holding]:
    """A row for each claim, ordered by namespace and name."""
    waiting = _waiting(pods)
    return [_holding(claim, waiting.get(claim.key, ())) for claim in sorted(claims, key=lambda one: one.key)]


def table(rows: Sequence[Holding]) -> Table:
    """The rows as kubectl prints them: no lines, upper-case headings; long lists folded, which the JSON form has whole."""
    result = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False, header_style="")
    for heading in ("NAMESPACE", "CLAIM", "STATE", "DEVICES", "NODE", "CONSUMERS", "WAITING"):
        result.add_column(heading, overflow="fold")
    for row in rows:
        lists = (fold_devices(row.devices), listed(row.consumers, SHOWN), listed(row.waiting, SHOWN))
        result.add_row(row.namespace, row.claim, row.state, lists[0], row.node, lists[1], lists[2])
    return result


def fold_devices(devices: Iterable[str]) -> str:
    """`driver/pool/device`s in short: each pool once, in the order given; within it `gpu-0…gpu-7` for runs of numbers."""
    by_pool: dict[str, list[str]] = {}
    for device in devices:
        pool, _, name = device.rpartition("/")
        by_pool.setdefault(pool, []).append(name)
    return ", ".join(f"{pool}/{','.join(_runs(names))}" for pool, names in by_pool.items())


def _runs(names: Iterable[str]) -> Iterator[str]:
    """The names in the order of their numbers, with runs of `RUN` or more folded."""
    runs: list[list[str]] = []
    for name in sorted(names, key=_number):
        if runs and _next(runs[-1][-1]) == name:
            runs[-1].append(name)
        else:
            runs.append([name])
    for run in runs:
        yield from run if len(run) < RUN else [f"{run[0]}…{run[-1]}"]


def _number(name: str) -> tuple[str, int]:
    stem = name.rstrip(DIGITS)
    return stem, int(name[len(stem) :] or -1)


def _next(name: str) -> str:
    """The name with the next number, as wide as this one; empty if it has none."""
    stem, number = _number(name)
    return f"{stem}{str(number + 1).zfill(len(name) - len(stem))}" if number >= 0 else ""


def _holding(claim: ResourceClaim, waiting: Sequence[str]) -> Holding:
    allocation = claim.status.allocation
    consumers = tuple(
        consumer.name if consumer.resource == "pods" else f"{consumer.resource}/{consumer.name}"
        for consumer in claim.status.reserved_for
    )
    held = allocation.devices.results if allocation else ()
    return Holding(
        claim.metadata.namespace,
        claim.metadata.name,
        "pending" if allocation is None else "in use" if consumers else "allocated",
        tuple(str(result.device_id) for result in held),
        _node(allocation.node_selector) if allocation else "",
        consumers,
        tuple(waiting),
    )


def _node(selector: NodeSelector | None) -> str:
    """The one node of the canonical form (cp V-80), else a word."""
    if selector is None:
        return "any"
    match selector.node_selector_terms:
        case [term] if not term.match_expressions and len(term.match_fields) == 1:
            return ", ".join(term.match_fields[0].values)
        case _:
            return "several"


def _waiting(pods: Iterable[Pod]) -> dict[str, tuple[str, ...]]:
    """Claim key → names of pods that want it and are not bound."""
    found: dict[str, tuple[str, ...]] = {}
    for pod in pods:
        if pod.spec.node_name or pod.is_done:
            continue
        generated = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
        for entry in pod.spec.resource_claims:
            name = entry.resource_claim_name or generated.get(entry.name)
            if name:
                key = f"{pod.metadata.namespace}/{name}"
                found[key] = (*found.get(key, ()), pod.metadata.name)
    return found
