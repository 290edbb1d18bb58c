"""Which pages there are. A page is a function without arguments that gives its whole text; add a line to `PAGES` for another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from . import features, inputs, lint, metrics, rules, settings

if TYPE_CHECKING:
    from collections.abc import Callable

DOCS: Final = Path(__file__).parents[2] / "docs"

PAGES: Final[dict[str, Callable[[], str]]] = {
    "features.md": features.page,
    "lint.md": lint.page,
    "metrics.md": metrics.page,
    "real-manifests.md": inputs.page,
    "rules.md": rules.page,
    "settings.md": settings.page,
}
