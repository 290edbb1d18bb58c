"""Scripted faults: what a test wants to go wrong, and how often.

Called by `http` before each request is served. A test adds rules to `FakeApi.faults`; each is used up after `times` requests.
Deterministic: nothing here is random.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dra_operator.testing.fakeapi.failures import StatusError, expired


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


@dataclass(slots=True)
class Fault:
    """One rule.

    Args:
        error: the refusal to answer with; None to serve the request normally (after `delay`).
        verbs: which verbs; empty for all.
        resource: which resource (`pods`, `resourceclaims/status`); empty for all.
        times: how many requests it hits.
        delay: seconds to wait before anything else.
        cut: close the connection without an answer.
        lose_answer: serve the request, then close the connection: the client cannot know.
    """

    error: StatusError | None = None
    verbs: frozenset[str] = frozenset()
    resource: str = ""
    name: str = ""
    times: int = 1
    delay: float = 0.0
    cut: bool = False
    lose_answer: bool = False
    hits: list[Call] = field(default_factory=list)

    def matches(self, call: Call) -> bool:
        """Whether this rule hits `call`."""
        if len(self.hits) >= self.times or (self.verbs and call.verb not in self.verbs):
            return False
        return self.resource in ("", call.resource) and self.name in ("", call.name)


@dataclass(slots=True)
class Faults:
    """The rules of one server, in the order in which they were added."""

    rules: list[Fault] = field(default_factory=list)

    def add(self, fault: Fault) -> Fault:
        """Use `fault` from now on; returns it, so that a test can look at its hits."""
        self.rules.append(fault)
        return fault

    def clear(self) -> None:
        """Nothing goes wrong any longer."""
        self.rules.clear()

    def hit(self, call: Call) -> Fault | None:
        """The first rule that hits `call`; it counts as used."""
        for fault in self.rules:
            if fault.matches(call):
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
