"""PodGroups by the claims and templates that they name, and pods by their group (cp C-7, C-73).

Fed by `model` with every change of a pod or a group. As in `pods`, names come from the objects alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .index import Groups
from .resolution import claim_name, group_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dra_operator.model import Pod, PodGroup


class PodGroupIndex:
    """The look-ups of the claim controller; all sequences by `namespace/name`."""

    def __init__(self) -> None:
        self._members: Groups[str, Pod] = Groups()
        self._by_claim: Groups[str, PodGroup] = Groups()
        self._by_template: Groups[str, PodGroup] = Groups()

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Take over one pod."""
        pod = new or old
        assert pod is not None
        before, after = ((found,) if (found := group_key(side)) else () for side in (old, new))
        self._members.move(before, after, pod.key, new)

    def group_changed(self, old: PodGroup | None, new: PodGroup | None) -> None:
        """Take over one group."""
        group = new or old
        assert group is not None
        self._by_claim.move(group_claim_keys(old), group_claim_keys(new), group.key, new)
        self._by_template.move(_template_keys(old), _template_keys(new), group.key, new)

    def members(self, group_key: str) -> Sequence[Pod]:
        """Pods that name the group, whether or not it exists, done pods included."""
        return self._members.of(group_key)

    def of_claim(self, claim_key: str) -> Sequence[PodGroup]:
        """Groups that name the claim."""
        return self._by_claim.of(claim_key)

    def of_template(self, template_key: str) -> Sequence[PodGroup]:
        """Groups that name the template."""
        return self._by_template.of(template_key)


def group_claim_keys(group: PodGroup | None) -> frozenset[str]:
    """Keys of the claims that a group names, or that are recorded for it."""
    if group is None:
        return frozenset()
    names = (claim_name(group, entry)[1] for entry in group.spec.resource_claims)
    return frozenset(f"{group.metadata.namespace}/{name}" for name in names if name)


def _template_keys(group: PodGroup | None) -> frozenset[str]:
    if group is None:
        return frozenset()
    names = (entry.resource_claim_template_name for entry in group.spec.resource_claims)
    return frozenset(f"{group.metadata.namespace}/{name}" for name in names if name)
