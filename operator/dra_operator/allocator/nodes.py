"""Which nodes a slice or device can be used on: core/v1 node selector matching (alloc N-1, N-2).

Called by `pools` and `requests`, and by placement for required node affinity. Pure comparisons; a selector that Kubernetes could not parse
is an error even where another term matches, as upstream parses the whole selector first.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Protocol

from dra_operator.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dra_operator.model import Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm

_NAME = re.compile(r"(?:[A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]")
_PREFIX = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_INTEGER = re.compile(r"[+-]?0*([0-9]{1,19})")
_PREFIX_LIMIT: Final = 253


class NodeFields(Protocol):
    """The three fields by which slices, and devices in them, name nodes."""

    @property
    def node_name(self) -> str | None:
        """One node, by name."""

    @property
    def all_nodes(self) -> bool | None:
        """Every node."""

    @property
    def node_selector(self) -> NodeSelector | None:
        """Nodes by label or field."""


def node_matches(node: Node, published: NodeFields) -> bool:
    """Whether a slice's spec, or a device, can be used on the node; the first field that is set decides (alloc N-1).

    Raises:
        InvalidInput: the selector cannot be parsed.
    """
    if published.node_name:
        return published.node_name == node.name
    if published.all_nodes:
        return True
    return published.node_selector is not None and selector_matches(published.node_selector, node)


def selector_matches(selector: NodeSelector, node: Node) -> bool:
    """Whether some term holds; no terms match nothing (alloc N-2).

    Raises:
        InvalidInput: some term cannot be parsed.
    """
    terms = selector.node_selector_terms
    for index, term in enumerate(terms):
        _check_term(f"nodeSelectorTerms[{index}]", term)
    return any(_term_matches(term, node) for term in terms)


def _term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    labels = node.metadata.labels
    return all(_holds(need, labels.get(need.key)) for need in term.match_expressions) and all(
        _holds(need, node.name if need.key == "metadata.name" else "") for need in term.match_fields
    )


def _holds(need: NodeSelectorRequirement, actual: str | None) -> bool:
    return _OPERATORS[need.operator](actual, need.values)


def _compare(actual: str | None, values: tuple[str, ...], *, above: bool) -> bool:
    mine, theirs = _integer(actual or ""), _integer(values[0])
    if mine is None or theirs is None:
        return False
    return mine > theirs if above else mine < theirs


def _integer(text: str) -> int | None:
    """The text as Go's 64-bit integer; None if it is none. Nobody stops users from writing megabytes of digits."""
    found = _INTEGER.fullmatch(text)
    if found is None:
        return None
    number = -int(found[1]) if text.startswith("-") else int(found[1])
    return number if -(2**63) <= number < 2**63 else None


_OPERATORS: Mapping[str, Callable[[str | None, tuple[str, ...]], bool]] = {
    "In": lambda actual, values: actual is not None and actual in values,
    "NotIn": lambda actual, values: actual is None or actual not in values,
    "Exists": lambda actual, _: actual is not None,
    "DoesNotExist": lambda actual, _: actual is None,
    "Gt": lambda actual, values: _compare(actual, values, above=True),
    "Lt": lambda actual, values: _compare(actual, values, above=False),
}


def _check_term(path: str, term: NodeSelectorTerm) -> None:
    for index, need in enumerate(term.match_expressions):
        _check_expression(f"{path}.matchExpressions[{index}]", need)
    for index, need in enumerate(term.match_fields):
        if need.operator not in {"In", "NotIn"} or len(need.values) != 1:
            raise InvalidInput(
                f"{path}.matchFields[{index}]", "fields take In or NotIn with exactly one value"
            )


def _check_expression(path: str, need: NodeSelectorRequirement) -> None:
    problem = _key_problem(need.key) or _values_problem(need)
    if problem:
        raise InvalidInput(path, problem)


def _key_problem(key: str) -> str:
    prefix, slash, name = key.rpartition("/")
    if slash and not (_PREFIX.fullmatch(prefix) and len(prefix) <= _PREFIX_LIMIT):
        return f"{key!r} is not a label key"
    return "" if _NAME.fullmatch(name) else f"{key!r} is not a label key"


def _values_problem(need: NodeSelectorRequirement) -> str:
    match need.operator:
        case "In" | "NotIn":
            well_formed = bool(need.values) and all(
                not value or _NAME.fullmatch(value) for value in need.values
            )
        case "Exists" | "DoesNotExist":
            well_formed = not need.values
        case "Gt" | "Lt":
            well_formed = len(need.values) == 1 and _integer(need.values[0]) is not None
        case _:
            return f"{need.operator!r} is not a valid node selector operator"
    return "" if well_formed else f"operator {need.operator} does not take the values {list(need.values)}"
