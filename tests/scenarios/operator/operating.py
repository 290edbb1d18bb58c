"""The operator as the process of a scenario that starts many: `operate` runs in a process that was forked off one which has all of this loaded.

The program itself is run, by its command line. Besides, it writes down until when it takes itself for the leader, where the trial can read
it at any moment without asking; a process that is stopped gives no answer. May be told to do without one of its guards, to see that
the trial would notice.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from math import inf
from typing import TYPE_CHECKING, Any

from dra_operator.app import main
from dra_operator.cel import default_compiler
from dra_operator.features import DEFAULT_1_37
from dra_operator.kube.lease import Elector
from tests.chaos.mutant import without_epoch_touch

if TYPE_CHECKING:
    from collections.abc import Callable, MutableSequence, Sequence

BEGIN, END = 0, 1
"""Of the time within which the process believes that it may write, on the clock that all processes of a machine share; in its `belief`."""

NEVER = (inf, -inf)

default_compiler().compile(
    "true", DEFAULT_1_37
)  # the grammar takes a second to build: once, for all that are forked off


def operate(arguments: Sequence[str], log: str, belief: MutableSequence[float], without: str) -> None:
    """Be the operator, until it ends; the exit status is the program's.

    Args:
        arguments: of the command line.
        log: where its standard error goes; appended to.
        belief: two numbers in shared memory.
        without: a guard of `GUARDS` that is switched off; empty for none.
    """
    with open(log, "ab", buffering=0) as file:  # noqa: PTH123 - a descriptor is wanted
        os.dup2(file.fileno(), sys.stderr.fileno())
    threading.Thread(target=_end_with_the_trial, daemon=True).start()
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1)  # what was there may be pytest's
    tell(belief)
    if without:
        GUARDS[without]()
    main(list(arguments), prog_name="dra-operator")


def _end_with_the_trial() -> None:
    """However it ends: nobody else would end what it has started."""
    trial = multiprocessing.parent_process()
    assert trial is not None
    trial.join()
    os._exit(1)


def tell(belief: MutableSequence[float]) -> None:
    """From now on write down each belief of this process's elector."""

    def hear(self: Elector, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        if name == "_standing":
            # In this order, as somebody may read in between: what begins late or ends early is too short, never too long.
            belief[END] = -inf
            belief[BEGIN], belief[END] = value.good_from, value.deadline

    Elector.__setattr__ = hear  # type: ignore[method-assign, assignment]  # in this process and nowhere else


GUARDS: dict[str, Callable[[], None]] = {"epoch-touch": without_epoch_touch}
"""What the trial has to find missing. Without the fence of the writer it finds nothing: what a late leader begins is refused by the touched versions, too."""
