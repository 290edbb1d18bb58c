"""The end of the process, whatever the libraries' tasks do: called by `command` alone, around the operator as a whole.

asyncio waits without limit for cancelled tasks when a loop is closed. A task that swallows its cancellation (seen in Kopf, in the pause
after a broken connection) would keep a process alive that does nothing any more, and nothing would restart it. The operator is
crash-only: all that matters has been written by then.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable

logger = logging.getLogger(__name__)

GRACE_SECONDS = 10.0
"""How long the loop may take to close once the operator has ended. Arbitrary; with its own shutdown well within the 30 s of a pod."""


async def ends_for_sure(operator: Awaitable[int], grace: float = GRACE_SECONDS) -> int:
    """Await the operator's exit status; from then on the process ends within `grace` seconds, with that status (1 after an error).

    Signals that ask for the end change nothing any more: one that comes while the loop closes would be told as an error of its own.
    """
    status = 1
    try:
        status = await operator
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        timer = threading.Timer(grace, _exit, (status,))
        timer.daemon = True
        timer.start()
    return status


def _exit(status: int) -> None:
    logger.error("a task does not end; the process ends all the same")
    logging.shutdown()
    os._exit(status)
