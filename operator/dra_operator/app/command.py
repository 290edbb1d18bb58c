"""The command line. Parses, sets up the log, runs the loop, turns failures into an exit status."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from typing import Any

import click

from dra_operator import __version__
from dra_operator.errors import DraError, InvalidSettings
from dra_operator.settings import (
    BY_NAME,
    Group,
    SetCommand,
    Settings,
    build,
    chosen,
    options,
    origins,
    strays,
)

from .ending import ends_for_sure
from .logs import set_up
from .operator import run_operator
from .release import release as release_all

logger = logging.getLogger(__name__)

NAMES = """
Each setting can also be given as an environment variable (--settle-seconds as DRA_OPERATOR_SETTLE_SECONDS), or in the file that
--config names (settleSeconds: 15). A flag wins over the environment, the environment over the file. docs/settings.md has all
names, and a whole file.
"""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dra-operator")
def main() -> None:
    """Control plane for Kubernetes Dynamic Resource Allocation."""


@main.command(cls=SetCommand, epilog=NAMES)
@options()
def run(**flags: Any) -> None:
    """Run the operator until SIGTERM or SIGINT.

    Exit status: 0 after an orderly shutdown, 1 after a failure, 2 when the
    settings are wrong.
    """
    settings = prepare(**flags)
    try:
        status = asyncio.run(ends_for_sure(run_operator(settings)))
    except DraError as error:
        logger.error("cannot run: %s", error)  # noqa: TRY400 - the message is for the admin, a traceback tells nothing more
        status = 2 if isinstance(error, InvalidSettings) else 1
    except Exception:
        logger.exception("unexpected failure; the operator ends")
        status = 1
    sys.exit(status)


def _seconds(_: click.Context, parameter: click.Parameter, given: object) -> Any:
    """An option that is no setting, held to the range of those that are: click's own ranges let not-a-number pass."""
    return BY_NAME["settle_seconds"].value(given, parameter.opts[0], strict=False)


@main.command(cls=SetCommand, epilog=NAMES)
@options(Group.CONNECTION, Group.LOG, without="settle_seconds")
@click.option(
    "--settle-seconds",
    type=click.UNPROCESSED,  # `prepare` checks, as for all settings
    default=BY_NAME["settle_seconds"].default,
    envvar=BY_NAME["settle_seconds"].variable,
    metavar="NUMBER",
    help="Seconds that kube-scheduler is given to see the last allocations before it gets the pools back. A number from 0 to 3600. Default: 15.",
)
@click.option(
    "--wait-seconds",
    type=click.UNPROCESSED,
    callback=_seconds,
    default=60.0,
    metavar="NUMBER",
    help="Seconds that the operator's pods may take to end. A number from 0 to 3600. Default: 60.",
)
def release(wait_seconds: float, **flags: Any) -> None:
    """Give all pods and pools back to kube-scheduler, once the operator is
    stopped.

    Pods that wait at the operator's gate are released, its taint rules go, its
    finalizer and annotations are taken off. Allocated claims stay as they are.
    It may be run again at any time. manifests/uninstall.sh runs it as a Job,
    with the settings of the Deployment: all settings of `run` are taken.

    Exit status: 0 when nothing of the operator's is left, 1 when something
    could not be done or the operator still runs, 2 when the settings are wrong.
    """
    settings = prepare(**flags)
    try:
        status = asyncio.run(release_all(settings, wait_seconds))
    except DraError as error:
        logger.error("cannot release: %s", error)  # noqa: TRY400 - the message is for the admin
        status = 2 if isinstance(error, InvalidSettings) else 1
    sys.exit(status)


def prepare(**flags: Any) -> Settings:
    """What each command does first: check its settings, set up the log, say which settings are not at their defaults.

    Args:
        flags: as of the `options` decorator.

    Raises:
        InvalidSettings: they are wrong; `SetCommand` turns it into exit status 2.
    """
    places = origins(click.get_current_context())
    settings = build(places=places, **flags)
    set_up(settings.level, settings.log_format)
    words = ", ".join(f"{key} is {value}" for key, value in chosen(settings, places).items())
    logger.info("dra-operator %s; settings: %s", __version__, words or "all at their defaults")
    for name, meant in strays(os.environ).items():
        logger.warning("the environment variable %s sets nothing; did you mean %s?", name, meant)
    return settings
