"""The command line: `dra-operator run`. Parses, sets up the log, runs the loop, turns failures into an exit status."""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Any

import click

from dra_operator import __version__
from dra_operator.errors import DraError, InvalidSettings
from dra_operator.settings import build, options

from .ending import ends_for_sure
from .logs import set_up
from .operator import run_operator

logger = logging.getLogger(__name__)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dra-operator")
def main() -> None:
    """Control plane for Kubernetes Dynamic Resource Allocation."""


@main.command()
@options
def run(**flags: Any) -> None:
    """Run the operator until SIGTERM or SIGINT.

    Exit status: 0 after an orderly shutdown, 1 after a failure, 2 when the settings are wrong.
    """
    try:
        settings = build(**flags)
    except InvalidSettings as error:
        raise click.UsageError(str(error)) from error
    set_up(settings.level, settings.log_format)
    try:
        status = asyncio.run(ends_for_sure(run_operator(settings)))
    except InvalidSettings as error:
        raise click.UsageError(str(error)) from error
    except DraError as error:
        logger.error("cannot run: %s", error)  # noqa: TRY400 - the message is for the admin, a traceback tells nothing more
        status = 1
    sys.exit(status)
