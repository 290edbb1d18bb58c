"""Pods by claim, by template, by node, and those that wait at our gate.

Fed by `model` with every change of a pod. It must not look at claims: names come from the pod alone, so that an index never
depends on the order in which kinds arrive.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

from dra_operator.model import GATE, Pod

from .index import Groups
from .resolution import claim_keys, template_keys

if TYPE_CHECKING:
    from collections.abc import Sequence


def is_gated(pod: Pod) -> bool:
    """Whether a pod waits at our gate (others may hold it, too) and may still run."""
    return GATE in pod.gate_names and not pod.is_done


class PodIndex:
    """The look-ups that controllers and placement need; all sequences by `namespace/name` unless told otherwise."""

    def __init__(self) -> None:
        self._by_uid: dict[str, Pod] = {}
        self._by_claim: Groups[str, Pod] = Groups()
        self._by_template: Groups[str, Pod] = Groups()
        self._by_node: Groups[str, Pod] = Groups()
        self._gated: list[Pod] = []

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Take over one pod."""
        pod = new or old
        assert pod is not None
        self._by_claim.move(_claims(old), _claims(new), pod.key, new)
        self._by_template.move(_templates(old), _templates(new), pod.key, new)
        self._by_node.move(_nodes(old), _nodes(new), pod.key, new)
        self._by_uid.pop(pod.uid, None)
        if new is not None:
            self._by_uid[new.uid] = new
        self._queue(old, new)

    def by_uid(self, uid: str) -> Pod | None:
        """The pod of that uid."""
        return self._by_uid.get(uid)

    def of_claim(self, claim_key: str) -> Sequence[Pod]:
        """Pods that name the claim, done ones included."""
        return self._by_claim.of(claim_key)

    def of_template(self, template_key: str) -> Sequence[Pod]:
        """Pods that name the template."""
        return self._by_template.of(template_key)

    def on_node(self, node_name: str) -> Sequence[Pod]:
        """Pods bound to the node, done ones included."""
        return self._by_node.of(node_name) if node_name else ()

    def gated(self) -> Sequence[Pod]:
        """Pods at our gate, oldest first."""
        return tuple(self._gated)

    def _queue(self, old: Pod | None, new: Pod | None) -> None:
        """Keep the queue in order by inserting: a burst of pods would sort it over and over."""
        if old is not None and is_gated(old):
            del self._gated[bisect_left(self._gated, _age(old), key=_age)]
        if new is not None and is_gated(new):
            insort(self._gated, new, key=_age)


def _age(pod: Pod) -> tuple[str, str]:
    return pod.metadata.creation_timestamp or "", pod.key


def _claims(pod: Pod | None) -> frozenset[str]:
    return frozenset() if pod is None else claim_keys(pod)


def _templates(pod: Pod | None) -> frozenset[str]:
    return frozenset() if pod is None else template_keys(pod)


def _nodes(pod: Pod | None) -> tuple[str, ...]:
    return (pod.spec.node_name,) if pod and pod.spec.node_name else ()
