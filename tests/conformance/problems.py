"""Reading conformance files: a line is a problem for the allocator and what upstream, or the case's author, says about it.

Used by the runner and by the tests. Kinds of lines: upstream's table and own cases (`expect`), recorded answers (`problem`, `result`), hard
problems (`problem`, `known`, `upstream`). Lines about CEL and quantities are judged elsewhere (`lines.py`).
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from dra_operator.allocator import AllocatedState
from dra_operator.features import Features
from dra_operator.model import DeviceClass, DeviceId, Node, ResourceClaim, ResourceSlice, Value, from_object
from dra_operator.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]


OWN: Final = Path(__file__).parent / "cases"
"""The project's own cases."""

FOLLOWED: Final = ("incubating", "experimental")
"""The copies of upstream's allocator whose answers ours gives, the one that 1.37 runs by default first (alloc G-3)."""


class UnknownCase(ValueError):
    """A line that is a case of no kind."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What the allocator is asked."""

    features: Features
    nodes: tuple[Node, ...]
    classes: tuple[DeviceClass, ...]
    claims: tuple[ResourceClaim, ...]
    slices: tuple[ResourceSlice, ...]
    allocated: AllocatedState
    channel: str = ""

    def fingerprint(self) -> bytes:
        """All inputs as text, to see that none was touched (alloc I-5)."""
        values: list[Value] = [*self.nodes, *self.classes, *self.claims, *self.slices]
        taken = self.allocated
        capacity = sorted((key, sorted(sums.items())) for key, sums in taken.capacity.items())
        return msgspec.json.encode(
            (values, sorted(taken.devices), sorted(taken.shared), capacity), enc_hook=str
        )


@dataclass(frozen=True, slots=True)
class Expected:
    """What must come out (oracle 1.2, 1.3).

    Attributes:
        outcomes: any of these is right.
        results: one JSON object a claim, when the outcome is `results`.
        matches: per claim `unordered` or `equal`; empty for exact comparison in order.
        devices: for hard problems, [request, device] of all claims in order.
        error_contains: texts that must all occur in the error.
        per_node: scope of the error; None when it does not matter.
    """

    outcomes: frozenset[str]
    results: tuple[Json, ...] = ()
    matches: tuple[str, ...] = ()
    devices: tuple[tuple[str, str], ...] | None = None
    error_contains: tuple[str, ...] = ()
    per_node: bool | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One line.

    Attributes:
        required: gates that the case says it needs; None when it does not say.
        expected_product: what the product answers where its scopes of errors differ from upstream's.
        steps: search steps that upstream took, of the copy that ours follows (alloc G-3, oracle 7 no. 12); None if unknown.
    """

    id: str
    problem: Problem
    expected: Expected
    required: tuple[str, ...] | None = None
    expected_product: Expected | None = None
    note: str = field(default="", compare=False)
    steps: int | None = None


def read_lines(path: Path) -> Iterator[tuple[str, Json]]:
    """All lines of a file, each with a name: JSON Lines, optionally gzipped, or one JSON object (`hard/*.json`)."""
    with (
        gzip.open(path, "rt", encoding="utf-8")
        if path.suffix == ".gz"
        else path.open(encoding="utf-8") as lines
    ):
        if path.suffix == ".json":
            yield path.stem, json.load(lines)
            return
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield f"{path.name}:{number}", json.loads(line)


def own_lines() -> Iterator[tuple[str, Json]]:
    """The lines of the project's own cases, of all kinds."""
    for path in sorted(OWN.glob("*.jsonl")):
        yield from read_lines(path)


def decode_case(raw: Json, name: str) -> Case:
    """One case out of its JSON form; `name` serves lines without an id.

    Raises:
        UnknownCase: it is none.
    """
    if "known" in raw:
        steps = _steps(raw["upstream"])
        return Case(f"hard/{name}", _problem(raw["problem"]), _hard(raw), steps=steps)
    if "result" in raw and "problem" in raw:
        steps = _steps(raw["result"])
        return Case(raw.get("id", name), _problem(raw["problem"]), _recorded(raw["result"]), steps=steps)
    if "expect" in raw and "claims" in raw:
        product = raw.get("expectProduct")
        return Case(
            id=raw.get("id", name),
            problem=_problem(raw),
            expected=_table(raw["expect"]),
            required=tuple(raw.get("requiredFeatures") or ()),
            expected_product=_table(product) if product else None,
            note=raw.get("note", ""),
            steps=_table_steps(raw),
        )
    raise UnknownCase(f"{name}: a case of no kind (fields: {', '.join(sorted(raw))})")


def _steps(answer: Json) -> int | None:
    """What upstream counted for an answer of its own; a panic loses the count, and the stable copy counts otherwise (oracle 7 no. 12)."""
    if answer.get("outcome") == "panic" or answer.get("channel") == "stable":
        return None
    steps: int | None = answer.get("allocateOneInvocations")
    return steps


def _table_steps(raw: Json) -> int | None:
    """What the table demands of the copy that ours follows, or what that copy took; None where the case tells neither."""
    copies = [name for name in FOLLOWED if name in raw.get("supportedChannels", FOLLOWED)]
    expect = raw["expect"]
    if not copies:
        return None
    by_channel = expect.get("allocateOneInvocationsByChannel") or {}
    demanded = by_channel.get(copies[0], expect.get("allocateOneInvocations"))
    return demanded if demanded is not None else _steps(raw.get("actual", {}).get(copies[0], {}))


def decode_problem(raw: Json) -> Problem:
    """A problem object (tests/oracle/README.md)."""
    return _problem(raw)


def _problem(raw: Json) -> Problem:
    nodes = raw.get("nodes") or [raw["node"]]
    return Problem(
        features=msgspec.convert(raw.get("features") or {}, Features),
        nodes=tuple(from_object(Node, node) for node in nodes),
        classes=tuple(from_object(DeviceClass, each) for each in raw.get("classes") or ()),
        claims=tuple(from_object(ResourceClaim, each) for each in raw.get("claims") or ()),
        slices=tuple(from_object(ResourceSlice, each) for each in raw.get("slices") or ()),
        allocated=_allocated(raw.get("allocated") or {}),
        channel=raw.get("channel", ""),
    )


def _allocated(raw: Json) -> AllocatedState:
    return AllocatedState(
        devices=frozenset(_device_id(each) for each in raw.get("devices") or ()),
        shared=frozenset(_device_id(each) for each in raw.get("sharedDeviceIDs") or ()),
        capacity={
            _device_id(each): {name: Quantity.parse(amount) for name, amount in each["capacity"].items()}
            for each in raw.get("aggregatedCapacity") or ()
        },
    )


def _device_id(raw: Json) -> DeviceId:
    return DeviceId(raw["driver"], raw["pool"], raw["device"])


def _table(raw: Json) -> Expected:
    results = tuple(raw.get("results") or ())
    matches = raw.get("resultMatch") or []
    if isinstance(matches, str):
        matches = [matches] * len(results)
    return Expected(
        outcomes=_outcomes(raw["outcome"], " ".join(raw.get("errorContains") or ())),
        results=results,
        matches=tuple(matches),
        error_contains=tuple(raw.get("errorContains") or ()),
        per_node=raw.get("perNode"),
    )


def _recorded(raw: Json) -> Expected:
    if raw["outcome"] == "panic":
        return Expected(frozenset({"error"}))
    return Expected(
        outcomes=_outcomes(raw["outcome"], raw.get("error", "")),
        results=tuple(raw.get("results") or ()),
        per_node=bool(raw.get("perNode")) if raw["outcome"] == "error" else None,
    )


def _hard(raw: Json) -> Expected:
    known = raw["known"]
    if known is None:
        return _recorded(raw["upstream"])
    devices = known.get("devices")
    pairs = tuple((request, device) for request, device in devices) if devices is not None else None
    return Expected(outcomes=frozenset({known["outcome"]}), devices=pairs)


def _outcomes(outcome: str, error: str) -> frozenset[str]:
    """A search that cuts branches may say "none" where upstream ran into mode All's constraint error (oracle 1.2)."""
    late = (
        outcome == "error" and "cannot add device" in error and "constraint would not be satisfied" in error
    )
    return frozenset({outcome, "none"} if late else {outcome})
