"""Scheduling gates that are in the way of the operator: another controller's, and those that look like its own and are not.

Used by `Intake` for pods that wait for us, and by whoever tells users of pods that are not. It must not decide whose a pod is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dra_operator.model import GATE

from .outcomes import Wait

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dra_operator.model import Pod

OTHER_GATES: Final = "OtherGates"
"""The reason of pods that somebody else holds as well, which is the ordinary course of things."""

UNKNOWN_GATE: Final = "UnknownGate"
"""The reason of pods at a gate that nobody takes off."""

_DOMAIN: Final = f"{GATE.partition('/')[0]}/"


def other_gates(pod: Pod) -> Wait:
    """The answer for a pod that waits for us and stands at other gates as well."""
    unknown = unknown_gates(pod)
    if unknown:
        return Wait(UNKNOWN_GATE, unknown_gate_text(unknown))
    others = ", ".join(name for name in pod.gate_names if name != GATE)
    when = "its own gate is the only one left" if GATE in pod.gate_names else "none is left"
    text = f"waits for gate {others} in spec.schedulingGates, which another controller takes off: dra-operator acts when {when}"
    return Wait(OTHER_GATES, text, quiet=not pod.spec.resource_claims)


def unknown_gates(pod: Pod) -> tuple[str, ...]:
    """Gates of our domain that are none of ours: misspelt, or of another release."""
    return tuple(name for name in pod.gate_names if name.startswith(_DOMAIN) and name != GATE)


def unknown_gate_text(gates: Sequence[str]) -> str:
    """What to tell of gates that are none of ours."""
    return (
        f"spec.schedulingGates: {', '.join(gates)}: dra-operator has no such gate and takes only its own off (did you mean {GATE}?), so "
        "the pod would wait for ever: recreate it without"
    )
