"""Entry point of the demo: starts server and operator, plays the story, and leaves nothing behind.

Exit status: 0 if everything happened as told, 1 if not, 128 + the signal's number if it was interrupted.
"""

from __future__ import annotations

import asyncio
import io
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from dra_operator.kube import Api
from dra_operator.testing.fakeapi import FakeApi

from . import story
from .children import child, kubeconfig
from .errors import DemoFailed
from .kubectl import Kubectl
from .mirror import Mirror
from .narrator import Narrator
from .screen import Screen
from .story import Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

MANIFESTS = Path(__file__).parent / "manifests"
CRD = Path("crds", "allocationpolicies.yaml")
STANDINS = ("binding", "kubelet", "gate")
OPERATOR = (
    "dra_operator",
    "run",
    "--generate-claims=always",
    "--settle-seconds=1",
    "--node-score=pack",  # so that one node stays whole for the pod that needs all of one
    "--leader-elect=false",
    "--http-host=127.0.0.1",
    "--http-port=0",
)
LIMIT = 60.0
"""Seconds that the whole may take; that it is quick is part of what it shows."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def find_crd() -> Path:
    """The CRD of the checkout that this package is part of, or of the current folder.

    Raises:
        DemoFailed: there is none.
    """
    for root in (Path(__file__).parents[4], Path.cwd()):
        if (root / CRD).is_file():
            return root / CRD
    raise DemoFailed(f"{CRD} not found: run the demo from a checkout of the project, as `make demo` does")


async def perform(home: Path, screen: Screen) -> None:
    """The whole demo; everything that it starts has ended when it returns.

    Args:
        home: an empty folder.
        screen: where it is shown.

    Raises:
        DemoFailed: something did not happen.
        BaseExceptionGroup: the same, when it was noticed besides the story.
    """
    crd = find_crd()
    kubectl = Kubectl(screen, home, MANIFESTS)
    async with FakeApi(STANDINS) as server, Api.at(server.url) as api:
        server.write_kubeconfig(kubeconfig(home))
        mirror = Mirror(api)
        stage = Stage(screen, kubectl, mirror, Narrator(mirror, screen))
        screen.step(
            "A Kubernetes API server, embedded in this process",
            f"It listens on {server.url}. Stand-ins for kube-scheduler's binding, kubelets and garbage collection are on; "
            "nothing but the operator generates or allocates claims.",
        )
        async with asyncio.TaskGroup() as group:
            await story.define(stage, crd)
            watches = [group.create_task(mirror.follow(kind)) for kind in mirror.kinds]
            await story.publish(stage)
            await with_operator(home, stage, group)
            for watch in watches:
                watch.cancel()
    check_time(screen.seconds)
    screen.step("What was shown")
    screen.table(("POD", "NODE", "DEVICES", "OUTCOME"), story.summary(stage))
    where = MANIFESTS.relative_to(Path.cwd()) if MANIFESTS.is_relative_to(Path.cwd()) else MANIFESTS
    screen.say(
        f"Each step was checked against the API. Done in {screen.seconds:.0f} s; nothing is left running. "
        f"The manifests are in {where}."
    )


def check_time(seconds: float) -> None:
    """Everything happened; it shall also have been quick.

    Raises:
        DemoFailed: it took longer than `LIMIT`.
    """
    if seconds > LIMIT:
        raise DemoFailed(
            f"everything happened as told, but it took {seconds:.0f} s and shall take {LIMIT:.0f} s at most; "
            "is this machine busy with something else?"
        )


async def with_operator(home: Path, stage: Stage, group: asyncio.TaskGroup) -> None:
    """The part of the story in which the operator runs.

    Raises:
        DemoFailed: something did not happen, or the operator did not end in good order.
    """
    stage.screen.step(
        "The operator, and the policy that gives it the pools",
        f"As a process of its own: python -m {' '.join(OPERATOR)}",
        "A DeviceTaintRule per driver keeps other allocators off. The operator uses the pools when the rules are a second old.",
    )
    async with child("operator", home, *OPERATOR, f"--kubeconfig={kubeconfig(home)}") as operator:
        watch = group.create_task(operator.watch())
        await story.own(stage)
        await story.play(stage)
        watch.cancel()
        await asyncio.wait([watch])


async def main() -> int:
    """Run the demo, and end in good order whatever happens.

    Returns: the exit status.
    """
    task, received = asyncio.current_task(), list[int]()
    assert task is not None

    def stop(number: int) -> None:
        if not received:
            task.cancel()
        received.append(number)

    for number in SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, stop, number)
    screen = Screen()
    screen.say(
        "dra-operator: from published devices to a running pod, with real kubectl and nothing of yours touched."
    )
    try:
        with tempfile.TemporaryDirectory(prefix="dra-operator-demo-") as folder:
            await perform(Path(folder), screen)
    except asyncio.CancelledError:
        if not received:
            raise
        print("\nInterrupted; everything that the demo had started has ended.", file=sys.stderr)
        return 128 + received[0]
    except (DemoFailed, BaseExceptionGroup) as error:
        for failure in failures(error):
            print(
                f"\nThe demo failed: {failure}", *getattr(failure, "__notes__", ()), sep="\n", file=sys.stderr
            )
        return 1
    return 0


def failures(error: BaseException) -> Iterator[DemoFailed]:
    """The failures in a group.

    Raises:
        BaseException: `error` is, or holds, something else: a fault of the demo itself.
    """
    if isinstance(error, DemoFailed):
        yield error
    elif isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from failures(part)
    else:
        raise error


def run() -> int:
    """The demo on a terminal that may not know all characters. Returns: the exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    return asyncio.run(main())


if __name__ == "__main__":
    sys.exit(run())
