"""The one patch that places and releases a gated pod, as a pure function (cp I-22…I-26, real-control-plane 6b).

Required node affinity is tightened to the node, and our gate is removed by name, in one strategic merge patch. Called by
`commit` only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dra_operator.model import GATE, NodeSelectorRequirement, NodeSelectorTerm, to_object

if TYPE_CHECKING:
    from dra_operator.model import NodeSelector, Pod


def requirement(node: str) -> NodeSelectorRequirement:
    """`metadata.name In [node]`: matchFields take one key and one value only (cp I-26)."""
    return NodeSelectorRequirement(key="metadata.name", operator="In", values=(node,))


def tightened(term: NodeSelectorTerm, node: str) -> NodeSelectorTerm:
    """The term with the node appended; an empty term stays empty, it matches nothing and may not gain requirements (cp I-24)."""
    wanted = requirement(node)
    if not (term.match_expressions or term.match_fields) or wanted in term.match_fields:
        return term
    return NodeSelectorTerm(
        match_expressions=term.match_expressions, match_fields=(*term.match_fields, wanted)
    )


def pinned_terms(required: NodeSelector | None, node: str) -> tuple[NodeSelectorTerm, ...]:
    """Required terms that allow that node only: every existing term tightened, or one new term if there is none (cp I-24)."""
    if required is None or not required.node_selector_terms:
        return (NodeSelectorTerm(match_fields=(requirement(node),)),)
    return tuple(tightened(term, node) for term in required.node_selector_terms)


def required_terms(pod: Pod) -> NodeSelector | None:
    """The pod's required node affinity."""
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return None
    return affinity.node_affinity.required_during_scheduling_ignored_during_execution


def release_spec() -> dict[str, Any]:
    """Spec of a strategic merge patch that removes our gate and nothing else."""
    return {"schedulingGates": [{"$patch": "delete", "name": GATE}]}


def placement_spec(pod: Pod, node: str) -> dict[str, Any]:
    """Spec of a strategic merge patch that pins the pod to the node and removes our gate.

    The list of terms has no merge key, the server replaces it whole: so all terms are sent, old requirements first.
    """
    terms = [to_object(term) for term in pinned_terms(required_terms(pod), node)]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": required}, **release_spec()}
