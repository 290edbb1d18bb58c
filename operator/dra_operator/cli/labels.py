"""Label selectors as one types them for `kubectl get -l`: `a=b,c!=d,e,!f,g in (h,i),j notin (k)`. `cluster.selectors` compares."""

from __future__ import annotations

import re
from typing import Final

from dra_operator.cluster import Requirement, Selector

_KEY: Final = r"(?P<key>[\w./-]+)"
_FORMS: Final = tuple(
    (re.compile(pattern), operator)
    for pattern, operator in (
        (rf"{_KEY}\s*(?:==|=)\s*(?P<values>[\w.-]*)", "In"),
        (rf"{_KEY}\s*!=\s*(?P<values>[\w.-]*)", "NotIn"),
        (rf"{_KEY}\s+in\s*\((?P<values>[\w.,\s-]*)\)", "In"),
        (rf"{_KEY}\s+notin\s*\((?P<values>[\w.,\s-]*)\)", "NotIn"),
        (rf"!\s*{_KEY}", "DoesNotExist"),
        (_KEY, "Exists"),
    )
)
_COMMAS: Final = re.compile(r",(?![^()]*\))")
"""Those that are not within parentheses."""


def read(text: str) -> Selector:
    """A selector; empty text selects everything.

    Raises:
        ValueError: it is none.
    """
    parts = [part.strip() for part in _COMMAS.split(text)] if text.strip() else []
    return Selector(tuple(sorted(_requirement(part) for part in parts)))


def _requirement(part: str) -> Requirement:
    for form, operator in _FORMS:
        found = form.fullmatch(part)
        if found:
            values = found.groupdict().get("values")
            texts = () if values is None else tuple(sorted(value.strip() for value in values.split(",")))
            return Requirement(found["key"], operator, texts)
    raise ValueError(f"{part!r} selects no labels; write a=b, a!=b, a, !a, a in (b,c) or a notin (b,c)")
