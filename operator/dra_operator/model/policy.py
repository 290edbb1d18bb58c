"""Our own kind: AllocationPolicy (`dra-operator.io/v1alpha1`), which says which pools are ours (architecture, section 2)."""

from __future__ import annotations

from .devices import PoolId
from .meta import Condition, ObjectMeta, Value

GROUP = "dra-operator.io"
VERSION = "v1alpha1"

OWNED_TAINT = "dra-operator.io/owned"
"""Key of the taint that keeps other allocators off our pools; our own allocator ignores it."""


class PoolSelector(Value, frozen=True):
    """Pools of one driver: all of them, or the one named."""

    driver: str = ""
    pool: str | None = None

    def matches(self, pool_id: PoolId) -> bool:
        """Whether that pool is selected."""
        return self.driver == pool_id.driver and self.pool in {None, "", pool_id.pool}


class AllocationPolicySpec(Value, frozen=True):
    """Which pools, and in which order their devices are tried."""

    pools: tuple[PoolSelector, ...] = ()
    order: str = "FirstFit"


class OwnedPool(Value, frozen=True):
    """One pool that a policy rules, in its status; `nodes` counts those that its slices and devices name."""

    driver: str = ""
    name: str = ""
    nodes: int = 0
    slices: int = 0
    devices: int = 0
    allocated_devices: int = 0


class AllocationPolicyStatus(Value, frozen=True):
    """What the operator reports: counts of pools and devices, the first pools, how many are not listed, conditions."""

    observed_generation: int = 0
    pools: int = 0
    devices: int = 0
    allocated_devices: int = 0
    owned_pools: tuple[OwnedPool, ...] = ()
    unlisted_pools: int = 0
    conditions: tuple[Condition, ...] = ()


class AllocationPolicy(Value, frozen=True):
    """Pools that the operator allocates from."""

    metadata: ObjectMeta
    spec: AllocationPolicySpec = AllocationPolicySpec()
    status: AllocationPolicyStatus = AllocationPolicyStatus()
