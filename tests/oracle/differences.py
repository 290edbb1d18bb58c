"""Compares an answer of ours with upstream's: what differs, by kind. It asks nobody."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .expressions import Tree

Json = dict[str, Any]

KINDS: Final[dict[str, str]] = {
    "crash": "our engine broke down",
    "accepts": "we accept what upstream refuses",
    "refuses": "we refuse what upstream accepts",
    "value": "another value",
    "fails": "we fail where upstream has a value",
    "passes": "we have a value where upstream fails",
    "type": "another static type of the result",
    "estimate": "another estimated cost",
    "cost": "another actual cost",
    "unsupported": "our engine says that it cannot tell",
}
"""What counts as a difference, worst first."""

_DETAIL: Final = re.compile(r"'[^']*'|[0-9]+")


@dataclass(frozen=True, slots=True)
class Difference:
    """One disagreement.

    Attributes:
        kind: a key of `KINDS`.
        question: with at most one device.
        theirs: upstream's answer, or its answer about the device.
        ours: our answer.
        tree: what the expression was made of; None where it was given as text.
    """

    kind: str
    question: Json
    theirs: Json
    ours: Json
    tree: Tree | None = None

    @property
    def signature(self) -> str:
        """The same for differences that look alike: the kind, and the error without names and figures."""
        error = (self.ours.get("error") or self.theirs.get("error") or "").partition("\n")[0]
        return f"{self.kind} {_DETAIL.sub('…', error)[:120]}"

    def lines(self) -> list[str]:
        """For a reader."""
        question = self.question
        flags = [question.get("env", "")] + [name for name, on in question.get("features", {}).items() if on]
        told = ["derived"] if question.get("derived") else []
        lines = [f"{self.kind}: {question['expression'][:2000]}", f"    in {', '.join(told + flags)}"]
        if "device" in question:
            lines.append(f"    device   {question['device']}")
        return [*lines, f"    upstream {_told(self.theirs)}", f"    ours     {_told(self.ours)}"]


def _told(answer: Json) -> str:
    facts = {key: value for key, value in answer.items() if key not in {"id", "results", "error"}}
    text = ", ".join(f"{key} {value}" for key, value in facts.items())
    return f"{text} {answer['error']!r}" if "error" in answer else text


def compare(question: Json, theirs: Json, ours: Json, tree: Tree | None = None) -> Iterator[Difference]:
    """All differences between two answers to a question about `devices`."""
    whole = {key: value for key, value in question.items() if key != "devices"}
    kind = _compiled(theirs, ours)
    if kind is not None:
        yield Difference(kind, whole, theirs, ours, tree)
        if kind not in {"type", "estimate"}:
            return
    for device, their, our in zip(
        question.get("devices", ()), theirs.get("results", ()), ours.get("results", ()), strict=False
    ):
        found = _evaluated(their, our)
        if found is not None:
            yield Difference(found, {**whole, "device": device}, their, our, tree)


def _compiled(theirs: Json, ours: Json) -> str | None:
    if ours["outcome"] in {"crash", "unsupported"}:
        return str(ours["outcome"])
    if theirs["outcome"] == "panic":  # any error will do
        return "passes" if any(each["outcome"] == "ok" for each in ours.get("results", ())) else None
    refused = theirs["outcome"] == "compile-error"
    if refused or ours["outcome"] == "compile-error":
        return None if theirs["outcome"] == ours["outcome"] else "accepts" if refused else "refuses"
    for field, kind in (("outputType", "type"), ("maxCost", "estimate")):
        if field in ours and ours[field] != theirs[field]:
            return kind
    return None


def _evaluated(theirs: Json, ours: Json) -> str | None:
    if ours["outcome"] in {"crash", "unsupported"}:
        return str(ours["outcome"])
    if theirs["outcome"] == "panic" and ours["outcome"] == "runtime-error":
        return None
    if theirs["outcome"] != ours["outcome"]:
        return "fails" if theirs["outcome"] == "ok" else "passes"
    for field in ("match", "attribute"):
        if theirs.get(field) != ours.get(field):
            return "value"
    if "actualCost" in ours and ours["actualCost"] != theirs.get("actualCost"):
        return "cost"
    return None
