"""The in-memory model of the cluster, pure and synchronous: `Cluster` and the values that it answers with.

Fed by `kube` and `handlers`, read by `placement`, `explain`, `metrics` and the controllers. No I/O, no clock, no decisions.
"""

from .claims import Unreadable, freed_devices, used_devices
from .generation import check_template, claim_body, generate_name, owned_claim, status_entries
from .model import Cluster
from .neighbours import (
    Crowd,
    Heads,
    preferred_affinity,
    required_affinity,
    required_anti_affinity,
)
from .nodeallocatable import with_statuses
from .ownership import rules_changed
from .podgroups import group_claim_keys
from .requests import (
    HUGE_PAGES,
    container_limits,
    container_requests,
    is_pod_level,
    pod_requests,
    taken_by_devices,
    taken_by_devices_of,
)
from .reservation import (
    allocation_status,
    bind_to,
    group_consumer,
    is_group,
    is_pod,
    is_reserved,
    pod_consumer,
    reserved_for,
)
from .resolution import (
    PodClaim,
    Resolution,
    claim_keys,
    claim_name,
    group_key,
    is_for_group,
    is_for_pod,
    is_generated,
    name_problem,
    ownership_problem,
    pod_claim_names,
    shared_with_group,
    template_keys,
)
from .selectors import NOTHING, AffinityTerm, PodFilter, Requirement, Selector, selector_of, with_labels
from .shelves import Shelf
from .slices import RestrictedSlices, SliceIndex
from .storage import volume_claim_keys, volume_claim_name
from .store import Change
from .usage import HostPort, NodeUsage, one_node, pinned_node, pod_ports

__all__ = [
    "HUGE_PAGES",
    "NOTHING",
    "AffinityTerm",
    "Change",
    "Cluster",
    "Crowd",
    "Heads",
    "HostPort",
    "NodeUsage",
    "PodClaim",
    "PodFilter",
    "Requirement",
    "Resolution",
    "RestrictedSlices",
    "Selector",
    "Shelf",
    "SliceIndex",
    "Unreadable",
    "allocation_status",
    "bind_to",
    "check_template",
    "claim_body",
    "claim_keys",
    "claim_name",
    "container_limits",
    "container_requests",
    "freed_devices",
    "generate_name",
    "group_claim_keys",
    "group_consumer",
    "group_key",
    "is_for_group",
    "is_for_pod",
    "is_generated",
    "is_group",
    "is_pod",
    "is_pod_level",
    "is_reserved",
    "name_problem",
    "one_node",
    "owned_claim",
    "ownership_problem",
    "pinned_node",
    "pod_claim_names",
    "pod_consumer",
    "pod_ports",
    "pod_requests",
    "preferred_affinity",
    "required_affinity",
    "required_anti_affinity",
    "reserved_for",
    "rules_changed",
    "selector_of",
    "shared_with_group",
    "status_entries",
    "taken_by_devices",
    "taken_by_devices_of",
    "template_keys",
    "used_devices",
    "volume_claim_keys",
    "volume_claim_name",
    "with_labels",
    "with_statuses",
]
