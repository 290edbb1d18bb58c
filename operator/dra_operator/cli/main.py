"""The commands of `kubectl dra` and their flags; what they show is made in a module each.

What speaks with clusters is imported by the commands that do: it is most of their start, and `lint` mostly asks none.
"""

from __future__ import annotations

import io
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich.console import Console

from dra_operator import __version__
from dra_operator.errors import ApiForbidden, DraError, InvalidInput
from dra_operator.lint import Known, gates, report

from . import lint
from .claims import claims_command
from .completion import completion_command
from .devices import devices_command
from .explain import explain_command
from .files import in_repository, read
from .gates import feature_gates
from .pools import pools_command
from .shown import WIDE
from .snapshot import snapshot_command
from .snapshots import load
from .taint import taint_command
from .top import top_command
from .whatif import supposable, suppose
from .where import Where, in_words, located, one_source, or_snapshot
from .who import who_command

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from rich.table import Table

    from dra_operator.kube import Api
    from dra_operator.lint import Finding
    from dra_operator.simulation import Report as SimulationReport

    from .drift import Report
    from .simulate import Input

T = TypeVar("T")

OUTPUTS = ("table", "json", "yaml")

NODE_SCORES = ("spread", "pack", "name")
"""Values of `placement.NodeScore`, the default first: commands that place nothing need not know placement."""


_recursive = click.option(
    "-R/ ",
    "--recursive/--no-recursive",
    default=True,
    help="Folders with all below them (the default), or without, as kubectl takes them if it is not told -R.",
)
_namespace_of_files = click.option(
    "-n", "--namespace", help="Namespace of objects that name none; that of the context by default."
)
"""Flags of the commands that take files."""


@click.group()
@click.version_option(__version__, prog_name="kubectl-dra")
def main() -> None:
    """Who holds which devices, what is left over, and what is wrong with manifests (Kubernetes Dynamic Resource Allocation)."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(
            stream, io.TextIOWrapper
        ):  # names and lines of files may be of any language, and terminals are not
            stream.reconfigure(errors="backslashreplace")


class DriftUnknown(click.ClickException):
    """Whether there is any drift cannot be told: not to be mistaken for the exit status of findings."""

    exit_code = 2


for command in (
    claims_command,
    completion_command,
    devices_command,
    explain_command,
    pools_command,
    snapshot_command,
    taint_command,
    top_command,
    who_command,
):
    main.add_command(command)


@main.command("drift")
@located
@or_snapshot
@click.option(
    "-o", "--output", type=click.Choice(["table", "json", "yaml", "name"]), default="table", show_default=True
)
@click.option(
    "--mode",
    type=click.Choice(["cooperate", "replace"]),
    default="cooperate",
    show_default=True,
    help="Mode of the operator in this cluster: in replace, all pools are the operator's.",
)
@click.option(
    "--apart",
    type=click.FloatRange(0, 3600),
    default=5.0,
    show_default=True,
    help="Seconds between two looks; what only one of them finds is work under way. 0: one look.",
)
def drift_command(where: Where, output: str, mode: str, apart: float) -> None:
    """List what is left over, lost, stuck or given twice; changes nothing.

    In one namespace, what is wrong with its pods and claims; with --all-namespaces also with pools, nodes, policies and taint rules, and devices
    that claims of several namespaces hold.

    Exit status, as that of kubectl diff: 0 nothing found, 1 something found, 2 it cannot be told.
    """
    try:
        report = _examined(where, replace=mode == "replace", apart=apart)
    except ApiForbidden as error:
        raise DriftUnknown(f"{error}. {where.remedy}") from error
    except DraError as error:
        raise DriftUnknown(str(error)) from error
    if report.unseen:
        click.echo(report.blind_spots(), err=True)
    if output != "table":
        click.echo(report.text(output), nl=output != "name" or bool(report.findings))
    elif report.findings:
        _print(report.table())
    else:
        click.echo(f"No drift found in {in_words(report.namespace)}.", err=True)
    sys.exit(1 if report.findings else 0)


class LintUnusable(click.ClickException):
    """Nothing could be looked at: not to be mistaken for the exit status of findings."""

    exit_code = 2


@main.command("lint")
@click.option(
    "-f",
    "--filename",
    "named",
    multiple=True,
    metavar="FILE",
    help="File or folder; - for stdin. As often as you like.",
)
@click.argument("files", nargs=-1)
@click.option("-o", "--output", type=click.Choice(lint.OUTPUTS), default="text", show_default=True)
@_recursive
@click.option("--strict", is_flag=True, help="Exit with 1 for warnings, too.")
@feature_gates()
@_namespace_of_files
@click.option(
    "--kubeconfig", help="Path of a kubeconfig: ask that cluster for classes, slices, templates and claims."
)
@click.option("--context", help="Context of the kubeconfig: ask that cluster.")
def lint_command(named: tuple[str, ...], files: tuple[str, ...], output: str, **options: Any) -> None:
    """Check manifests as the API server would, and for what it takes and is wrong all the same; changes nothing.

    Looks at DeviceClasses, ResourceClaims and their templates, DeviceTaintRules, ResourceSlices, and at what pods (in whatever makes pods) say of claims:
    YAML or JSON, folders, Lists. What the files do not hold is asked of a cluster only if --kubeconfig or --context names one.

    Exit status: 0 nothing found, or warnings only; 1 errors (with --strict, warnings); 2 something could not be looked at.
    """
    if (not named and not files) or "" in (*named, *files):
        raise click.UsageError("name files or folders, or - for stdin: kubectl dra lint -f FILE")
    where = Where(options["namespace"], options["kubeconfig"], options["context"])
    known = replace(_told(where), gates=gates.read(options["gates"]))
    found = read((*named, *files), recursive=options["recursive"])
    findings, objects = lint.examine(found, known)
    _show(findings, objects, output)
    sys.exit(lint.status(findings, strict=options["strict"]))


class SimulationUnusable(click.ClickException):
    """Nothing could be simulated: not to be mistaken for the exit status of what is not placed."""

    exit_code = 2


@main.command("simulate")
@click.option(
    "-f",
    "--filename",
    "named",
    multiple=True,
    metavar="FILE",
    help="File or folder; - for stdin. As often as you like; later objects stand for earlier ones of their name.",
)
@click.argument("files", nargs=-1)
@click.option("-o", "--output", type=click.Choice(OUTPUTS), default="table", show_default=True)
@_recursive
@click.option(
    "-v", "--verbose", is_flag=True, help="Say what each decision cost: steps of the search, and more."
)
@click.option(
    "--node-score",
    type=click.Choice(NODE_SCORES),
    default=NODE_SCORES[0],
    show_default=True,
    help="Which of several nodes a pod gets, as the operator's setting.",
)
@feature_gates()
@_namespace_of_files
@click.option("--kubeconfig", help="Path of a kubeconfig: begin with what that cluster has.")
@click.option("--context", help="Context of the kubeconfig: begin with what that cluster has.")
@click.option(
    "--from",
    "snapshot",
    metavar="FILE",
    help="Begin with what a snapshot has (kubectl dra snapshot); - for stdin.",
)
@supposable
def simulate_command(named: tuple[str, ...], files: tuple[str, ...], output: str, **options: Any) -> None:
    """Say who would get which devices on which node, and why the others would get none; changes nothing.

    Takes ResourceSlices, DeviceClasses, ResourceClaims and their templates, pods and what makes pods, nodes, DeviceTaintRules and AllocationPolicies: YAML
    or JSON, folders, Lists. With --kubeconfig or --context a cluster's objects come first, with --from those of a snapshot, and the files on top of them. All pools are the operator's unless there are
    AllocationPolicies.

    Exit status: 0 all placed; 3 some not; 2 something could not be read, or is wrong.
    """
    one_source(options["snapshot"])
    where = Where(options["namespace"], options["kubeconfig"], options["context"], options["snapshot"])
    if "" in (*named, *files) or not (named or files or where.kubeconfig or where.context or where.snapshot):
        raise click.UsageError(
            "name files or folders, - for stdin, a snapshot or a cluster: kubectl dra simulate -f FILE"
        )
    from . import simulate

    found = _given(where, options["gates"])
    found.add(read((*named, *files), recursive=options["recursive"]))
    _make_ready(found, options)
    result = simulate.run(found, options["node_score"])
    _show_simulation(result, found, output, verbose=options["verbose"])
    sys.exit(simulate.status(result, found))


def _make_ready(found: Input, options: Mapping[str, Any]) -> None:
    """Tell what is wrong with what was read, and make suppositions true of it."""
    if found.findings:
        shown = Console(width=WIDE, highlight=False, soft_wrap=True, stderr=True)
        shown.print(report.text(found.findings))
    if found.is_empty:
        raise SimulationUnusable("there is no object to simulate with: name slices, classes, claims and pods")
    try:
        suppose(found, options)
    except InvalidInput as error:
        raise SimulationUnusable(str(error)) from error


def _given(where: Where, flags: tuple[str, ...]) -> Input:
    """What the snapshot or the cluster tells; nothing if none is named."""
    from .source import given

    try:
        return given(where, flags)
    except ApiForbidden as error:
        raise SimulationUnusable(
            f"{error}. To simulate, you need the right to list that in all namespaces"
        ) from error
    except DraError as error:
        raise SimulationUnusable(str(error)) from error


def _show_simulation(result: SimulationReport, found: Input, output: str, *, verbose: bool) -> None:
    from . import simulate

    for sentence in found.supposed:
        click.echo(f"Supposed: {sentence}.", err=True)
    for note in (*found.notes, *result.notes):
        click.echo(f"Note: {note}.", err=True)
    if verbose:
        for outcome in result.outcomes:
            click.echo(simulate.effort(outcome), err=True)
    if output != "table":
        click.echo(simulate.as_text(result, found, output))
    else:
        placed = [outcome for outcome in result.outcomes if outcome.is_placed]
        if placed:
            _print(simulate.table(placed))
        for sentence in simulate.taken_of_nodes(placed):
            click.echo(sentence)
        for paragraph in simulate.unplaced(result.outcomes):
            click.echo(paragraph)
    click.echo(simulate.summary(result), err=True)


def _told(where: Where) -> Known:
    """What the cluster tells; nothing but the namespace if none is named."""
    if where.kubeconfig is None and where.context is None:
        return Known(namespace=where.namespace or "")
    from .asked import ask

    try:
        known, unseen = _run(ask(where))
    except DraError as error:
        raise LintUnusable(str(error)) from error
    if unseen:
        click.echo(f"Not asked of the cluster: {', '.join(unseen)}, which you may not list.", err=True)
    return known


def _show(findings: list[Finding], objects: int, output: str) -> None:
    if output == "json":
        click.echo(report.as_json(findings))
    elif output == "github":
        click.echo(
            report.as_github([replace(finding, file=in_repository(finding.file)) for finding in findings]),
            nl=bool(findings),
        )
    elif findings:
        Console(width=WIDE, highlight=False, soft_wrap=True).print(report.text(findings))
    if output == "text":
        click.echo(report.summary(findings, objects), err=True)


def _print(shown: Table) -> None:
    Console(width=None if sys.stdout.isatty() else WIDE).print(shown)


def _run(work: Coroutine[Any, Any, T]) -> T:
    import asyncio

    return asyncio.run(work)


def _examined(where: Where, *, replace: bool, apart: float) -> Report:
    """What is wrong in the snapshot or the cluster."""
    if where.snapshot is None:
        return _run(_examine(where, replace=replace, apart=apart))
    from .drift import examine_snapshot

    return examine_snapshot(load(where.snapshot), where.namespace, replace=replace)


async def _examine(where: Where, *, replace: bool, apart: float) -> Report:
    from dra_operator.kube import Api

    from . import drift

    async with await Api.connect(where.kubeconfig, where.context) as api:
        return await drift.examine(api, await _namespace(api, where), replace=replace, apart=apart)


async def _namespace(api: Api, where: Where) -> str:
    return (await api.credentials.current()).namespace if where.namespace is None else where.namespace
