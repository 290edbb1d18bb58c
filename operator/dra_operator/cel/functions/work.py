"""Work, in units of our own: what a call takes beyond its own node, by the size of the values that it walks through or builds.

One unit is roughly what a node of the syntax tree takes; upstream's units, which it calls cost, are another matter (`units.py`). Functions whose
work hangs on the size of their arguments name one of these in `Table.define`; the evaluator counts it before they run, so that nothing large is
begun that the budget does not cover. It must not evaluate.
"""

from __future__ import annotations

from typing import Any, Final

from dra_operator.cel.types.values import Optional, Record

ENOUGH: Final = 1_000_000
"""Units that a comparison or a search may take, as nothing can stop it once it has begun."""

REFUSED: Final = 4_000_001
"""What those beyond count as: more than the budget of an evaluation."""

CHARACTERS: Final = 8
"""Characters that count as one unit; upstream counts a tenth of a unit each (cel-go's string traversal)."""

ELEMENTS: Final = 2
"""Elements of a list whose copy counts as one unit."""

_PARSING: Final = 80
"""Units for a quantity or version that is read from a short text (measured: 10 to 40 µs)."""


def capped(units: int) -> int:
    """The units of a call that cannot be interrupted."""
    return units if units < ENOUGH else REFUSED


def linear(*values: Any) -> int:
    """Every character or element is looked at, or copied, once."""
    units = 0
    for value in values:
        kind = type(value)
        if kind is str or kind is bytes:
            units += len(value) // CHARACTERS
        elif kind is tuple:
            units += len(value) // ELEMENTS
    return units


def deep(*values: Any) -> int:
    """Everything inside is looked at: comparisons. Lists that hold one another are counted as often as a comparison meets them."""
    units, waiting = 0, list(values)
    while waiting and units < ENOUGH:
        value = waiting.pop()
        kind = type(value)
        if kind is str or kind is bytes:
            units += len(value) // CHARACTERS
        elif kind is tuple:
            units += len(value)
            if units < ENOUGH:
                waiting.extend(value)
        elif isinstance(value, dict):
            units += len(value)
            waiting.extend(value.values())
        elif kind is Optional and value.present:
            units += 1
            waiting.append(value.value)
        elif isinstance(value, Record):
            waiting.append(value.fields)
    return capped(units)


def searched(text: str, part: str, *_: Any) -> int:
    """A search from the end, whose worst case looks at every pair of characters."""
    return capped(len(text) * len(part) // CHARACTERS**2)


def pieces(text: str, *_: Any) -> int:
    """Text that falls into pieces, of which each is a value of its own."""
    return len(text) // 2


def translated(text: str) -> int:
    """Text whose characters are looked up one by one; those of ASCII go faster (measured: 80 µs for a thousand others)."""
    return len(text) // (CHARACTERS if text.isascii() else 2)


def replaced(text: str, old: str, new: str, *_: Any) -> int:
    """Text with parts exchanged: what is there and what comes out."""
    return (len(text) + text.count(old) * len(new)) // CHARACTERS


def parsed(text: str, *_: Any) -> int:
    """A quantity or a version out of text."""
    return _PARSING + linear(text)


_SHORT: Final = 256
"""Characters that are taken apart within the units of `parsed`; addresses and names of hosts have fewer."""

_PER_CHARACTER: Final = 8
"""Units for a character beyond, at worst (measured: 1 to 3 µs)."""


def spelt(text: str, *_: Any) -> int:
    """A text that is read character by character, by our own code: an address, a URL, a duration."""
    return parsed(text) + _PER_CHARACTER * max(0, len(text) - _SHORT)


def versioned(text: str, *_: Any) -> int:
    """A version out of text."""
    return parsed(text) + 2 * max(0, len(text) - _SHORT)


def joined(items: tuple[Any, ...], separator: str = "") -> int:
    """A list of texts made one."""
    texts = sum(len(item) for item in items if type(item) is str)
    return len(items) + (texts + len(items) * len(separator)) // CHARACTERS


def crossed(one: tuple[Any, ...], other: tuple[Any, ...]) -> int:
    """Each element of one list is compared with each of the other."""
    return len(one) * (1 + deep(other))


_CONVERTED: Final = 8
"""Units for a value that is converted (measured: 1 to 2 µs)."""

_READ: Final = 4
"""Units for a byte that is read (measured: 0.5 to 1 µs)."""


def converted(*values: Any) -> int:
    """Values that become fields of a message: everything inside is made anew."""
    return capped(_CONVERTED * (deep(*values) + len(values)))


def read(*values: Any) -> int:
    """Bytes that are taken apart as a message."""
    return capped(sum(_READ * len(value) for value in values if type(value) is bytes))
