"""Which topics problems have, what comes out, and how often the answer hangs on a topic: it is asked again without what the topic is about."""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .things import Json

    Solve = Callable[[Sequence[Json]], list[Json]]

FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "admin": ("adminAccess",),
    "taints": ("taints",),
    "counters": ("consumesCounters",),
    "capacity": ("allowMultipleAllocations",),
    "match": ("matchAttribute",),
    "distinct": ("distinctAttribute",),
    "binding": ("bindingConditions", "bindsToNode"),
    "lists": ("tags",),
    "derived": ("derivedAttributes",),
    "groups": ("compatibilityGroups",),
    "places": ("nodeSelector",),
    "operations": ("skipNodeOperations",),
    "allocatable": ("nodeAllocatableResources",),
    "config": ("config",),
    "taken": ("devices", "aggregatedCapacity"),
    "all": ("allocationMode",),
    "claims": (),
    "prioritized": (),
}
"""By topic the fields that it is about."""


@dataclass(slots=True)
class Met:
    """What was seen of a topic.

    Attributes:
        outcomes: how often each outcome.
        hangs: how often the answer is another one without the topic.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    hangs: int = 0


def measure(problems: Sequence[Json], solve: Solve) -> dict[str, Met]:
    """By topic, what the problems that have it come to.

    Args:
        problems: any.
        solve: gives an answer a problem, in order.
    """
    answers = solve(problems)
    found: dict[str, Met] = {"any": Met()}
    asked: list[tuple[str, Json, Json]] = []
    for problem, answer in zip(problems, answers, strict=True):
        found["any"].outcomes[answer["outcome"]] += 1
        for topic in problem["topic"].split(", "):
            found.setdefault(topic, Met()).outcomes[answer["outcome"]] += 1
            if topic in FIELDS:
                asked.append((topic, without(problem, topic), answer))
    for (topic, _, before), after in zip(asked, solve([problem for _, problem, _ in asked]), strict=True):
        found[topic].hangs += _said(before) != _said(after)
    return found


def _said(answer: Json) -> Any:
    """What is given; that admin access, or an operation, is there as asked for says nothing."""
    results = copy.deepcopy(answer.get("results") or [])
    _remove(results, frozenset({"adminAccess", "tolerations", "skipNodeOperations"}))
    return answer["outcome"], results


def without(problem: Json, topic: str) -> Json:
    """The problem without what a topic is about."""
    less = copy.deepcopy(problem)
    if topic == "taken":
        less["allocated"] = {}
    elif topic == "claims":
        less["claims"] = less["claims"][-1:]
    elif topic == "prioritized":
        for claim in less["claims"]:
            claim["spec"]["devices"]["requests"] = [
                _first(each) for each in claim["spec"]["devices"]["requests"]
            ]
    else:
        _remove(less, frozenset(FIELDS[topic]))
    return less


def _first(request: Json) -> Json:
    subs = request.get("firstAvailable")
    return {**request, "firstAvailable": subs[:1]} if subs else request


def _remove(value: Any, fields: frozenset[str]) -> None:
    if isinstance(value, list):
        for each in value:
            _remove(each, fields)
        value[:] = [each for each in value if each != {}]
    if isinstance(value, dict):
        if value.get("allocationMode") == "All" and "allocationMode" in fields:
            value |= {"allocationMode": "ExactCount", "count": 1}
        elif value.get("allocationMode") is None:
            for each in fields & value.keys():
                del value[each]
        else:
            for each in (fields - {"allocationMode"}) & value.keys():
                del value[each]
        for each in value.values():
            _remove(each, fields)


def lines(found: dict[str, Met]) -> Iterator[str]:
    """A table."""
    for topic, met in sorted(found.items()):
        number = met.outcomes.total()
        mix = ", ".join(
            f"{100 * count / number:.0f} % {outcome}" for outcome, count in met.outcomes.most_common()
        )
        hangs = f", the answer hangs on it in {100 * met.hangs / number:.0f} %" if topic in FIELDS else ""
        yield f"{topic:12}{number:7}  {mix}{hangs}"
