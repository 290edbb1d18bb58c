"""Pods by claim, by template, by uid.

Fed by `model` with every change of a pod. It must not look at claims: names come from the pod alone, so that an index never
depends on the order in which kinds arrive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .index import Groups
from .resolution import claim_keys, template_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dra_operator.model import Pod


class PodIndex:
    """The look-ups that controllers and placement need; all sequences by `namespace/name` unless told otherwise."""

    def __init__(self) -> None:
        self._by_uid: dict[str, Pod] = {}
        self._by_claim: Groups[str, Pod] = Groups()
        self._by_template: Groups[str, Pod] = Groups()

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Take over one pod."""
        pod = new or old
        assert pod is not None
        self._by_claim.move(_claims(old), _claims(new), pod.key, new)
        self._by_template.move(_templates(old), _templates(new), pod.key, new)
        self._by_uid.pop(pod.uid, None)
        if new is not None:
            self._by_uid[new.uid] = new

    def by_uid(self, uid: str) -> Pod | None:
        """The pod of that uid."""
        return self._by_uid.get(uid)

    def of_claim(self, claim_key: str) -> Sequence[Pod]:
        """Pods that name the claim, done ones included."""
        return self._by_claim.of(claim_key)

    def of_template(self, template_key: str) -> Sequence[Pod]:
        """Pods that name the template."""
        return self._by_template.of(template_key)


def _claims(pod: Pod | None) -> frozenset[str]:
    return frozenset() if pod is None else claim_keys(pod)


def _templates(pod: Pod | None) -> frozenset[str]:
    return frozenset() if pod is None else template_keys(pod)
