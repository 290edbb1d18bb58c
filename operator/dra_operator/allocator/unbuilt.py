"""Which inputs need features that this allocator does not have yet.

Called by `search` and placement's census. What needs such a feature is refused with a reason naming it, never half-allocated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dra_operator.features import GATES

if TYPE_CHECKING:
    from dra_operator.model import Device

NODE_ALLOCATABLE: Final = "DRANodeAllocatableResources"
"""The one gate without a switch of the allocator: upstream's scheduler, not its allocator, looks at it (alloc J-3), and so does placement.

Kubernetes 1.36 has another field for it on devices, which the model reads into that of 1.37. Where it could not, nothing would be counted, so
such devices are refused.
"""


def gate_of(switch: str) -> str:
    """Kubernetes' name of the gate behind a switch; the first where there are several."""
    return GATES[switch][0] if switch in GATES else switch


def device_needs(device: Device) -> str | None:
    """The gate of a feature that allocating this device would need and that is not built, or None."""
    if device.node_allocatable_resource_mappings and not device.node_allocatable_resources:
        return NODE_ALLOCATABLE
    return None
