"""What has been said about which object, and when that is to be written: the memory of `events`, without any I/O.

One record an object and reason: its words are the newest. The same words again only raise a count, written once in a while; figures that
change are no news of their own; other words are written at once, as often as the object's allowance goes. So the same cause is one Event of
the API, whatever retries, restarts and pods there are, and what is no longer true is not read beside what is.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from .timing import timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime


EventType = Literal["Normal", "Warning"]

REPEAT_SECONDS = 300.0
"""How often the count of unchanged words is written at most; in between, repetitions only add up. kube-scheduler says the same thing
again after five minutes, too."""

FIGURES_SECONDS = 30.0
"""How often changed figures are written at most: people watch a pod come nearer to its turn, nobody every device that comes free."""

MEMORY = 32_768
"""Objects remembered, of about a kilobyte each; the least recent are forgotten first. client-go remembers 4096, but where more pods
wait at the same time than are remembered, whatever is said of them comes as news each time, in three requests a pod."""

BURST = 12
REFILL_SECONDS = 60.0
"""New words about one object: so many at once, then one a minute; the newest wait until then. client-go's filter lets 25 and then one
in five minutes pass, and drops the rest."""

MESSAGE_LIMIT = 1024
"""Longest message that the events API takes."""

NAME_LIMIT = 230
"""So much of the object's name; the hash behind it must fit into the 253 characters of a name."""

_FIGURES = re.compile(r"\d+")


class Key(NamedTuple):
    """Equal keys are one event."""

    uid: str
    reason: str


class Metadata(Protocol):
    """Of any object, readable or not."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def namespace(self) -> str:
        """Empty for cluster-scoped objects."""
        ...

    @property
    def uid(self) -> str:
        """Its uid."""
        ...

    @property
    def resource_version(self) -> str:
        """Its version."""
        ...


@dataclass(frozen=True, slots=True)
class Reference:
    """The object that an event is about."""

    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str = ""

    @classmethod
    def to(cls, kind: str, metadata: Metadata) -> Reference:
        """A reference to an object."""
        return cls(kind, metadata.namespace, metadata.name, metadata.uid, metadata.resource_version)


@dataclass(slots=True)
class Record:
    """One event of the API, as far as we know.

    Attributes:
        about: the object as it was last.
        type: Normal or Warning.
        reason: one word.
        message: the newest words.
        count: how often they were said, figures aside.
        first: when they were said first, RFC 3339.
        written: the words that the server has; empty if it has none of ours.
        sending: the words of a write under way, as good as written until it fails; empty while there is none.
        written_at: the monotonic time of the last write; None before the first.
        exists: whether the server has the event, as far as we know.
        planned: what a write is planned for that has not begun: new words, or new figures.
        stands: whether it tells of something that is not over.
    """

    about: Reference
    type: EventType
    reason: str
    message: str = ""
    count: int = 0
    first: str = ""
    written: str = ""
    sending: str = ""
    written_at: float | None = None
    exists: bool = False
    planned: Literal["", "figures", "words"] = ""
    stands: bool = True

    @property
    def namespace(self) -> str:
        """Where it is; events of cluster-scoped objects are in `default`."""
        return self.about.namespace or "default"

    @property
    def name(self) -> str:
        """The same from every process, so that another operator finds and goes on with it."""
        text = f"{self.about.uid}\0{self.type}\0{self.reason}"
        digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        return f"{self.about.name[:NAME_LIMIT].rstrip('.-')}.{digest}"

    @property
    def known(self) -> str:
        """The words that the server has or is about to have."""
        return self.sending or self.written

    @property
    def has_new_words(self) -> bool:
        """Whether the server does not have the newest words, figures aside."""
        return not self.known or not same_words(self.message, self.known)

    def say(self, message: str, moment: datetime) -> None:
        """Take new words, or the same once more."""
        if not same_words(message, self.message):
            self.count, self.first = 0, timestamp(moment)
        if not self.stands:
            self.written = self.sending = (
                ""  # good news may have been told since: these words have to be read after those
            )
        self.message = message
        self.count += 1
        self.stands = True

    def adopt(self, found: dict[str, Any]) -> None:
        """Go on with an event that somebody before us has written."""
        self.written = str(found.get("message") or "")
        if same_words(self.written, self.message):
            self.count += int(found.get("count") or 1)
            self.first = str(found.get("firstTimestamp") or self.first)

    def change(self, moment: datetime) -> dict[str, Any]:
        """What to patch: the count, and the words if they are others."""
        body: dict[str, Any] = {"count": self.count, "lastTimestamp": timestamp(moment)}
        if self.message != self.written:
            body |= {"message": self.message, "firstTimestamp": self.first}
        return body


@dataclass(slots=True)
class _Allowance:
    """New words that one object may still get at once; a token bucket."""

    left: float
    at: float

    def take(self, now: float) -> float:
        """Seconds until there is one; 0 if one was taken now."""
        self.left = min(float(BURST), self.left + (now - self.at) / REFILL_SECONDS)
        self.at = now
        if self.left < 1:
            return (1 - self.left) * REFILL_SECONDS
        self.left -= 1
        return 0.0


@dataclass(slots=True)
class _Subject:
    """All that was said about one object."""

    allowance: _Allowance
    records: dict[str, Record] = field(default_factory=dict)


class EventLog:
    """The records, by object and reason."""

    def __init__(self) -> None:
        self._subjects: OrderedDict[str, _Subject] = OrderedDict()

    def __getitem__(self, key: Key) -> Record | None:
        """The record of that key; None if it was forgotten."""
        subject = self._subjects.get(key.uid)
        return subject.records.get(key.reason) if subject else None

    def say(self, about: Reference, event_type: EventType, words: tuple[str, str], clock: Clock) -> Say:
        """Note that something was said.

        Args:
            about: the object.
            event_type: Normal or Warning.
            words: reason and message.
            clock: both clocks, read just now.

        Returns: when to write it.
        """
        reason, message = words[0], words[1].encode()[:MESSAGE_LIMIT].decode(errors="ignore")
        subject = self._subjects.setdefault(about.uid, _Subject(_Allowance(float(BURST), clock.monotonic)))
        self._subjects.move_to_end(about.uid)
        while len(self._subjects) > MEMORY:
            self._subjects.popitem(last=False)
        record = subject.records.setdefault(reason, Record(about, event_type, reason))
        record.about, record.type = about, event_type
        record.say(message, clock.moment)
        said = _judge(record, subject.allowance, clock.monotonic)
        if said.wait is not None:
            record.planned = "words" if record.has_new_words else "figures"
        return said

    def forget(self, key: Key) -> None:
        """What was said will not be written: as if it had not been said."""
        subject = self._subjects.get(key.uid)
        if subject is not None:
            subject.records.pop(key.reason, None)

    def over(self, uid: str) -> bool:
        """What was said about an object is over. Returns: whether a warning that the server has was not known to be over."""
        subject = self._subjects.get(uid)
        warned = False
        for record in subject.records.values() if subject else ():
            warned = warned or (record.stands and record.exists and record.type == "Warning")
            record.stands, record.planned = False, ""
        return warned

    def keys(self, uid: str) -> Iterator[Key]:
        """The keys of all records of an object."""
        subject = self._subjects.get(uid)
        return (Key(uid, reason) for reason in (subject.records if subject else ()))


class Clock(NamedTuple):
    """The monotonic and the wall clock at one moment."""

    monotonic: float
    moment: datetime


class Say(NamedTuple):
    """When to write what was said: in how many seconds, None if it need not be written or is about to be; and whether it came too fast."""

    wait: float | None
    is_spam: bool = False


def _judge(record: Record, allowance: _Allowance, now: float) -> Say:
    if record.planned == "words" or (record.planned and not record.has_new_words):
        return Say(None)  # what is planned will write the newest words
    if record.written_at is None or (record.known and record.has_new_words):
        wait = allowance.take(now)
        return Say(wait, is_spam=wait > 0)
    if record.message != record.known:  # other figures, or a write that failed
        return Say(max(0.0, record.written_at + FIGURES_SECONDS - now))
    return Say(0.0 if now - record.written_at >= REPEAT_SECONDS else None)


def same_words(one: str, other: str) -> bool:
    """Whether two messages differ in figures at most."""
    return one == other or _FIGURES.sub("#", one) == _FIGURES.sub("#", other)
