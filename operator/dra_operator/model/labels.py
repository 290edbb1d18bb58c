"""Label selectors as pods, services and policies write them (meta/v1): the values, not the matching.

Matching lives in `cluster.selectors`. A selector that is absent and one that is empty differ: nothing, and everything.
"""

from __future__ import annotations

from .meta import Value


class LabelSelectorRequirement(Value, frozen=True):
    """One requirement: `key operator values` with In, NotIn, Exists, DoesNotExist."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Value, frozen=True):
    """ANDed requirements; none at all match everything."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()
