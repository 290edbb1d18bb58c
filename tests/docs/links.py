"""What the pages point at: links, headings, names in code. Reads only."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .commands import tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from markdown_it.token import Token


def links(page: str) -> list[str]:
    """Targets of links within the repository."""
    found = [token.attrs.get("href", "") for token in _inline(page) if token.type == "link_open"]
    return [str(target) for target in found if not re.match(r"[a-z]+:", str(target))]


def code_spans(page: str) -> list[str]:
    """Texts in backquotes."""
    return [token.content for token in _inline(page) if token.type == "code_inline" and token.content.strip()]


def anchors(page: str) -> set[str]:
    """What a link may name behind `#`: the headings, as GitHub spells them."""
    found = tokens(page)
    headings = [found[number + 1] for number, token in enumerate(found) if token.type == "heading_open"]
    return {_slug(_text(heading)) for heading in headings}


def _text(token: Token) -> str:
    return "".join(child.content for child in token.children or () if child.type in {"text", "code_inline"})


def _slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _inline(page: str) -> Iterator[Token]:
    for token in tokens(page):
        yield from token.children or ()
