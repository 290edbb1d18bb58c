"""Which pages there are. A page is a function without arguments that gives its whole text; add a line to `PAGES` for another."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.dashboards.build import files as dashboards

from . import features, inputs, lint, metrics, prometheusrule, reasons, rules, settings

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"

PAGES: Final[dict[str, Callable[[], str]]] = {
    "features.md": features.page,
    "lint.md": lint.page,
    "metrics.md": metrics.page,
    "real-manifests.md": inputs.page,
    "reasons.md": reasons.page,
    "rules.md": rules.page,
    "settings.md": settings.page,
}

FILES: Final[dict[str, Callable[[], str]]] = {
    **{f"docs/{name}": render for name, render in PAGES.items()},
    "manifests/components/prometheus-rules/prometheusrule.yaml": prometheusrule.manifest,
    **{f"manifests/components/dashboard/{name}": partial(str, text) for name, text in dashboards().items()},
}
"""By path in the repository: the pages, and manifests that are made in the same way."""
