"""Several candidates for one Lease, whatever becomes of their requests and their time: never two that may write.

The store is the API server's part: a write carries the version that it was made from. In minutes of simulated time, requests are served late or
never, answers arrive late or never, candidates sleep at any point and wake with what they had in hand, die and come back, clocks run at
different speeds from different beginnings, and somebody deletes or edits the Lease. Chance comes from a seed, so that hypothesis can repeat it.
"""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_operator.kube.lease import RELEASED, Act, Found, Record, Standing, Terms
from dra_operator.kube.listing import RawMeta

if TYPE_CHECKING:
    from collections.abc import Callable

TERMS = Terms(lease=15, renew=10, retry=2)
SPEEDS = (1.0, 1.2, 1.1)
"""Of the candidates' clocks; lease and deadline differ by half, so that even such clocks are good enough."""
SECONDS = 200.0


@dataclass
class Server:
    """One Lease."""

    found: Found | None = None
    versions: int = 0
    uids: int = 0

    def write(self, base: RawMeta | None, holder: str, duration: int) -> Found | None:
        """A write made from a version (None: there was no Lease); None if it comes too late."""
        if (self.found.metadata if self.found else None) != base:
            return None
        return self.put(holder, duration)

    def put(self, holder: str, duration: int) -> Found:
        """Whatever is there."""
        self.versions += 1
        self.uids += self.found is None
        meta = RawMeta("dra-operator", "dra-operator", f"u{self.uids}", str(self.versions))
        self.found = Found(meta, Record(holder, duration, 0))
        return self.found


@dataclass
class Candidate:
    """A process with its clock; another takes its place when it dies."""

    standing: Standing
    offset: float
    speed: float
    must_look: bool = True

    def now(self, time: float) -> float:
        """On its clock."""
        return self.offset + self.speed * time


@dataclass
class Election:
    """Some minutes of three candidates.

    Attributes:
        chance: decides everything.
        calm: the part of requests and pauses that go as they mostly do.
        hands: how often, in seconds, somebody deletes or edits the Lease; 0 for never.
        led: who has led.
    """

    chance: random.Random
    calm: float
    hands: float
    server: Server = field(default_factory=Server)
    time: float = 0.0
    led: set[str] = field(default_factory=set)
    candidates: list[Candidate] = field(default_factory=list)
    agenda: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    numbers: count[int] = field(default_factory=count)

    def run(self) -> None:
        """All of it. Raises: AssertionError: two might have written at the same time."""
        for speed in SPEEDS:
            self.candidates.append(self.newcomer(self.chance.uniform(0, 1e6), speed))
        for candidate in self.candidates:
            self.later(self.chance.uniform(0, 3), lambda one=candidate: self.round(one))  # type: ignore[misc]
        if self.hands:
            self.later(self.chance.expovariate(1 / self.hands), self.meddle)
        while self.agenda and self.time < SECONDS:
            self.time, _, deed = heapq.heappop(self.agenda)
            self.check()
            deed()
            self.check()

    def check(self) -> None:
        leaders = [one.standing.me for one in self.candidates if one.standing.leads(one.now(self.time))]
        self.led.update(leaders)
        assert len(leaders) <= 1, f"{leaders} at {self.time}"

    def later(self, seconds: float, deed: Callable[[], None]) -> None:
        heapq.heappush(self.agenda, (self.time + seconds, next(self.numbers), deed))

    def newcomer(self, offset: float, speed: float) -> Candidate:
        return Candidate(Standing(f"c{next(self.numbers)}", TERMS), offset, speed)

    def delay(self) -> float:
        """Mostly short; else anything, such as the time that a stopped process sleeps."""
        if self.chance.random() < self.calm:
            return self.chance.uniform(0, 0.3)
        return self.chance.choice((self.chance.uniform(0, 6), self.chance.uniform(0, 30)))

    # --- what a candidate does

    def round(self, one: Candidate) -> None:
        """A look, or a write, or the end; as `Elector` does them."""
        if one.standing.held_from is not None and self.chance.random() > (1 + self.calm) / 2:
            self.release(one)
            return
        act = one.standing.act(one.now(self.time))
        if act is Act.GIVE_UP:
            self.reborn(one)
        elif one.must_look or act is Act.WAIT:
            self.later(self.delay(), lambda: self.look(one))
        else:
            self.send(one, act)

    def look(self, one: Candidate) -> None:
        """The server answers."""
        found = self.server.found

        def arrive() -> None:
            one.standing = one.standing.seen(found, one.now(self.time))
            one.must_look = False
            acts = one.standing.act(one.now(self.time)) is not Act.WAIT
            self.later(self.delay() if acts else self.chance.uniform(0, 0.5), lambda: self.round(one))

        self.later(self.delay(), arrive)

    def send(self, one: Candidate, act: Act) -> None:
        sent, me = one.now(self.time), one.standing.me
        seen = one.standing.found
        base = seen.metadata if seen and act is not Act.CREATE else None
        is_heard = self.chance.random() < (1 + self.calm) / 2

        def serve() -> None:
            written = self.server.write(base, me, int(TERMS.lease))
            if is_heard:
                self.later(self.delay(), lambda: self.hear(one, act, written, sent))

        self.later(self.delay(), serve)
        if not is_heard:  # it gives up waiting; the request may be served whenever
            one.must_look = True
            self.later(self.chance.uniform(0, 5), lambda: self.round(one))

    def hear(self, one: Candidate, act: Act, written: Found | None, sent: float) -> None:
        one.must_look = written is None
        if written is not None:
            one.standing = one.standing.accepted(act, written, sent, one.now(self.time))
        self.later(TERMS.retry if one.standing.held_from else self.delay(), lambda: self.round(one))

    def release(self, one: Candidate) -> None:
        """Give it back, or die with it; what was sent may be served whenever."""
        seen = one.standing.found
        if seen is not None and seen.spec.holder == one.standing.me and self.chance.random() < self.calm:
            base = seen.metadata

            def serve() -> None:
                self.server.write(base, "", RELEASED)

            self.later(self.delay(), serve)
        self.reborn(one)

    def reborn(self, one: Candidate) -> None:
        place = next(number for number, other in enumerate(self.candidates) if other is one)
        self.candidates[place] = self.newcomer(one.offset, one.speed)
        self.later(self.chance.uniform(0, 3), lambda: self.round(self.candidates[place]))

    # --- what people do

    def meddle(self) -> None:
        if self.chance.random() < 0.6:
            self.server.found = None
        elif self.server.found is not None:
            self.server.put(self.chance.choice(("", "nobody")), self.chance.choice((2, 15)))
        self.later(self.chance.expovariate(1 / self.hands), self.meddle)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    calm=st.sampled_from((0.99, 0.9, 0.6, 0.3)),
    hands=st.sampled_from((0.0, 60.0, 8.0)),
)
def test_never_two_that_may_write(seed: int, calm: float, hands: float) -> None:
    Election(random.Random(seed), calm, hands).run()


@pytest.mark.parametrize("seed", range(3))
def test_on_a_calm_day_somebody_leads(seed: int) -> None:
    """Else the property above would be an easy one."""
    election = Election(random.Random(seed), 0.99, 0.0)
    election.run()
    assert election.led
