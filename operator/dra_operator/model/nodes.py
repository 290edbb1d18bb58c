"""Nodes, node selectors, taints and tolerations: the core/v1 values that choose nodes.

Matching lives in `placement` and `allocator`; here are only the values.
"""

from __future__ import annotations

from dra_operator.quantity import Quantity

from .meta import Condition, ObjectMeta, Value


class NodeSelectorRequirement(Value, frozen=True):
    """One requirement: `key operator values` with In, NotIn, Exists, DoesNotExist, Gt, Lt."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Value, frozen=True):
    """ANDed requirements on labels and fields; an empty term matches nothing (alloc N-2)."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Value, frozen=True):
    """ORed terms; no term matches nothing (alloc N-2)."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class Taint(Value, frozen=True):
    """A taint of a node."""

    key: str = ""
    value: str = ""
    effect: str = ""


class Toleration(Value, frozen=True):
    """A toleration of a pod (core/v1)."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class NodeSpec(Value, frozen=True):
    """What an admin sets on a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeStatus(Value, frozen=True):
    """What the kubelet reports."""

    allocatable: dict[str, Quantity] = {}
    conditions: tuple[Condition, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(Value, frozen=True):
    """A node."""

    metadata: ObjectMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def name(self) -> str:
        """Its name; what matchFields `metadata.name` compares."""
        return self.metadata.name
