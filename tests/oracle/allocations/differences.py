"""Compares an answer of our allocator with upstream's: what differs, by kind (pass rule: oracle 1.2, 6). It asks nobody."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from .answers import canonical

Json = dict[str, Any]

KINDS: Final[dict[str, str]] = {
    "crash": "our allocator broke down, or changed its inputs",
    "gives": "we give devices where upstream gives none",
    "refuses": "we give none where upstream gives devices",
    "fails": "we raise an error where upstream has an answer",
    "passes": "we have an answer where upstream raises an error",
    "devices": "other devices",
    "written": "the same devices, and something else is written about them",
    "scope": "an error of another scope: the node, or the pod",
    "gave up": "we gave up, and upstream did not",
    "steps": "the same answer, after more search steps than upstream's",
    "asked": "upstream's program cannot be asked that",
    "broken": "our allocation breaks a rule",
    "missed": "upstream gave up, and we give none though there is a solution",
    "checker": "upstream's answer is not what trying everything gives, or the model: a fault of the verifier, or of upstream",
}
"""What counts as a difference, worst first."""

_LATE: Final = re.compile("cannot add device .* because a claim constraint would not be satisfied")
_DETAIL: Final = re.compile(r"[\w.-]+/[\w./-]+|'[^']*'|[0-9]+")


@dataclass(frozen=True, slots=True)
class Difference:
    """One disagreement."""

    kind: str
    problem: Json
    theirs: Json
    ours: Json
    detail: str = ""

    @property
    def signature(self) -> str:
        """The same for differences that look alike: the kind and the errors without names and figures."""
        error = self.ours.get("error") or self.theirs.get("error") or self.detail
        return f"{self.kind} {self.theirs['outcome']}/{self.ours['outcome']} {_DETAIL.sub('…', error)[:100]}"

    def lines(self) -> list[str]:
        """For a reader."""
        problem = self.problem
        return [
            f"{self.kind}: {KINDS[self.kind]} (problem {problem['id']}: {problem['topic']}){self.detail and ': ' + self.detail}",
            f"    problem  {json.dumps(problem)}",
            f"    upstream {_told(self.theirs)}",
            f"    ours     {_told(self.ours)}",
        ]


def _told(answer: Json) -> str:
    facts = {
        key: value for key, value in canonical(answer).items() if key not in {"id", "newNs", "allocateNs"}
    }
    return json.dumps(facts)


def compare(problem: Json, theirs: Json, ours: Json) -> Difference | None:
    """What differs, if anything. A time-out of upstream's says nothing, and nor does what is not built."""
    kind = _kind(theirs, ours) or ("steps" if _takes_more_steps(theirs, ours) else None)
    return None if kind is None else Difference(kind, problem, theirs, ours)


def _kind(theirs: Json, ours: Json) -> str | None:
    their, our = theirs["outcome"], ours["outcome"]
    if our in {"crash", "gave up"}:
        return str(our) if our == "crash" or their != "timeout" else None
    if their in {"unsupported", "bad-question"}:
        return "asked"
    if their == "timeout" or our == "not built":
        return None
    if their == "panic":  # any error will do
        return None if our == "error" else "passes"
    if their != our:
        return None if is_late(theirs) and our == "none" else _outcomes(their, our)
    if our == "error":
        return None if bool(theirs.get("perNode")) == bool(ours.get("perNode")) else "scope"
    return _results(theirs, ours) if our == "results" else None


def is_late(answer: Json) -> bool:
    """Whether upstream met mode All's error in the middle of a search (alloc S-17): one that cuts branches may end before (oracle 1.2)."""
    return answer["outcome"] == "error" and _LATE.search(answer.get("error", "")) is not None


def _outcomes(their: str, our: str) -> str:
    if our == "error":
        return "fails"
    if their == "error":
        return "passes"
    return "gives" if our == "results" else "refuses"


def _results(theirs: Json, ours: Json) -> str | None:
    if canonical(theirs.get("results")) == canonical(ours.get("results")):
        return None
    return "written" if devices(theirs) == devices(ours) else "devices"


def devices(answer: Json) -> list[tuple[str, ...]]:
    """What is given to which request, in order."""
    return [
        (str(number), each["request"], each["driver"], each["pool"], each["device"])
        for number, result in enumerate(answer.get("results") or ())
        for each in result.get("devices", {}).get("results") or ()
    ]


def _takes_more_steps(theirs: Json, ours: Json) -> bool:
    """Whether our search took more steps than upstream's to the same outcome; errors in the middle of a search are counted apart."""
    return bool(
        theirs["outcome"] == ours["outcome"]
        and not is_late(theirs)
        and ours["allocateOneInvocations"] > theirs["allocateOneInvocations"]
    )
