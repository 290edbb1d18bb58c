"""Compares slices with the taints of DeviceTaintRules in them with recorded answers of upstream (oracle 1.4): part of `python -m tests.conformance`.

The events of a case come in every order that it allows, as upstream runs them: each must leave the same slices behind. What readers see
change at each event is compared for the order of the case alone. It reads no files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dra_operator.cluster import SliceIndex
from dra_operator.model import DeviceTaintRule, ResourceSlice, from_object

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Json = dict[str, Any]

Event = list[Json | None] | str
"""Old and new object, one of them null for what is absent; or the name of a rule that is gone."""

Change = tuple[str, ResourceSlice | None, ResourceSlice | None]
"""`add`, `update` or `delete`, and the slice as readers saw it before and after."""

ANYTHING = "<func>"
"""Stands where upstream's assertion is a function, which cannot be compared."""


def accepts(raw: Json) -> bool:
    """Whether a line is a case of this kind."""
    return "events" in raw.get("case", ())


def difference(raw: Json) -> str:
    """What is wrong with our answers to a case; empty when nothing is."""
    case = raw["case"]
    queues = [_queue(entry) for entry in case["events"]]
    wanted = sorted(map(_slice, case.get("expectedPatchedSlices") or ()), key=_name)
    for order in orders(queues):
        index = SliceIndex()
        replay(index, order)
        if list(index.all()) != wanted:
            return f"after {[_told(event) for event in order]}: upstream {wanted}, ours {list(index.all())}"
    return _changes_difference(case, [event for queue in queues for event in queue])


def _changes_difference(case: Json, events: Sequence[Event]) -> str:
    stated = case.get("expectedHandlerEvents")
    if stated == ANYTHING:
        return ""
    wanted = [(each["event"], _slice(each["oldObj"]), _slice(each["newObj"])) for each in stated or ()]
    changes = replay(SliceIndex(), events)
    return "" if changes == wanted else f"upstream tells readers {wanted}, ours sees {changes}"


def orders(queues: Sequence[Sequence[Event]]) -> Iterator[list[Event]]:
    """Every order of events in which those of one queue keep theirs."""
    if not any(queues):
        yield []
    for number, queue in enumerate(queues):
        if queue:
            rest = [*queues[:number], queue[1:], *queues[number + 1 :]]
            for order in orders(rest):
                yield [queue[0], *order]


def replay(index: SliceIndex, events: Sequence[Event]) -> list[Change]:
    """Tell the index of the events; what its readers see change."""
    rules: dict[str, DeviceTaintRule] = {}
    changes: list[Change] = []
    for event in events:
        before = {_name(each): each for each in index.all()}
        _tell(index, rules, event)
        after = {_name(each): each for each in index.all()}
        for name in sorted(before.keys() | after.keys()):
            old, new = before.get(name), after.get(name)
            if old is not new:
                word = "add" if old is None else "delete" if new is None else "update"
                changes.append((word, old, new))
    return changes


def _tell(index: SliceIndex, rules: dict[str, DeviceTaintRule], event: Event) -> None:
    old, new = (None, None) if isinstance(event, str) else event
    subject = new or old
    if subject is not None and subject["kind"] == "ResourceSlice":
        index.slice_changed(_slice(old), _slice(new))
        return
    name = event if isinstance(event, str) else (subject or {})["metadata"]["name"]
    known = rules.pop(name, None)
    if new is not None:
        rules[name] = from_object(DeviceTaintRule, new)
    index.rule_changed(known, rules.get(name))


def _queue(entry: list[Any] | str) -> list[Event]:
    """An entry is one event, or a list of them in a fixed order."""
    is_pair = len(entry) == 2 and all(part is None or isinstance(part, dict) for part in entry)
    return [entry] if isinstance(entry, str) or is_pair else list(entry)


def _told(event: Event) -> str:
    if isinstance(event, str):
        return f"-{event}"
    old, new = event
    name = (new or old or {})["metadata"]["name"]
    return f"+{name}" if old is None else f"-{name}" if new is None else f"~{name}"


def _slice(raw: Json | None) -> Any:
    return None if raw is None else from_object(ResourceSlice, raw)


def _name(slice_: ResourceSlice) -> str:
    return slice_.metadata.name
