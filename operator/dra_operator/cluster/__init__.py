"""The in-memory model of the cluster, pure and synchronous: `Cluster` and the values that it answers with.

Fed by `kube` and `handlers`, read by `placement`, `explain`, `metrics` and the controllers. No I/O, no clock, no decisions.
"""

from .claims import Unreadable, freed_devices, used_devices
from .model import Cluster
from .ownership import rules_changed
from .podgroups import group_claim_keys
from .resolution import (
    PodClaim,
    Resolution,
    claim_keys,
    claim_name,
    group_key,
    is_for_pod,
    is_reserved,
    shared_with_group,
    template_keys,
)
from .slices import RestrictedSlices, SliceIndex
from .store import Change
from .usage import HostPort, NodeUsage, pinned_node, pod_ports, pod_requests

__all__ = [
    "Change",
    "Cluster",
    "HostPort",
    "NodeUsage",
    "PodClaim",
    "Resolution",
    "RestrictedSlices",
    "SliceIndex",
    "Unreadable",
    "claim_keys",
    "claim_name",
    "freed_devices",
    "group_claim_keys",
    "group_key",
    "is_for_pod",
    "is_reserved",
    "pinned_node",
    "pod_ports",
    "pod_requests",
    "rules_changed",
    "shared_with_group",
    "template_keys",
    "used_devices",
]
