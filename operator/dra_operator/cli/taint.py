"""`kubectl dra taint --dry-run`: the command and its flags; `touching` reads, and makes what it shows. It must never write."""

from __future__ import annotations

import sys
from typing import Any, Final

import click

from dra_operator.errors import ApiForbidden, DraError

from .where import Where, one_source, or_snapshot

GOING: Final = 3
"""Exit status if pods would go."""

RIGHTS: Final = "Whom a taint touches needs the right to list claims and pods in all namespaces"

LOOKS_ONLY: Final = "this command only looks, and writes nothing: say --dry-run. To taint devices, `kubectl apply -f` a DeviceTaintRule"


class TaintUnknown(click.ClickException):
    """It cannot be told: not to be mistaken for the exit status of pods that would go."""

    exit_code = 2


@click.command("taint")
@click.argument("device", required=False, metavar="[DRIVER/POOL/DEVICE")
@click.argument("taint", required=False, metavar="KEY[=VALUE]:EFFECT]")
@click.option(
    "-f",
    "--filename",
    "files",
    multiple=True,
    metavar="FILE",
    help="File with DeviceTaintRules; - for stdin.",
)
@click.option("--dry-run", is_flag=True, help="Only look. There is no other way: nothing is ever written.")
@click.option(
    "-o", "--output", type=click.Choice(["table", "json", "yaml", "name"]), default="table", show_default=True
)
@click.option("--kubeconfig", envvar="KUBECONFIG", help="Path of the kubeconfig.")
@click.option("--context", help="Context of the kubeconfig; its current one by default.")
@or_snapshot
def taint_command(device: str | None, taint: str | None, output: str, **options: Any) -> None:
    """Say which pods a DeviceTaintRule would evict, and which claims hold devices that it selects; changes nothing.

    The rule is given as a device and a taint (* stands for any pool or device), or by a file. Tolerations count as they stand in the allocations, with tolerationSeconds, and only
    those that name the effect NoExecute, as for kube-controller-manager. Disruption budgets do not: it does not ask them. Each rule is looked at by itself.

    Exit status: 0 no pod would go; 3 some would; 2 it cannot be told.
    """
    one_source(options["snapshot"])
    if not options["dry_run"]:
        raise click.UsageError(LOOKS_ONLY)
    if bool(options["files"]) == bool(device) or bool(device) != bool(taint):
        raise click.UsageError(
            "name a device and a taint, or a file: kubectl dra taint DRIVER/POOL/DEVICE KEY:EFFECT --dry-run"
        )
    where = Where("", options["kubeconfig"], options["context"], options["snapshot"])
    from .touching import looked_at, named, of_files, preview, show

    try:
        rules = [named(device, taint)] if device and taint else list(of_files(options["files"]))
        seen = looked_at(where)
    except ApiForbidden as error:
        raise TaintUnknown(f"{error}. {RIGHTS}") from error
    except DraError as error:
        raise TaintUnknown(str(error)) from error
    for note in seen.notes:
        click.echo(f"Note: {note}.", err=True)
    going = show([preview(name, selector, wanted, seen) for name, selector, wanted in rules], output)
    sys.exit(GOING if going else 0)
