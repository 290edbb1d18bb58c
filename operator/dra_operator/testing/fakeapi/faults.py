"""The weather between a client and the API server: what a test wants to go wrong, and how often.

One vocabulary for two places: the embedded server's `http` asks here before it serves a request, and so does the loopback
proxy of the end-to-end tier before it passes one on. A rule is used up after `times` requests; by default nothing is random, and
what a `probability` decides comes from the seed of `Faults`. How a fault is brought about is for those who ask (`spoiling` for streams).
"""

from __future__ import annotations

import asyncio
import random
import sys
import threading
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi.failures import StatusError, expired

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ALWAYS = sys.maxsize
"""`times` of a rule that is never used up."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request as faults, tests and the log see it. The verb is Kubernetes': get, list, watch, create, update, …."""

    verb: str
    plural: str
    group: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    user_agent: str = ""

    @property
    def resource(self) -> str:
        """`resourceclaims` or `resourceclaims/status`, as RBAC writes it."""
        return f"{self.plural}/{self.subresource}" if self.subresource else self.plural


class Latch:
    """Something that happens once. May be waited for on any event loop or thread, and set from any."""

    def __init__(self) -> None:
        self._happened = threading.Event()
        self._lock = threading.Lock()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    def set(self) -> None:
        """It has happened; all who wait go on."""
        with self._lock:
            self._happened.set()
            waiting, self._waiting = self._waiting, []
        for loop, future in waiting:
            loop.call_soon_threadsafe(_finish, future)

    def is_set(self) -> bool:
        """Whether it has happened."""
        return self._happened.is_set()

    def wait(self, seconds: float) -> bool:
        """Block this thread until it has happened; False when the seconds are over."""
        return self._happened.wait(seconds)

    async def happened(self) -> None:
        """Wait on an event loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if self._happened.is_set():
                return
            future = loop.create_future()
            self._waiting.append((loop, future))
        await future


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():  # its waiter may have been cancelled
        future.set_result(None)


@dataclass(slots=True)
class Hold:
    """Keeps requests back, on their way to the server, until told. A client that gives up meanwhile does not take its request back.

    Attributes:
        reached: set when the first request is being held.
        released: set it to let all of them go, those that come later too.
    """

    reached: Latch = field(default_factory=Latch)
    released: Latch = field(default_factory=Latch)


class Then(StrEnum):
    """How a stream stops being good."""

    END = "end"  # as a server ends watches whose time is up
    CUT = "cut"  # the connection is reset
    SILENCE = "silence"  # nothing comes any more, and nobody says so: a half-open connection
    EXPIRE = "expire"  # an ERROR event with 410, then the end


@dataclass(frozen=True, slots=True)
class Spoil:
    """What becomes of a watch that was accepted.

    Args:
        after: seconds from its beginning to `then`.
        then: how it stops being good; None for never.
        lag: seconds by which its events come late.
        repeat: after each event the one before comes once more.
    """

    after: float = 0.0
    then: Then | None = None
    lag: float = 0.0
    repeat: bool = False


@dataclass(slots=True)
class Fault:
    """One rule: which requests it hits, and what happens to them, in this order.

    Args:
        error: the refusal to answer with; None to serve the request normally (after `delay`).
        verbs: which verbs; empty for all.
        resource: which resource (`pods`, `resourceclaims/status`); empty for all.
        name: of the object; empty for all.
        user_agent: how the client's name begins; empty for all.
        times: how many requests it hits.
        probability: of hitting a request that it could hit.
        delay: seconds to wait before anything else.
        hold: keeps the request back until told.
        hang: take the request, do nothing, never answer; the connection stays open.
        cut: close the connection without an answer; the request was not served.
        lose_answer: serve the request, then close the connection: the client cannot know.
        mute: serve the request and never answer; the connection stays open.
        stall: so many bytes of the answer's body come, and no more; the connection stays open. None for all of them.
        spoil: what becomes of a watch that was accepted.

    Attributes:
        hits: the requests that it has hit.
        codes: what the server made of those that it served, told to their clients or not.
    """

    error: StatusError | None = None
    verbs: frozenset[str] = frozenset()
    resource: str = ""
    name: str = ""
    times: int = 1
    delay: float = 0.0
    cut: bool = False
    lose_answer: bool = False
    user_agent: str = ""
    probability: float = 1.0
    hold: Hold | None = None
    hang: bool = False
    mute: bool = False
    stall: int | None = None
    spoil: Spoil | None = None
    hits: list[Call] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)

    def matches(self, call: Call) -> bool:
        """Whether this rule can hit `call`."""
        if len(self.hits) >= self.times or (self.verbs and call.verb not in self.verbs):
            return False
        if not call.user_agent.startswith(self.user_agent):
            return False
        return self.resource in ("", call.resource) and self.name in ("", call.name)


@dataclass(slots=True)
class Faults:
    """The rules of one server; the first that hits counts. Rules may be added and taken away from any thread.

    Args:
        rules: to begin with.
        seed: of the chance that probabilities need.
    """

    rules: tuple[Fault, ...] = ()
    seed: int = 0
    _dice: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._dice = random.Random(self.seed)

    def add(self, fault: Fault, *, first: bool = False) -> Fault:
        """Use `fault` from now on; returns it, so that a test can look at its hits.

        Args:
            fault: the rule.
            first: before all others, so that none of them takes its requests; else after them.
        """
        self.rules = (fault, *self.rules) if first else (*self.rules, fault)
        return fault

    def remove(self, fault: Fault) -> None:
        """Do without `fault` from now on; what it holds is let go."""
        self.rules = tuple(rule for rule in self.rules if rule is not fault)
        if fault.hold is not None:
            fault.hold.released.set()

    def clear(self) -> None:
        """Nothing goes wrong any longer."""
        for rule in self.rules:
            self.remove(rule)

    def hit(self, call: Call) -> Fault | None:
        """The first rule that hits `call`; it counts as used."""
        for fault in self.rules:
            if fault.matches(call) and (fault.probability >= 1 or self._dice.random() < fault.probability):
                fault.hits.append(call)
                return fault
        return None


def throttled(seconds: int = 1) -> StatusError:
    """429 with Retry-After, as priority and fairness sends it."""
    message = "the server has received too many requests and has asked us to try again later"
    return StatusError(429, "TooManyRequests", message, retry_after=seconds)


def unavailable() -> StatusError:
    """503."""
    return StatusError(503, "ServiceUnavailable", "the server is currently unable to handle the request")


def internal_error() -> StatusError:
    """500."""
    return StatusError(500, "InternalError", "Internal error occurred: scripted fault")


def gone() -> StatusError:
    """410, for lists and watches."""
    return expired("The resourceVersion for the provided list is too old.")


def conflict() -> StatusError:
    """409, as for a write whose resourceVersion is not the object's."""
    message = "Operation cannot be fulfilled: the object has been modified; please apply your changes to the latest version and try again"
    return StatusError(409, "Conflict", message)


def unauthorized() -> StatusError:
    """401, as for a token that has expired."""
    return StatusError(401, "Unauthorized", "Unauthorized")


WRITES = frozenset({"create", "update", "patch", "delete"})
READS = frozenset({"get", "list"})
WATCHES = frozenset({"watch"})
LISTS = frozenset({"list"})

WEATHER: Mapping[str, Callable[[], Fault]] = {
    "409": lambda: Fault(conflict(), verbs=frozenset({"patch", "update"})),
    "429": lambda: Fault(throttled(), verbs=WRITES | READS),
    "500": lambda: Fault(internal_error(), verbs=WRITES | READS),
    "503": lambda: Fault(unavailable()),
    "401": lambda: Fault(unauthorized()),
    "time-out": lambda: Fault(hang=True, verbs=WRITES | READS),
    "reset before": lambda: Fault(cut=True),
    "reset after": lambda: Fault(lose_answer=True, verbs=WRITES | READS),
    "lost answer": lambda: Fault(mute=True, verbs=WRITES),
    "stalled body": lambda: Fault(stall=64, verbs=WRITES | READS),
    "slow": lambda: Fault(delay=0.5, verbs=WRITES | READS),
    "watch cut": lambda: Fault(verbs=WATCHES, spoil=Spoil(1.0, Then.CUT)),
    "watch ended": lambda: Fault(verbs=WATCHES, spoil=Spoil(1.0, Then.END)),
    "410 in watch": lambda: Fault(verbs=WATCHES, spoil=Spoil(0.5, Then.EXPIRE)),
    "410 on watch": lambda: Fault(gone(), verbs=WATCHES),
    "half-open watch": lambda: Fault(verbs=WATCHES, spoil=Spoil(1.0, Then.SILENCE)),
    "late events": lambda: Fault(verbs=WATCHES, spoil=Spoil(lag=0.5)),
    "repeated events": lambda: Fault(verbs=WATCHES, spoil=Spoil(repeat=True)),
}
"""Every kind of weather by its name; a test sets how often, for whom, and how likely (`dataclasses.replace`, or by assignment)."""
