"""Random CEL expressions, well typed and ill typed, as `shapes` describes them; seeded.

An expression is a tree of the forms that it was made of, so that one on which engines disagree can be made smaller. It must not know what is right.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Final

from . import shapes

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Sequence

    from .shapes import Form

_GAP: Final = re.compile(r"<(?:(?P<name>[a-z]+):)?(?P<kind>[a-z][a-z0-9_]*)>")

VARIABLE: Final = 0.4
"""How often a variable of the right type is taken where there is one."""

FOREIGN: Final = 0.015
"""How often a gap gets an expression of some other type."""

FAULT: Final = 0.004
"""How often it gets something that is wrong in itself."""

TYPOS: Final = 0.02
"""How many expressions have a character exchanged, inserted or taken out."""

_TYPING: Final = "()[]{}?:.,!-+<=&|\"'`\\ \n/%aéx0"

Scope = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Tree:
    """An expression: the text around the gaps of a form, and what they were filled with."""

    kind: str
    texts: tuple[str, ...]
    parts: tuple[Tree, ...] = ()

    def __str__(self) -> str:
        """The expression."""
        gaps = (f"{part}{text}" for part, text in zip(self.parts, self.texts[1:], strict=True))
        return self.texts[0] + "".join(gaps)

    @property
    def is_loose(self) -> bool:
        """Whether it needs parentheses inside of another expression."""
        return (
            " " in "".join(self.texts) and self.texts[0][:1] not in set("([{\"'") and "(" not in self.texts[0]
        )

    def wrapped(self) -> Tree:
        """The same in parentheses."""
        first, *rest = self.texts
        texts = (f"({first}", *rest)
        return replace(self, texts=(*texts[:-1], f"{texts[-1]})"))

    def inner(self) -> Iterator[Tree]:
        """All trees in it."""
        for part in self.parts:
            yield part
            yield from part.inner()

    def smaller(self) -> Iterator[Tree]:
        """Trees with one part less, the largest cut first: a part is exchanged for one of its own parts, or for a leaf."""
        for part in self.inner():
            if part.kind == self.kind or self.kind in {"selector", "derived"}:
                yield part
        if self.parts:
            yield from (Tree(self.kind, (leaf,)) for leaf in _plain(self.kind))
        for position, part in enumerate(self.parts):
            for less in part.smaller():
                yield replace(self, parts=(*self.parts[:position], less, *self.parts[position + 1 :]))


@cache
def _plain(kind: str) -> tuple[str, ...]:
    return tuple(form for _, form in forms(kind, leaves=True) if not _GAP.search(form))[:3]


@cache
def forms(kind: str, *, leaves: bool) -> tuple[Form, ...]:
    """The ways to write a value of that type."""
    if kind in shapes.WORDS:
        return shapes.WORDS[kind]
    own = shapes.LEAVES.get(kind, ())
    generic = _generic(shapes.GENERIC_LEAVES, kind)
    if leaves:
        return own or generic or shapes.FORMS.get(kind, ())
    inner = shapes.FORMS.get(kind, ())
    messages = shapes.MESSAGES.get(kind, ())
    return (
        *own,
        *generic,
        *((4 * weight, form) for weight, form in inner),
        *messages,
        *_generic(shapes.GENERIC, kind),
    )


def _generic(table: dict[str, tuple[Form, ...]], kind: str) -> tuple[Form, ...]:
    found: list[Form] = []
    for pattern, entries in table.items():
        for element in shapes.LISTS:
            if pattern.replace("$T", element) == kind:
                found += ((weight, form.replace("$T", element)) for weight, form in entries)
    return tuple(found)


def choose(rng: random.Random, table: Sequence[Form]) -> str:
    """One of them, by weight."""
    return rng.choices([form for _, form in table], [weight for weight, _ in table])[0]


class Generator:
    """Makes expressions out of a source of randomness."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def selector(self) -> Tree:
        """A selector."""
        return self._whole("selector", shapes.TOP)

    def derived(self) -> Tree:
        """A derived attribute."""
        return self._whole("derived", shapes.DERIVED)

    def _whole(self, kind: str, table: Sequence[Form]) -> Tree:
        depth = self._rng.choices([1, 2, 3, 4, 5], [4, 8, 6, 2, 1])[0]
        tree = self._filled(kind, choose(self._rng, table), depth, ())
        if self._rng.random() < TYPOS:
            return Tree(kind, (_mistyped(self._rng, str(tree)),))
        return tree

    def _filled(self, kind: str, form: str, depth: int, scope: Scope) -> Tree:
        parts: list[Tree] = []
        texts, text, end = [], "", 0
        for gap in _GAP.finditer(form):
            text += form[end : gap.start()]
            end = gap.end()
            if gap["name"] and gap["name"] != "attribute":
                name = self._rng.choice(["x", "y", gap["name"]])
                scope = (*((other, type_) for other, type_ in scope if other != name), (name, gap["kind"]))
                text += name
            else:
                texts.append(text)
                text = ""
                wanted = self._attribute(gap["kind"]) if gap["name"] else None
                parts.append(wanted or self._part(gap["kind"], depth - 1, scope))
        return Tree(kind, (*texts, text + form[end:]), tuple(parts))

    def _part(self, kind: str, depth: int, scope: Scope) -> Tree:
        special = self._special(kind, depth, scope)
        if special is not None:
            return special
        if kind in shapes.WORDS:
            return self._filled(kind, choose(self._rng, shapes.WORDS[kind]), depth, scope)
        chance = self._rng.random()
        if chance < FAULT:
            return self._filled(kind, choose(self._rng, shapes.WRONG), depth, scope)
        known = [name for name, type_ in scope if type_ == kind]
        if known and self._rng.random() < VARIABLE:
            return Tree(kind, (self._rng.choice(known),))
        if chance > 1 - FOREIGN:
            return replace(self._part(choose(self._rng, shapes.ANY), depth, scope), kind=kind)
        tree = self._filled(kind, choose(self._rng, forms(kind, leaves=depth <= 0)), depth, scope)
        return tree.wrapped() if tree.is_loose else tree

    def _special(self, kind: str, depth: int, scope: Scope) -> Tree | None:
        """Gaps that are about names: of attributes, capacities, domains."""
        if kind == "any":
            return self._part(choose(self._rng, shapes.ANY), depth, scope)
        if kind == "name":
            names = [name for group in shapes.ATTRIBUTES.values() for name in group]
            return Tree(kind, (self._rng.choice([*names, "nope"]),))
        if kind == "capacity":
            return Tree(kind, (self._rng.choice([*shapes.CAPACITIES, *shapes.CAPACITIES, "nope"]),))
        if kind in {"attributes", "capacities"}:
            field = {"attributes": "attributes", "capacities": "capacity"}[kind]
            domain = choose(self._rng, shapes.LEAVES["domain"])
            return Tree(kind, (f"device.{field}[{domain}]",))
        return None

    def _attribute(self, kind: str) -> Tree:
        """An attribute that mostly has that type."""
        name = self._rng.choice(shapes.ATTRIBUTES[kind])
        domain = self._rng.choices(shapes.DOMAINS, [8, 2, 1])[0]
        base = f'device.attributes["{domain}"]'
        ways = [
            f"{base}.{name}",
            f'{base}["{name}"]',
            f"{base}.?{name}.orValue({_default(kind)})",
            f'{base}[?"{name}"].orValue({_default(kind)})',
        ]
        return Tree(kind, (self._rng.choices(ways, [10, 2, 3, 1])[0],))


def _default(kind: str) -> str:
    return "[]" if kind.startswith("list_") else _plain(kind)[0]


def _mistyped(rng: random.Random, text: str) -> str:
    position = rng.randrange(len(text))
    added = rng.choice([rng.choice(_TYPING), rng.choice(_TYPING), ""])
    return text[:position] + added + text[position + rng.randrange(2) :]
