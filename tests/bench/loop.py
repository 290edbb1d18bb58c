"""`python -m tests.bench.loop`: how long bad selectors hold the operator's event loop.

A coroutine ticks every millisecond while the operator decides, on the embedded server, for one pod with the selectors of each row. `delay` is the longest time between two ticks
beyond that millisecond: on a busy machine it has what others take, and other threads' turns, too. `own work` is the CPU time that the loop's own thread took meanwhile, whatever else
the machine does. Embedded server and cycles of requests run in the same loop: the first row, whose selector is a usual one, tells what they take. Garbage is not collected meanwhile.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.scenarios.operator.objects import (
    DRIVER,
    by_name,
    claim,
    device_class,
    node,
    pod,
    policy,
    requests,
    slice_,
)
from tests.scenarios.operator.world import World, world

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tests.scenarios.operator.objects import Obj

TICK: Final = 0.001
SECONDS: Final = 60
"""For one row."""

MOST: Final = 10_240
"""Characters of an expression."""

TEN: Final = "[0,1,2,3,4,5,6,7,8,9]"


def chain(term: str, operator: str, length: int = MOST, end: str = "") -> str:
    """As many terms as there is room for."""
    count = (length - len(end)) // (len(term) + len(operator))
    return operator.join([term] * count) + end


def loops(levels: int, body: str) -> str:
    """Loops over ten numbers in one another."""
    for variable in "abcde"[:levels]:
        body = f"{TEN}.all({variable},{body})"
    return body


def large_pattern(number: int) -> str:
    """A regular expression as large as is taken, each number one of its own."""
    return rf'"x".matches("[\\p{{L}}\\p{{N}}]{{1,32}}|{number}")'


UNDER: Final = f"{loops(5, 'a<99&&a>-1&&1==1&&1==1')} && {loops(4, '1==1&&1==1')}"
"""998,882 of the 1,000,000 units that upstream allows."""

WIDE: Final = f'"{"中" * 1000}".replace("中", "{"文" * 990}")'
"""A text of 990,000 characters."""

ROWS: Final[Mapping[str, Sequence[str]]] = {
    "a usual selector": [f'device.driver == "{DRIVER}"'],
    "10 KiB of terms": [chain("1>0", "&&")],
    "10 KiB of conditions": [chain("1>0?1>0", ":", end="true")],
    "32 sums of 140 characters": [
        f"{chain('1', '+', 130)}+{number}>0".replace("+>", ">") for number in range(32)
    ],
    "250 parentheses": ["(" * 240 + "true" + ")" * 240],
    "nested loops just under upstream's limit": [UNDER],
    "nested loops just over it": [f"{UNDER} && {loops(3, 'true')}"],
    "32 selectors of 3,000 steps": [f"{loops(3, f'a>-{number}')} || true" for number in range(2, 34)],
    "backtracking over 5,000 characters": [f'!"{"a" * 5000}!".matches("^(a+)+$")'],
    "a large regular expression": [large_pattern(0)],
    "32 large regular expressions": [large_pattern(number) for number in range(1, 33)],
    "a regular expression that is too large": ['"x".matches("x{1,1000}x{1,1000}x{1,1000}")'],
    "a million characters, small letters": [f"{WIDE}.lowerAscii() != ''"],
    "a million characters, split and joined": [f"{WIDE}.split('').join('') != ''"],
    "a million numbers": ["lists.range(1000000).size() > 0"],
    "half a million numbers, twice": ["cel.bind(r, lists.range(500000), (r + r).size() > 0)"],
}


@dataclass
class Ticks:
    """The longest times between two ticks, in seconds."""

    delay: float = 0.0
    work: float = 0.0

    async def watch(self) -> None:
        """Tick until cancelled."""
        last, used = time.perf_counter(), time.thread_time()
        while True:
            await asyncio.sleep(TICK)
            now, now_used = time.perf_counter(), time.thread_time()
            self.delay = max(self.delay, now - last - TICK)
            self.work = max(self.work, now_used - used)
            last, used = now, now_used


def hostile(selectors: Sequence[str]) -> Obj:
    """A claim with these selectors."""
    found = requests("r0")
    for request in found["devices"]["requests"]:
        request["exactly"]["selectors"] = [{"cel": {"expression": text}} for text in selectors]
    return claim("bad", found)


def outcome(here: World) -> str:
    """What became of the pod; nothing yet if nothing is told."""
    if here.node_of("bad"):
        return "placed"
    reasons = [
        event["reason"] for event in here.events if event["involvedObject"].get("name", "").startswith("bad")
    ]
    return reasons[-1] if reasons else ""


def is_decided(here: World) -> Callable[[], bool]:
    """Whether the pod is placed or refused; not while it goes on by itself."""
    return lambda: outcome(here) not in {"", "SelectorsCostly"}


async def measure(selectors: Sequence[str]) -> tuple[Ticks, str]:
    """One row: ticks, and what became of the pod."""
    objects = (node("n1"), slice_("n1", 8), device_class(), policy())
    async with world("binding", "kubelet", objects=objects) as here:
        here.add(hostile(selectors))
        await asyncio.sleep(0.5)
        gc.collect()
        gc.disable()
        ticks = Ticks()
        here.add(pod("bad", by_name("bad")))
        task = asyncio.create_task(ticks.watch())
        try:
            async with asyncio.timeout(SECONDS):
                await here.until(is_decided(here))
        except (TimeoutError, AssertionError):
            pass
        finally:
            task.cancel()
            gc.enable()
        return ticks, outcome(here) or "undecided"


def main() -> int:
    """Measure, print."""
    print(f"{'selectors':44} {'delay, ms':>9} {'own work, ms':>12}  outcome")
    for name, selectors in ROWS.items():
        ticks, what = asyncio.run(measure(selectors))
        print(f"{name:44} {1000 * ticks.delay:9.1f} {1000 * ticks.work:12.1f}  {what}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
