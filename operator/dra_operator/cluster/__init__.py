"""The in-memory model of the cluster, pure and synchronous: `Cluster` and the values that it answers with.

Fed by `kube` and `handlers`, read by `placement`, `explain`, `metrics` and the controllers. No I/O, no clock, no decisions.
"""

from .claims import freed_devices, used_devices
from .model import Cluster
from .ownership import rules_changed
from .resolution import PodClaim, Resolution, claim_keys, claim_name, is_for_pod, template_keys
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
    "claim_keys",
    "claim_name",
    "freed_devices",
    "is_for_pod",
    "pinned_node",
    "pod_ports",
    "pod_requests",
    "rules_changed",
    "template_keys",
    "used_devices",
]
