"""The commands of `kubectl dra` and their flags; what they show is made in a module each."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING

import click
from rich.console import Console

from dra_operator import __version__
from dra_operator.errors import ApiForbidden, DraError
from dra_operator.kube import Api, Reader
from dra_operator.model import Pod, ResourceClaim

from . import drift
from .claims import holdings, table
from .where import Where, in_words, located

if TYPE_CHECKING:
    from rich.table import Table

WIDE = 10_000
"""Columns of output that goes to no terminal: it must not be cut to a guessed width."""


@click.group()
@click.version_option(__version__, prog_name="kubectl-dra")
def main() -> None:
    """Who holds which devices, and what is left over (Kubernetes Dynamic Resource Allocation)."""


class DriftUnknown(click.ClickException):
    """Whether there is any drift cannot be told: not to be mistaken for the exit status of findings."""

    exit_code = 2


@main.command("claims")
@located
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def claims_command(where: Where, output: str) -> None:
    """List claims with their devices, node and consumers."""
    try:
        looked_at, claims, pods = asyncio.run(_read(where))
    except ApiForbidden as error:
        raise click.ClickException(f"{error}. {where.remedy}") from error
    except DraError as error:
        raise click.ClickException(str(error)) from error
    rows = holdings(claims, pods)
    if output == "json":
        click.echo(json.dumps([row.to_object() for row in rows], indent=2))
        return
    if not rows:
        click.echo(f"No claims found in {in_words(looked_at)}.", err=True)
    else:
        _print(table(rows))


@main.command("drift")
@located
@click.option("-o", "--output", type=click.Choice(drift.OUTPUTS), default="table", show_default=True)
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
        report = asyncio.run(_examine(where, replace=mode == "replace", apart=apart))
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


def _print(shown: Table) -> None:
    Console(width=None if sys.stdout.isatty() else WIDE).print(shown)


async def _examine(where: Where, *, replace: bool, apart: float) -> drift.Report:
    async with await Api.connect(where.kubeconfig, where.context) as api:
        return await drift.examine(api, await _namespace(api, where), replace=replace, apart=apart)


async def _read(where: Where) -> tuple[str, list[ResourceClaim], list[Pod]]:
    """The namespace (empty: all), and what is in it."""
    async with await Api.connect(where.kubeconfig, where.context) as api:
        namespace = await _namespace(api, where)
        reader = Reader(api)
        claims = await reader.list("ResourceClaim", namespace)
        pods = await reader.list("Pod", namespace)
    return (
        namespace,
        [claim for claim in claims if isinstance(claim, ResourceClaim)],
        [pod for pod in pods if isinstance(pod, Pod)],
    )


async def _namespace(api: Api, where: Where) -> str:
    return (await api.credentials.current()).namespace if where.namespace is None else where.namespace
