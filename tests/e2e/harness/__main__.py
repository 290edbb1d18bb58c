"""Keeps a real control plane up until Ctrl-C, for a developer: `python -m tests.e2e.harness` (`make e2e KEEP=1`)."""

from __future__ import annotations

import argparse
import signal
import sys
from typing import TYPE_CHECKING

from tests.e2e.harness.build import BuildError
from tests.e2e.harness.cluster import ControlPlane, Options, StartError

if TYPE_CHECKING:
    from collections.abc import Sequence


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.harness", description=__doc__)
    parser.add_argument(
        "--controllers", default="*", help="kube-controller-manager's list (default: %(default)s)"
    )
    parser.add_argument(
        "--emulated-version", help="offer the features of an older minor version, such as 1.36"
    )
    parser.add_argument(
        "--without", action="append", default=[], help="component not to start; may be repeated"
    )
    return parser.parse_args(argv)


def _options(arguments: argparse.Namespace) -> Options:
    return Options(
        controllers=tuple(arguments.controllers.split(",")),
        emulated_version=arguments.emulated_version,
        without=frozenset(arguments.without),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Builds if needed, starts, prints the kubeconfig, waits for SIGINT or SIGTERM, stops."""
    try:
        control_plane = ControlPlane.start(_options(_arguments(argv)))
    except (BuildError, StartError) as error:
        print(error, file=sys.stderr)
        return 1
    _keep(control_plane)
    return 0


def _keep(control_plane: ControlPlane) -> None:
    """Until SIGINT or SIGTERM."""
    stop_signals = {signal.SIGINT, signal.SIGTERM}
    # Blocked only now: the components would inherit the mask and never see a SIGTERM.
    signal.pthread_sigmask(signal.SIG_BLOCK, stop_signals)
    with control_plane:
        print(f"export KUBECONFIG={control_plane.kubeconfig}")
        print(f"logs are in {control_plane.folder}; Ctrl-C stops and removes all", flush=True)
        signal.sigwait(stop_signals)


if __name__ == "__main__":
    sys.exit(main())
