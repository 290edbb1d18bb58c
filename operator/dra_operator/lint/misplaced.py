"""Names of attributes and capacities in expressions that are written as no device has them: `device.attributes.gpu.example.com.x`.

Out of the syntax tree alone: whatever is published, the value of an attribute has no fields, and no domain has a slash.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from dra_operator.cel.parsing import syntax
from dra_operator.cel.parsing.parser import parse
from dra_operator.cel.parsing.syntax import children, place
from dra_operator.errors import CelError

from .lookups import ATTRIBUTES, CAPACITY, INDEX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dra_operator.cel.parsing.syntax import Node

    from .objects import Item
    from .places import Path

_VALUES: Final = frozenset({"string", "int", "bool", "version", "value"})
"""Fields that hold the value in a ResourceSlice, and nothing in an expression."""

_LABEL: Final = re.compile(r"[a-zA-Z0-9-]+")
_COMPARED: Final = re.compile(r"[=!<>]=?\s*device\s*\.\s*\w+\s*[\[.]\s*")
_FULL: Final = 2
"""Steps to a value: domain and name."""


@dataclass(frozen=True, slots=True)
class Misplaced:
    """One such name.

    Attributes:
        message: what is wrong with it.
        form: what was meant.
        start, length: of it in the expression, behind the map, in characters.
    """

    message: str
    form: str
    start: int
    length: int

    @property
    def remedy(self) -> str:
        """What to do."""
        return f"write `{self.form}`"

    def covers(self, offset: int) -> bool:
        """Whether a place in the expression is in it."""
        return self.start <= offset < self.start + self.length


def tell(item: Item, path: Path, expression: str) -> None:
    """Tell of such names in an expression that compiles."""
    for one in misplaced(expression):
        item.tell("MisplacedName", path, one.message, remedy=one.remedy, part=(one.start, one.length))


def meant_at(expression: str, offset: int) -> str:
    """What to do about a fault there, if such a name is there, or is compared there."""
    for one in misplaced(expression):
        between = expression[one.start + one.length : offset]
        before = expression[offset : one.start] if offset >= 0 else ""
        if one.covers(offset) or (between and not between.strip(" )]\n\t")) or _COMPARED.fullmatch(before):
            return one.remedy
    return _dashed(expression, offset)


_DASHED: Final = re.compile(
    r"\bdevice\.(attributes|capacity)\.([\w.-]*-[\w.-]*)\.(\w+)|\.\??((?!\d)\w+(?:-(?!\d)\w+)+)"
)


def is_cut(expression: str, end: int) -> bool:
    """Whether a name that ends there goes on behind a dash, which is minus."""
    return re.compile(r"-(?!\d)\w").match(expression, end) is not None


def _dashed(expression: str, offset: int) -> str:
    """What to do about a name with dashes, each of which is taken for minus."""
    for found in _DASHED.finditer(expression):
        if not found.start() <= offset < found.end():
            continue
        if found[1]:
            return f'write `device.{found[1]}["{found[2]}"].{found[3]}`'
        first, *others = found[4].split("-")
        meant = first + "".join(word[:1].upper() + word[1:] for word in others)
        return (
            f'the `-` in `{found[4]}` is taken for minus, and a key with dashes is written `["{found[4]}"]`; but names of attributes and capacities have '
            f"none, only letters, digits and `_`: is it `{meant}`?"
        )
    return ""


@lru_cache(maxsize=4096)
def misplaced(expression: str) -> tuple[Misplaced, ...]:
    """Of an expression, in the order of its text; nothing if it does not parse."""
    try:
        node = parse(expression)
    except (CelError, RecursionError):
        return ()
    found = [one for chain in _chains(node) if (one := _judged(expression, *chain)) is not None]
    return tuple(sorted(found, key=lambda one: one.start))


_Chain = tuple[str, list[tuple[str, "Node"]]]
"""A map of the device, and what is read of it, step by step."""


def _chains(root: Node) -> Iterator[_Chain]:
    """The longest ones only."""
    stack, inner = [root], set[int]()
    while stack:
        node = stack.pop()
        if id(node) not in inner:
            name, steps, passed = _unwound(node)
            inner.update(passed)
            if name and steps:
                yield name, steps
        stack.extend(children(node))


def _unwound(node: Node) -> tuple[str, list[tuple[str, Node]], list[int]]:
    steps: list[tuple[str, Node]] = []
    passed: list[int] = []
    while True:
        step = _step(node)
        if step is None:
            return "", [], []
        name, operand = step
        passed.append(id(operand))
        if isinstance(operand, syntax.Ident) and operand.name == "device":
            return (name if name in {ATTRIBUTES, CAPACITY} else ""), steps[::-1], passed
        steps.append((name, node))
        node = operand


def _step(node: Node) -> tuple[str, Node] | None:
    """What a node reads, and out of what."""
    if isinstance(node, syntax.Select | syntax.Has):
        return node.field, node.operand
    if isinstance(node, syntax.Call) and node.function in INDEX and isinstance(node.args[1], syntax.Literal):
        key = node.args[1].value
        return (key, node.args[0]) if isinstance(key, str) else None
    return None


def _judged(text: str, kind: str, steps: list[tuple[str, Node]]) -> Misplaced | None:
    names = [name for name, _ in steps]
    if len(names) > 1 and names[-1] in _VALUES and ("/" in names[0] or len(names) > _FULL):
        names = names[:-1]
    first = names[0]
    one = "an attribute" if kind == ATTRIBUTES else "a capacity"
    if "/" in first:
        domain, _, name = first.partition("/")
        message = f"domain and name of {one} are looked up one after the other"
    elif len(steps) <= _FULL:
        return None
    elif "." in first or len(names) <= _FULL:
        domain, name = names[:2]
        message = f"the value of {one} has no field {steps[-1][0]}"
    elif all(map(_LABEL.fullmatch, names[:-1])):
        domain, name = ".".join(names[:-1]), names[-1]
        message = f"the domain {domain} is one key, and cannot be written as fields"
    else:
        return None
    last = steps[-1][1]
    dot = ".?" if isinstance(last, syntax.Select) and last.optional else "."
    start = place(steps[0][1]) + (text[place(steps[0][1])] in ".[")
    return Misplaced(message, f'device.{kind}["{domain}"]{dot}{name}', start, _end(text, last) - start)


def _end(text: str, node: Node) -> int:
    """Where a step ends: behind its name, and what closes an index."""
    at = place(node)
    if isinstance(node, syntax.Call):
        key = node.args[1]
        found = re.compile(r"""\s*("[^"\n]*"|'[^'\n]*')\s*\]?""").match(text, place(key))
        return found.end() if found else place(key) + 1
    if not isinstance(node, syntax.Select | syntax.Has):
        return at + 1
    at = place(node.operand) + 1 if isinstance(node, syntax.Has) else at
    found = re.compile(rf"\.\??\s*{re.escape(node.field)}\b").search(text, at)
    return found.end() if found else at + 1
