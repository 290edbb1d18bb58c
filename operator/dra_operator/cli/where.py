"""Which cluster and namespace a command looks into: flags that all commands have, as kubectl has them."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MAY_NOT = {
    False: "Name a namespace of yours with --namespace; reading ResourceClaims and Pods there is enough, as in the role view",
    True: "Name a namespace of yours with --namespace instead of --all-namespaces",
}
"""What to do without the right to read, by whether all namespaces were asked for."""


@dataclass(frozen=True, slots=True)
class Where:
    """What the flags say.

    Attributes:
        namespace: empty for all, None for that of the context.
        kubeconfig, context: how to reach the API server; None for kubectl's defaults.
        snapshot: the file to look at instead of a cluster.
    """

    namespace: str | None
    kubeconfig: str | None
    context: str | None
    snapshot: str | None = None

    @property
    def remedy(self) -> str:
        """What to do without the right to read there."""
        return MAY_NOT[self.namespace == ""]


_OPTIONS = (
    click.option("-n", "--namespace", help="Namespace to look into; that of the context by default."),
    click.option("-A", "--all-namespaces", is_flag=True, help="Look into all namespaces."),
    click.option("--kubeconfig", envvar="KUBECONFIG", type=click.Path(), help="Path of the kubeconfig."),
    click.option("--context", help="Context of the kubeconfig; its current one by default."),
)


def located(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command these flags; it gets a `Where` as its first argument. With `or_snapshot` below it there is `--from`, too."""

    @functools.wraps(command)
    def wrapped(
        *,
        namespace: str | None,
        all_namespaces: bool,
        kubeconfig: str | None,
        context: str | None,
        snapshot: str | None = None,
        **others: Any,
    ) -> None:
        one_source(snapshot)
        command(Where("" if all_namespaces else namespace, kubeconfig, context, snapshot), **others)

    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


or_snapshot = click.option(
    "--from",
    "snapshot",
    type=click.Path(),
    metavar="FILE",
    help="Look at a snapshot (kubectl dra snapshot) instead of a cluster; - for stdin.",
)
"""The flag of commands that can do without a cluster."""


def one_source(snapshot: str | Sequence[str] | None, names: str = "--from names a snapshot") -> None:
    """Make sure that not both a snapshot and a cluster are named; the environment names none on purpose.

    Args:
        snapshot: the flag's value; files go as well.
        names: what the flag does.

    Raises:
        click.UsageError: they are.
    """
    context = click.get_current_context()
    for name in ("kubeconfig", "context"):
        if snapshot and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{names}, and --{name} a cluster: name one of them")


def in_words(namespace: str) -> str:
    """A namespace for the end of a sentence."""
    return f"namespace {namespace}" if namespace else "any namespace"
