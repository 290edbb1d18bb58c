"""What happens when: out of a seed, and of nothing else.

Pure. The same seed and length give the same steps; what becomes of them depends on the machine, as in any storm.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NODES, DEVICES = 6, 6
"""Of the cluster; devices a node."""

NAMED, SHARED, TEMPLATES = 8, 3, 3
"""Claims for one pod, claims for several, templates."""

ALIVE = 48
"""Pods that there are about as many of: more than there are devices for, so that some always wait."""

CHANGES_A_SECOND = 40.0

WAYS = ("one", "pair", "named", "shared", "bound")
"""How pods ask: one device or two from a template, a claim by its name, a claim of several pods; `bound` by scheduler name."""


@dataclass(frozen=True, slots=True)
class Step:
    """One change.

    Attributes:
        at: seconds from the beginning.
        what: which change, a method of `Churn`.
        number: of the object.
        detail: which way, or how.
    """

    at: float
    what: str
    number: int = 0
    detail: str = ""


@dataclass(slots=True)
class _Making:
    """What the schedule knows of the cluster that it makes."""

    dice: random.Random
    ways: tuple[str, ...]
    next_pod: int = 0
    alive: list[int] = field(default_factory=list)

    def pod(self) -> tuple[str, int, str]:
        """A pod comes, or goes."""
        grow = len(self.alive) < ALIVE * self.dice.uniform(0.8, 1.2)
        if grow or not self.alive:
            self.next_pod += 1
            self.alive.append(self.next_pod)
            return "create_pod", self.next_pod, self.dice.choice(self.ways)
        gone = self.alive.pop(self.dice.randrange(len(self.alive)))
        return "end_pod", gone, self.dice.choice(("force", "delete", "delete", "done"))

    def touch_pod(self) -> tuple[str, int, str]:
        """Somebody labels a pod."""
        return "touch_pod", self.dice.choice(self.alive) if self.alive else 0, ""

    def touch_claim(self) -> tuple[str, int, str]:
        """Somebody labels a claim."""
        number = self.dice.randrange(NAMED + SHARED)
        return "touch_claim", number, ""

    def slice(self) -> tuple[str, int, str]:
        """A driver publishes anew; now and then without a device."""
        return "publish", self.dice.randrange(NODES), str(self.dice.randrange(DEVICES * 3))

    def node(self) -> tuple[str, int, str]:
        """A node changes, or goes and comes."""
        number = self.dice.randrange(NODES)
        return (
            "node",
            number,
            self.dice.choice(("label", "label", "cordon", "uncordon", "uncordon", "remake")),
        )

    def template(self) -> tuple[str, int, str]:
        """A template goes and comes."""
        return "remake_template", self.dice.randrange(TEMPLATES), ""

    def claim(self) -> tuple[str, int, str]:
        """A claim goes and comes."""
        return "remake_claim", self.dice.randrange(NAMED), ""


def churn(seed: int, seconds: float, ways: tuple[str, ...] = WAYS) -> Iterator[Step]:
    """The changes of objects, in order of time."""
    making = _Making(random.Random(f"churn {seed}"), ways)
    kinds: tuple[tuple[Callable[[], tuple[str, int, str]], int], ...] = (
        (making.pod, 40),
        (making.touch_pod, 22),
        (making.touch_claim, 18),
        (making.slice, 8),
        (making.node, 4),
        (making.template, 3),
        (making.claim, 5),
    )
    makers, weights = zip(*kinds, strict=True)
    at = 0.0
    while (at := at + making.dice.expovariate(CHANGES_A_SECOND)) < seconds:
        (maker,) = making.dice.choices(makers, weights)
        yield Step(at, *maker())


def signals(seed: int, seconds: float, operators: int) -> list[Step]:
    """What is done to the operators: `kill`, `end`, or `pause` (and go on after some seconds)."""
    dice = random.Random(f"signals {seed}")
    steps, at = [], 8.0
    while (at := at + dice.uniform(6.0, 14.0)) < seconds - 8.0:
        steps.append(Step(at, dice.choice(("kill", "pause", "end")), dice.randrange(operators)))
    return steps


def outages(seed: int, seconds: float) -> list[Step]:
    """Restarts of kube-apiserver: about one in ninety seconds, in the middle of things."""
    dice = random.Random(f"outages {seed}")
    count = max(1, int(seconds // 90))
    part = seconds / count
    return [
        Step(part * (number + dice.uniform(0.4, 0.7)), dice.choice(("crash", "restart")))
        for number in range(count)
    ]


@dataclass(frozen=True, slots=True)
class Spell:
    """A spell of bad weather: which, from when, for how long, and how likely for each request."""

    at: float
    name: str
    lasts: float
    probability: float


LIKELY = {
    "409": (0.05, 0.3),
    "429": (0.1, 0.5),
    "500": (0.05, 0.3),
    "503": (0.05, 0.3),
    "401": (1.0, 1.0),
    "time-out": (0.005, 0.02),
    "reset before": (0.02, 0.2),
    "reset after": (0.02, 0.2),
    "lost answer": (0.005, 0.02),
    "stalled body": (0.005, 0.02),
    "slow": (0.05, 0.3),
    "watch cut": (0.3, 1.0),
    "watch ended": (0.3, 1.0),
    "410 in watch": (0.3, 1.0),
    "410 on watch": (0.3, 0.9),
    "half-open watch": (0.3, 0.6),
    "late events": (0.3, 1.0),
    "repeated events": (0.5, 1.0),
}
"""How likely each kind of weather is for a request, from and to. What takes half a minute of a client's time is rare."""


def weather(seed: int, seconds: float) -> list[Spell]:
    """Spells of bad weather, each kind once before any comes again."""
    dice = random.Random(f"weather {seed}")
    spells: list[Spell] = []
    left: list[str] = []
    at = 6.0
    while at < seconds - 6.0:
        if not left:
            left = sorted(LIKELY)
            dice.shuffle(left)
        name = left.pop()
        lasts = dice.uniform(1.0, 3.0) if name == "401" else dice.uniform(3.0, 8.0)
        spells.append(Spell(at, name, lasts, dice.uniform(*LIKELY[name])))
        at += dice.uniform(2.0, 6.0)
    return spells
