"""`kubectl dra snapshot`: all that decisions hang on, out of a cluster into one file. `snapshots` has its form, `simulation.keeping` says what is kept.

Objects go through a file of their own, page by page, so that a large cluster takes no memory: what stays is where each of them lies. It must not
write to the cluster, and never writes what `keeping` does not keep.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import click
import msgspec

from dra_operator import __version__
from dra_operator.errors import ApiForbidden, ApiGone, DraError, InvalidObject
from dra_operator.lint.gates import of_version

from .gates import feature_gates
from .snapshots import FORM, NEEDED, Facts, Gates, LeftOut, NotRead
from .where import Where

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dra_operator.kube import Api
    from dra_operator.kube.kinds import Kind

INCOMPLETE: Final = 3
"""Exit status of a snapshot with which nothing can be simulated, as a kind that is needed is missing."""

TRIES: Final = 3
"""Of listing a kind whose list the server threw away between two pages. Arbitrary: pages take milliseconds, and it keeps lists for minutes."""

SHOWN: Final = 4
"""Objects left out that are told one by one. Arbitrary; the file has them all."""


class Spool:
    """The objects of kinds, on disk, to be had in the order of their names."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._places: dict[str, dict[tuple[str, str], tuple[int, int]]] = {}
        self._end = 0
        self.left_out: list[LeftOut] = []

    def begin(self, kind: str) -> None:
        """Forget what there is of a kind: its list begins anew."""
        self._places[kind] = {}
        self.left_out = [one for one in self.left_out if one.kind != kind]

    def add(self, kind: str, raw: dict[str, Any]) -> None:
        """Keep what a snapshot keeps of an object."""
        from dra_operator.simulation.keeping import kept

        metadata = raw.get("metadata") or {}
        namespace, name = str(metadata.get("namespace", "")), str(metadata.get("name", ""))
        try:
            text = msgspec.json.encode(kept(raw))
        except InvalidObject as error:
            self.left_out.append(LeftOut(kind, namespace, name, str(error)))
            return
        self._places[kind][namespace, name] = (self._end, len(text))
        self._file.write(text)
        self._end += len(text)

    def texts(self) -> Iterator[bytes]:
        """All objects, by kind, namespace and name."""
        for kind in sorted(self._places):
            for _, (start, length) in sorted(self._places[kind].items()):
                self._file.seek(start)
                yield self._file.read(length)

    def __len__(self) -> int:
        """Objects that are kept."""
        return sum(map(len, self._places.values()))


async def take(where: Where, flags: Sequence[str], spool: Spool) -> Facts:
    """Read the cluster into the spool.

    Claims come first, as in `drift`: a consumer of theirs that is not among the pods listed later is gone.

    Args:
        where: the cluster.
        flags: feature gates that are named.
        spool: where objects go.

    Raises:
        ApiForbidden: nothing may be listed.
        ApiError: the server cannot be asked.
    """
    from dra_operator.kube import Api
    from dra_operator.kube.discovery import look
    from dra_operator.kube.kinds import KINDS
    from dra_operator.simulation.given import GROUPS

    taken_at = datetime.now(UTC)
    async with await Api.connect(where.kubeconfig, where.context) as api:
        served = await look(api)
        not_read: list[NotRead] = []
        kinds = [name for name in KINDS if name in GROUPS and name in served.kinds]
        for name in sorted(kinds, key=lambda name: name != "ResourceClaim"):
            try:
                await _list(api, served.kinds[name], spool)
            except ApiForbidden as error:
                not_read.append(NotRead(name, str(error)))
                if len(not_read) == len(kinds):
                    raise
        namespace = where.namespace or (await api.credentials.current()).namespace
    return Facts(
        form=FORM,
        taken_at=taken_at.isoformat(timespec="seconds").replace("+00:00", "Z"),
        taken_by=f"kubectl-dra {__version__}",
        server_version=served.server_version,
        minor=served.minor,
        namespace=namespace,
        served={name: served.kinds[name].api_version for name in sorted(kinds)},
        feature_gates=Gates(tuple(flags), tuple(sorted(of_version(served.minor)))),
        not_read=tuple(sorted(not_read, key=lambda one: one.kind)),
        left_out=tuple(sorted(spool.left_out, key=lambda one: (one.kind, one.namespace, one.name))),
    )


async def _list(api: Api, kind: Kind, spool: Spool) -> None:
    from dra_operator.kube.listing import raw_pages

    for remaining in reversed(range(TRIES)):
        spool.begin(kind.name)
        try:
            async for page in raw_pages(api, kind):
                for raw in page:
                    spool.add(kind.name, raw)
        except ApiGone:
            if not remaining:
                raise
        else:
            return


def write(facts: Facts, spool: Spool, put: Callable[[bytes], object]) -> None:
    """The file: the facts on its first line, then an object a line."""
    about = json.dumps(msgspec.to_builtins(facts), ensure_ascii=False)
    put(f'{{"apiVersion":"v1","kind":"List","snapshot":{about},"items":['.encode())
    between = b"\n"
    for text in spool.texts():
        put(between + text)
        between = b",\n"
    put(b"\n]}\n")


@contextmanager
def opened(name: str) -> Iterator[Callable[[bytes], object]]:
    """What writes to the file; gzipped, without a time of its own, if its name says so."""
    if name == "-":
        yield sys.stdout.buffer.write
        sys.stdout.buffer.flush()
    elif name.endswith(".gz"):
        with Path(name).open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file:
            yield file.write
    else:
        with Path(name).open("wb") as file:
            yield file.write


@click.command("snapshot")
@click.option(
    "-o",
    "--output",
    default="-",
    metavar="FILE",
    help="File to write; gzipped if its name ends with .gz; - for stdout, the default.",
)
@click.option(
    "-n", "--namespace", help="Namespace of objects that are given beside the snapshot and name none."
)
@click.option("--kubeconfig", envvar="KUBECONFIG", help="Path of the kubeconfig.")
@click.option("--context", help="Context of the kubeconfig; its current one by default.")
@feature_gates(
    "Feature gates that the API server has otherwise than its version has by default; they cannot be asked for."
)
def snapshot_command(output: str, gates: tuple[str, ...], **options: str | None) -> None:
    """Take all that decisions hang on out of a cluster into one file, for --from of other commands; changes nothing.

    Slices, classes, claims, templates, pods, nodes, taint rules, policies, volumes: of all namespaces, without secrets. What drivers' configs say is replaced by digests;
    of pods there is neither image, command, environment nor status of containers. docs/snapshot.md lists all of it.

    Exit status: 0 taken; 3 taken, but without a kind that is needed to simulate; 1 not taken.
    """
    import asyncio

    where = Where(options["namespace"], options["kubeconfig"], options["context"])
    try:
        with tempfile.TemporaryFile() as file:
            spool = Spool(file)
            facts = asyncio.run(take(where, gates, spool))
            with opened(output) as put:
                write(facts, spool, put)
    except DraError as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"{error.filename or output}: {error.strerror or error}") from error
    _tell(facts, spool, output)
    if NEEDED & {one.kind for one in facts.not_read}:
        sys.exit(INCOMPLETE)


def _tell(facts: Facts, spool: Spool, output: str) -> None:
    for missing in facts.not_read:
        click.echo(f"Not read: {missing.kind}: {missing.message}.", err=True)
    for left in facts.left_out[:SHOWN]:
        click.echo(f"Left out: {left.message}.", err=True)
    if len(facts.left_out) > SHOWN:
        click.echo(f"Left out: {len(facts.left_out) - SHOWN} more objects that cannot be decoded.", err=True)
    to = "" if output == "-" else f" to {output}"
    click.echo(f"{len(spool)} objects of {facts.server_version}{to}.", err=True)
