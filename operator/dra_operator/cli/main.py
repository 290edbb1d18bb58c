"""The commands of `kubectl dra` and their flags; what they show is made in a module each."""

from __future__ import annotations

import asyncio
import json
import sys

import click
from rich.console import Console

from dra_operator import __version__
from dra_operator.errors import ApiForbidden, DraError
from dra_operator.kube import Api, Reader
from dra_operator.model import Pod, ResourceClaim

from .claims import holdings, table

MAY_NOT = {
    False: "Name a namespace of yours with --namespace; reading ResourceClaims and Pods there is enough, as in the role view",
    True: "Name a namespace of yours with --namespace instead of --all-namespaces",
}
"""What to do without the right to read, by whether all namespaces were asked for."""


@click.group()
@click.version_option(__version__, prog_name="kubectl-dra")
def main() -> None:
    """Who holds which devices (Kubernetes Dynamic Resource Allocation)."""


@main.command("claims")
@click.option("-n", "--namespace", help="Namespace to look into; that of the context by default.")
@click.option("-A", "--all-namespaces", is_flag=True, help="Look into all namespaces.")
@click.option("--kubeconfig", envvar="KUBECONFIG", help="Path of the kubeconfig.")
@click.option("--context", help="Context of the kubeconfig; its current one by default.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def claims_command(
    namespace: str | None, *, all_namespaces: bool, kubeconfig: str | None, context: str | None, output: str
) -> None:
    """List claims with their devices, node and consumers."""
    try:
        looked_at, claims, pods = asyncio.run(_read("" if all_namespaces else namespace, kubeconfig, context))
    except ApiForbidden as error:
        raise click.ClickException(f"{error}. {MAY_NOT[all_namespaces]}") from error
    except DraError as error:
        raise click.ClickException(str(error)) from error
    rows = holdings(claims, pods)
    if output == "json":
        click.echo(json.dumps([row.to_object() for row in rows], indent=2))
        return
    if not rows:
        click.echo(
            f"No claims found in {f'namespace {looked_at}' if looked_at else 'any namespace'}.", err=True
        )
    else:
        # Piped output must not be cut to a guessed width.
        Console(width=None if sys.stdout.isatty() else 10_000).print(table(rows))


async def _read(
    namespace: str | None, kubeconfig: str | None, context: str | None
) -> tuple[str, list[ResourceClaim], list[Pod]]:
    """The namespace (empty: all; None: the context's), and what is in it."""
    async with await Api.connect(kubeconfig, context) as api:
        if namespace is None:
            namespace = (await api.credentials.current()).namespace
        reader = Reader(api)
        claims = await reader.list("ResourceClaim", namespace)
        pods = await reader.list("Pod", namespace)
    return (
        namespace,
        [claim for claim in claims if isinstance(claim, ResourceClaim)],
        [pod for pod in pods if isinstance(pod, Pod)],
    )
