"""Which cluster and namespace a command looks into: flags that all commands have, as kubectl has them."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

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
    """

    namespace: str | None
    kubeconfig: str | None
    context: str | None

    @property
    def remedy(self) -> str:
        """What to do without the right to read there."""
        return MAY_NOT[self.namespace == ""]


_OPTIONS = (
    click.option("-n", "--namespace", help="Namespace to look into; that of the context by default."),
    click.option("-A", "--all-namespaces", is_flag=True, help="Look into all namespaces."),
    click.option("--kubeconfig", envvar="KUBECONFIG", help="Path of the kubeconfig."),
    click.option("--context", help="Context of the kubeconfig; its current one by default."),
)


def located(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command these flags; it gets a `Where` as its first argument."""

    @functools.wraps(command)
    def wrapped(
        *,
        namespace: str | None,
        all_namespaces: bool,
        kubeconfig: str | None,
        context: str | None,
        **others: Any,
    ) -> None:
        command(Where("" if all_namespaces else namespace, kubeconfig, context), **others)

    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


def in_words(namespace: str) -> str:
    """A namespace for the end of a sentence."""
    return f"namespace {namespace}" if namespace else "any namespace"
