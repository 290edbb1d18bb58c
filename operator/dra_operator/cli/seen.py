"""What a command sees of devices and claims: a cluster as far as its user may read it, a snapshot, or files. Reads only.

Raw objects go straight into the model, page by page. What could not be read is told, with what that means for what is shown.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from dra_operator.cluster import Unreadable
from dra_operator.errors import ApiForbidden, DraError, InvalidObject
from dra_operator.features import DEFAULT_1_37, Features
from dra_operator.lint import gates
from dra_operator.model import KINDS, from_json, held_allocation
from dra_operator.survey import pool_rows, survey

from .snapshots import load
from .stock import Stock
from .where import one_source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dra_operator.kube import Api
    from dra_operator.kube.kinds import Kind
    from dra_operator.model import Value
    from dra_operator.survey import Known, PoolRow, Survey

    from .where import Where

CLAIM: Final = "ResourceClaim"
OF_CLAIMS: Final = (CLAIM, "Pod")
OF_DEVICES: Final = ("ResourceSlice", CLAIM, "DeviceTaintRule")
OF_ALL: Final = (*OF_DEVICES, "Pod")
"""Kinds by what is to be shown, the one without which there is nothing to show first."""

MEANS: Final = {
    "ResourceSlice": "devices are not shown",
    CLAIM: "nobody knows who holds devices, and all look free",
    "DeviceTaintRule": "taints of DeviceTaintRules are not shown",
    "Pod": "pods that wait are not shown",
}
"""Kind → what it means that it could not be read."""

files_flag = click.option(
    "-f",
    "--filename",
    "named",
    multiple=True,
    type=click.Path(),
    metavar="FILE",
    help="Look at manifests instead of a cluster: a file or folder; - for stdin. As often as you like.",
)


@contextmanager
def uncollected() -> Iterator[None]:
    """Nobody looks for cycles of objects meanwhile: of 40,000 devices, which make none, that takes longer than reading them."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


@dataclass(slots=True)
class Seen:
    """What could be read.

    Attributes:
        cluster: devices and claims.
        namespace: whose claims are in it; empty for all.
        features: Kubernetes' switches, as far as they are known.
        now: by which ages are told; for a snapshot when it was taken.
        notes: what could not be read, a sentence each.
        missed: kinds that could not be read, with the server's words.
    """

    cluster: Known
    namespace: str = ""
    features: Features = DEFAULT_1_37
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    notes: list[str] = field(default_factory=list)
    missed: dict[str, str] = field(default_factory=dict)

    def miss(self, kind: str, why: str) -> None:
        """Note that a kind could not be read."""
        self.missed[kind] = why
        self.notes.append(f"Not read: {kind}, so {MEANS[kind]}: {why}")

    def tell_narrow(self, kinds: Sequence[str]) -> None:
        """Note that devices are shown, and not the claims of all namespaces."""
        if kinds[0] != CLAIM and self.namespace:
            text = f"Only claims of namespace {self.namespace} count: devices that others hold look free"
            self.notes.append(text)

    @uncollected()
    def survey(self) -> Survey:
        """What there is, and who holds it."""
        return survey(self.cluster, self.features)

    @uncollected()
    def pools(self) -> tuple[PoolRow, ...]:
        """Of that only the pools, for less."""
        return pool_rows(self.cluster, self.features)

    def tell(self) -> None:
        """Say on stderr what could not be read."""
        for note in self.notes:
            click.echo(f"{note.rstrip('.')}.", err=True)


@uncollected()
def look(where: Where, kinds: Sequence[str], named: Sequence[str] = ()) -> Seen:
    """Read what a command shows, and say what could not be read.

    Args:
        where: cluster or snapshot.
        kinds: what is to be shown: `OF_CLAIMS`, which belong to the namespace of the context unless told otherwise, or another, for which all namespaces count.
        named: files and folders instead of both.

    Raises:
        click.ClickException: what matters most cannot be read; names the remedy.
    """
    try:
        seen = gather(where, kinds, named)
    except ApiForbidden as error:
        raise click.ClickException(f"{error}. {_remedy(where, kinds)}") from error
    except DraError as error:
        raise click.ClickException(str(error)) from error
    seen.tell()
    return seen


def gather(where: Where, kinds: Sequence[str], named: Sequence[str] = ()) -> Seen:
    """As `look`, for commands with words of their own for what cannot be read.

    Raises:
        InvalidInput: the snapshot cannot be used.
        ApiError: the cluster cannot be asked; ApiForbidden: for what matters most.
    """
    if named:
        return _given(where, kinds, named)
    if where.snapshot is not None:
        return _stored(where.snapshot, where.namespace, kinds)
    import asyncio

    return asyncio.run(_live(where, kinds))


def _remedy(where: Where, kinds: Sequence[str]) -> str:
    if kinds[0] == CLAIM:
        return where.remedy
    return "Ask for the right to list resourceslices.resource.k8s.io, or look at your own claims: kubectl dra claims"


# --- files


def _given(where: Where, kinds: Sequence[str], named: Sequence[str]) -> Seen:
    from dra_operator.lint import report

    from .files import read
    from .simulate import begin

    if where.snapshot is not None:
        raise click.UsageError("--from names a snapshot, and --filename files: name one of them")
    one_source(named, "--filename names files")
    found = begin(where.namespace or "default", ())
    found.add(read(named, recursive=True))
    if found.findings:
        click.echo(report.text(found.findings).plain, err=True)
    # Who holds devices is given whole; a namespace is that of objects that name none.
    namespace = (where.namespace or "") if kinds[0] == CLAIM else ""
    return Seen(found.given.cluster(), namespace, found.given.features)


# --- snapshots


def _stored(name: str, namespace: str | None, kinds: Sequence[str]) -> Seen:
    snapshot = load(name)
    snapshot.check(kinds[0])
    facts = snapshot.facts
    stock = Stock()
    seen = Seen(
        stock,
        snapshot.namespace(namespace) if kinds[0] == CLAIM else namespace or "",
        gates.features(gates.read(facts.feature_gates.named)),
        datetime.fromisoformat(facts.taken_at),
    )
    unread = {one.kind: one.message for one in facts.not_read}
    for kind in kinds:
        if kind in unread:
            seen.miss(kind, unread[kind])
        else:
            _fill(stock, kind, snapshot.texts(kind, seen.namespace))
    seen.tell_narrow(kinds)
    return seen


def _fill(stock: Stock, kind: str, texts: Iterable[msgspec.Raw]) -> None:
    values, failed = decoded(kind, texts)
    for text, error in failed if kind == CLAIM else ():
        stock.hold_unreadable(unreadable(msgspec.json.decode(text), error))
    stock.take(values)


def decoded(
    kind: str, texts: Iterable[msgspec.Raw]
) -> tuple[list[Value], list[tuple[msgspec.Raw, InvalidObject]]]:
    """The objects, and the texts that are none, with what is wrong. As `kube.listing.listed`, which would load a client of clusters."""
    values: list[Value] = []
    failed: list[tuple[msgspec.Raw, InvalidObject]] = []
    for text in texts:
        try:
            values.append(from_json(KINDS[kind], bytes(text)))
        except InvalidObject as error:
            failed.append((text, error))
    return values, failed


def unreadable(raw: dict[str, Any], error: InvalidObject) -> Unreadable:
    """A claim that cannot be decoded, as the model keeps it."""
    metadata = raw.get("metadata") or {}
    key = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    return Unreadable(key, str(metadata.get("uid", "")), None, str(error), held_allocation(raw))


# --- clusters


async def _live(where: Where, kinds: Sequence[str]) -> Seen:
    from dra_operator.kube import Api

    async with await Api.connect(where.kubeconfig, where.context) as api:
        return await read(api, where, kinds)


async def read(api: Api, where: Where, kinds: Sequence[str]) -> Seen:
    """Read a cluster. Whoever may not list the claims of all namespaces sees those of his own.

    Raises:
        ApiForbidden: the kind that matters most may not be listed.
        ApiError: the server cannot be asked.
    """
    from dra_operator.kube.discovery import look as served_by

    own = (await api.credentials.current()).namespace
    named = where.namespace
    stock = Stock()
    seen = Seen(stock, (own if named is None else named) if kinds[0] == CLAIM else named or "")
    served = (await served_by(api)).kinds
    for kind in kinds:
        if kind not in served:
            continue
        try:
            await _take(api, served[kind], seen.namespace, stock)
        except ApiForbidden as error:
            if kind == kinds[0]:
                raise
            if kind != CLAIM or named is not None or not await _take_own(api, served[kind], own, stock):
                seen.miss(kind, str(error))
            else:
                seen.namespace = own
    seen.tell_narrow(kinds)
    return seen


async def _take(api: Api, kind: Kind, namespace: str, stock: Stock) -> None:
    from dra_operator.kube.listing import list_all

    listing = await list_all(api, kind, namespace=namespace)
    stock.take(listing.objects)
    if kind.name == CLAIM:
        for one in listing.rejected:
            stock.hold_unreadable(unreadable(msgspec.json.decode(one.raw), one.error))


async def _take_own(api: Api, kind: Kind, own: str, stock: Stock) -> bool:
    """Take the claims of the own namespace, in the place of all. Returns: whether that is allowed."""
    try:
        await _take(api, kind, own, stock)
    except ApiForbidden:
        return False
    return True
