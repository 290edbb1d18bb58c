"""Which pod is served first: one order for the operator's queue and for `simulation`. Pure; it must not know which pods wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dra_operator.model import Pod

_YOUNGEST: Final = "~"
"""Sorts after all times: what the API server has not created yet is younger than what it has."""


def rank(pod: Pod) -> tuple[int, int, str]:
    """The smallest is served first: bound pods, which the kubelet waits for; then by priority, then by age, as in kube-scheduler's queue."""
    if pod.spec.node_name:
        return 0, 0, ""
    return 1, -pod.spec.priority, pod.metadata.creation_timestamp or _YOUNGEST
