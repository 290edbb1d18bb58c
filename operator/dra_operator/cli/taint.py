"""`kubectl dra taint --dry-run`: which claims a DeviceTaintRule would touch, and which pods would be evicted. `simulation.eviction` decides.

Reads a cluster or a snapshot, and prints. It must never write: that is `kubectl apply`'s business.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from dra_operator.allocator.taints import taint_text
from dra_operator.errors import ApiForbidden, DraError, InvalidInput
from dra_operator.model import DeviceTaintRule, from_object, to_object

from .claims import fold_devices
from .seen import CLAIM, gather
from .shown import dumped, print_table
from .where import Where, one_source, or_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dra_operator.model import DeviceId, DeviceTaint, DeviceTaintSelector
    from dra_operator.simulation.eviction import Touched

    from .seen import Seen

GOING: Final = 3
"""Exit status if pods would go."""

SLICE: Final = "ResourceSlice"
HEADINGS: Final = ("NAMESPACE", "CLAIM", "DEVICES", "POD", "NODE", "GOES")
RIGHTS: Final = "Whom a taint touches needs the right to list claims and pods in all namespaces"

LOOKS_ONLY: Final = "this command only looks, and writes nothing: say --dry-run. To taint devices, `kubectl apply -f` a DeviceTaintRule"


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
    try:
        rules = [_named(device, taint)] if device and taint else list(_of_files(options["files"]))
        seen = _seen(where)
    except ApiForbidden as error:
        raise TaintUnknown(f"{error}. {RIGHTS}") from error
    except DraError as error:
        raise TaintUnknown(str(error)) from error
    seen.tell()
    _show([preview(name, selector, wanted, seen) for name, selector, wanted in rules], output)


class TaintUnknown(click.ClickException):
    """It cannot be told: not to be mistaken for the exit status of pods that would go."""

    exit_code = 2


def preview(name: str, selector: DeviceTaintSelector | None, taint: DeviceTaint, seen: Seen) -> Preview:
    """What a rule would do to what was seen."""
    from dra_operator.simulation.eviction import NO_EXECUTE, published, touched

    # As upstream previews it (cp T-19).
    judged = msgspec.structs.replace(taint, effect=NO_EXECUTE) if taint.effect == "None" else taint
    cluster = seen.cluster
    devices = None if SLICE in seen.missed else tuple(published(selector, cluster.slices.all()))
    claims, pods = cluster.claims.values(), list(cluster.pods.values())
    return Preview(name, selector, taint, devices, tuple(touched(judged, selector, claims, pods)))


Rule = tuple[str, "DeviceTaintSelector | None", "DeviceTaint"]
"""Name, selector, taint."""


def _named(device: str, taint: str) -> Rule:
    from dra_operator.simulation.supposing import selector_of, taint_of

    return "", selector_of(device, device), taint_of(taint, taint)


def _of_files(names: tuple[str, ...]) -> Iterator[Rule]:
    """The DeviceTaintRules of files, as `simulate` reads them."""
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


def _seen(where: Where) -> Seen:
    """Claims, pods and slices of all namespaces.

    Raises:
        InvalidInput, ApiError: as `seen.gather`; also where pods may not be read.
    """
    seen = gather(where, (CLAIM, "Pod", SLICE))
    if "Pod" in seen.missed:
        raise InvalidInput("Pod", f"{seen.missed['Pod']}. {RIGHTS}")
    if seen.cluster.unreadable:
        count = len(seen.cluster.unreadable)
        seen.notes.append(f"{count} claim(s) cannot be decoded, and are not looked at")
    return seen


# --- output


def _show(previews: list[Preview], output: str) -> None:
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
    sys.exit(GOING if going else 0)


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
