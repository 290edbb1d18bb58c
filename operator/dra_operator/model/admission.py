"""Pods that are about to be created, as the API server sends them to admission webhooks (admission.k8s.io/v1).

Only what the gate depends on is read: whatever else a pod holds, however large or odd, is neither kept nor in the way. Such a pod may have no
name yet, so this is not `pods.Pod`. Decoded by `from_json`; decided by `placement.admission`.
"""

from __future__ import annotations

from typing import Any

from .meta import Value
from .pods import EphemeralVolumeSource, PersistentVolumeClaimSource, PodSchedulingGate, PodSchedulingGroup


class NewVolume(Value, frozen=True):
    """A volume; only whether a claim stands behind it."""

    persistent_volume_claim: PersistentVolumeClaimSource | None = None
    ephemeral: EphemeralVolumeSource | None = None


class NewPodSpec(Value, frozen=True):
    """The fields that the policy in manifests/gate-policy, and its variant in components/bind-pods, look at."""

    node_name: str = ""
    scheduler_name: str = ""
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    resource_claims: tuple[Any, ...] = ()  # only their number counts
    volumes: tuple[NewVolume, ...] = ()
    scheduling_group: PodSchedulingGroup | None = None


class NewPod(Value, frozen=True):
    """A pod that is about to be created."""

    spec: NewPodSpec = NewPodSpec()


class AdmittedResource(Value, frozen=True):
    """What kind of object a request is about."""

    group: str = ""
    version: str = ""
    resource: str = ""


class AdmissionRequest(Value, frozen=True):
    """A question of the API server."""

    uid: str
    operation: str = ""
    resource: AdmittedResource = AdmittedResource()
    object: NewPod | None = None
    dry_run: bool = False


class AdmissionReview(Value, frozen=True):
    """The envelope of a question."""

    request: AdmissionRequest
    api_version: str = "admission.k8s.io/v1"
    kind: str = "AdmissionReview"
