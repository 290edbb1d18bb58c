"""The whole model of a cluster, as deciding needs it: all kinds of all namespaces, out of a cluster, a snapshot or files. Reads only.

`seen` reads what is only to be shown, as far as the user may; here what decides must be there whole, or nothing true can be said.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import click
import msgspec

from dra_operator.cluster import Cluster
from dra_operator.errors import ApiForbidden, DraError
from dra_operator.features import DEFAULT_1_37, Features
from dra_operator.lint import gates
from dra_operator.model import KINDS

from .seen import CLAIM, decoded, unreadable
from .snapshots import NEEDED, load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dra_operator.cluster import Unreadable
    from dra_operator.model import Value

    from .where import Where

REMEDY: Final = "Ask for the right to list that in all namespaces, or have somebody who has it write a snapshot (kubectl dra snapshot)"


@dataclass(slots=True)
class Whole:
    """What was read.

    Attributes:
        cluster: the model.
        features: Kubernetes' switches, as far as they are known.
        own: the namespace of the context.
        notes: what could not be read, or was supposed, a sentence each.
    """

    cluster: Cluster
    features: Features = DEFAULT_1_37
    own: str = "default"
    notes: list[str] = field(default_factory=list)


def read(where: Where, named: Sequence[str] = ()) -> Whole:
    """The whole model; what was not read that is not needed is told on stderr.

    Args:
        where: cluster or snapshot.
        named: files and folders instead of both.

    Raises:
        click.ClickException: what decides cannot be read; names the remedy.
    """
    try:
        if named:
            found = _given(where, named)
        elif where.snapshot is not None:
            found = _stored(where.snapshot)
        else:
            import asyncio

            found = asyncio.run(_live(where))
    except ApiForbidden as error:
        raise click.ClickException(f"{error}. {REMEDY}") from error
    except DraError as error:
        raise click.ClickException(str(error)) from error
    for note in found.notes:
        click.echo(f"Note: {note.rstrip('.')}.", err=True)
    return found


def _given(where: Where, named: Sequence[str]) -> Whole:
    """What files have, with the claims that their pods would get from templates."""
    from dra_operator.lint import report
    from dra_operator.simulation.making import Maker

    from .files import read as read_files
    from .simulate import begin

    if where.snapshot is not None:
        raise click.UsageError("--from names a snapshot, and --filename files: name one of them")
    found = begin(where.namespace or "default", ())
    found.add(read_files(named, recursive=True))
    if found.findings:
        click.echo(report.text(found.findings).plain, err=True)
    if found.is_wrong:
        raise click.ClickException("some objects would be refused: see above, or `kubectl dra lint`")
    cluster = found.given.cluster()
    Maker(found.given, cluster).make()
    return Whole(cluster, found.given.features, found.given.namespace, [*found.notes, *found.given.notes])


def _stored(name: str) -> Whole:
    snapshot = load(name)
    snapshot.check(*sorted(NEEDED))
    facts = snapshot.facts
    features = gates.features(gates.read(facts.feature_gates.named))
    whole = Whole(Cluster(features), features, snapshot.namespace(None))
    whole.notes += facts.missing()
    for kind in (kind for kind in snapshot.kinds() if kind in KINDS):
        values, failed = decoded(kind, snapshot.texts(kind))
        whole.notes += [f"{error}: left out" for _, error in failed]
        held = [unreadable(msgspec.json.decode(text), error) for text, error in failed if kind == CLAIM]
        _fill(whole.cluster, kind, values, held)
    return whole


async def _live(where: Where) -> Whole:
    from dra_operator.kube import Api
    from dra_operator.kube.discovery import look as served_by
    from dra_operator.kube.listing import list_all

    async with await Api.connect(where.kubeconfig, where.context) as api:
        whole = Whole(Cluster(), own=(await api.credentials.current()).namespace)
        served = (await served_by(api)).kinds
        for name in (name for name in KINDS if name in served):
            try:
                listing = await list_all(api, served[name])
            except ApiForbidden as error:
                if name in NEEDED:
                    raise
                whole.notes.append(
                    f"Not read from the cluster: {name}, so that what it says does not count: {error}"
                )
                continue
            whole.notes += [f"{one.error}: left out" for one in listing.rejected]
            held = [
                unreadable(msgspec.json.decode(one.raw), one.error)
                for one in listing.rejected
                if name == CLAIM
            ]
            _fill(whole.cluster, name, listing.objects, held)
        return whole


def _fill(cluster: Cluster, kind: str, values: Sequence[Value], held: Sequence[Unreadable]) -> None:
    cluster.replace(kind, values)
    for one in held:
        cluster.hold_unreadable(one)
