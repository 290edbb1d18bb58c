"""The flag `--feature-gates`, for the commands that have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dra_operator.lint import gates

if TYPE_CHECKING:
    from collections.abc import Callable

TEXT = "Feature gates of the API server, as it takes them; those of Kubernetes 1.37 by default."


def feature_gates(text: str = TEXT) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The flag; a command gets the texts as `gates`, which `lint.gates.read` takes."""
    return click.option(
        "--feature-gates", "gates", multiple=True, metavar="GATE=true|false,…", callback=_checked, help=text
    )


def _checked(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
    try:
        gates.read(texts)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    return texts
