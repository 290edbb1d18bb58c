"""Traits of worlds with volumes: classes, drivers, volumes and claims in every state, and pods that use them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .base import NAMESPACE, TERMINATING, ZONE, ZONES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .base import Object, World

STORAGE_API = "storage.k8s.io/v1"
DISKS = "disks.example.com"
CAPPED = "capped.example.com"
BOUND_ANNOTATION = {"pv.kubernetes.io/bind-completed": "yes"}
MODES: Final = (["ReadWriteOnce"], ["ReadWriteMany"], ["ReadWriteOnce", "ReadOnlyMany"], ["ReadWriteOncePod"])

CLASSES: Final = {
    "disks": (DISKS, "WaitForFirstConsumer"),
    "capped": (CAPPED, "WaitForFirstConsumer"),
    "local": ("kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
    "at-once": (DISKS, "Immediate"),
}
"""Provisioner and binding mode by name."""


def _object(kind: str, name: str, api: str = STORAGE_API, **fields: object) -> Object:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, **fields}


def classes(of: World) -> None:
    for name, (provisioner, mode) in CLASSES.items():
        made = _object("StorageClass", name, provisioner=provisioner, volumeBindingMode=mode)
        if name in {"disks", "capped"} and of.chance(0.5):
            expression = {"key": ZONE, "values": of.some(ZONES)}
            made["allowedTopologies"] = [{"matchLabelExpressions": [expression]}]
        of.objects.append(made)


def drivers(of: World) -> None:
    must_run = {"preventPodSchedulingIfMissing": of.chance(0.4)}
    of.objects.append(_object("CSIDriver", DISKS, spec=must_run))
    of.objects.append(_object("CSIDriver", CAPPED, spec={"storageCapacity": of.chance(0.8)}))
    for name in of.named("Node"):
        found = []
        for driver in of.some((DISKS, CAPPED), 0):
            entry: Object = {"name": driver, "nodeID": name}
            if of.chance(0.7):
                entry["allocatable"] = {"count": of.dice.choice((1, 2, 3))}
            found.append(entry)
        if of.chance(0.9):
            of.objects.append(_object("CSINode", name, spec={"drivers": found}))


def capacities(of: World) -> None:
    for index in range(3):
        made = _object("CSIStorageCapacity", f"capacity-{index}", storageClassName="capped")
        made["metadata"]["namespace"] = NAMESPACE
        if of.chance(0.9):
            made["capacity"] = of.dice.choice(("1Gi", "5Gi", "0"))
        if of.chance(0.3):
            made["maximumVolumeSize"] = of.dice.choice(("2Gi", "8Gi"))
        if of.chance(0.9):
            made["nodeTopology"] = {"matchLabels": {ZONE: of.dice.choice(ZONES)}}
        of.objects.append(made)


def volumes(of: World) -> None:
    for index in range(14):
        name = f"volume-{index}"
        spec: Object = {
            "capacity": {"storage": of.dice.choice(("1Gi", "2Gi", "10Gi"))},
            "accessModes": of.dice.choice(MODES[:3]),
            "storageClassName": of.dice.choice(tuple(CLASSES)),
        }
        if of.chance(0.8):
            spec["csi"] = {"driver": of.dice.choice((DISKS, CAPPED)), "volumeHandle": name}
        else:
            spec["hostPath"] = {"path": "/data"}
        if of.chance(0.2):
            spec["volumeMode"] = "Block"
        if of.chance(0.6):
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [_term(of)]}}
        made = _object("PersistentVolume", name, "v1", spec=spec)
        made["metadata"]["labels"] = {"tier": of.dice.choice(("gold", "tin"))}
        if of.chance(0.2):
            made["metadata"]["labels"][ZONE] = "__".join(of.some(ZONES))
        made["status"] = {"phase": of.dice.choice(("Available", "Available", "Available", "Released"))}
        of.objects.append(made)


def _term(of: World) -> Object:
    if of.chance(0.5):
        return {"matchExpressions": [{"key": ZONE, "operator": "In", "values": of.some(ZONES)}]}
    names = of.some(of.named("Node"))[:3]
    return {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": names}]}


def volume_claims(of: World) -> None:
    for index in range(20):
        of.objects.append(_claim(of, f"data-{index}"))


def _claim(of: World, name: str) -> Object:
    spec: Object = {
        "accessModes": of.dice.choice(MODES),
        "resources": {"requests": {"storage": of.dice.choice(("500Mi", "1Gi", "4Gi"))}},
        "storageClassName": of.dice.choice(("disks", "capped", "local")),
    }
    made = _object("PersistentVolumeClaim", name, "v1", spec=spec)
    made["metadata"] |= {"namespace": NAMESPACE, "annotations": {}, "labels": {}}
    if of.chance(0.08):
        spec["storageClassName"] = of.dice.choice(("at-once", "unknown", ""))
    if of.chance(0.45):
        _bind(of, made)
    elif of.chance(0.2):
        made["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] = of.dice.choice(
            of.named("Node")
        )
    elif of.chance(0.2):
        spec["selector"] = {"matchLabels": {"tier": of.dice.choice(("gold", "tin"))}}
    if of.chance(0.15) and "volumeName" not in spec:
        spec["volumeMode"] = "Block"
    if of.chance(0.03):
        made["metadata"]["annotations"][TERMINATING] = ""
        made["metadata"]["finalizers"] = ["example.com/stays"]
    return made


def _bind(of: World, made: Object) -> None:
    """To a volume, mostly one that exists and knows of it, and mostly all the way."""
    volume = of.dice.choice([item for item in of.objects if item["kind"] == "PersistentVolume"])
    made["spec"]["volumeName"] = volume["metadata"]["name"] if of.chance(0.95) else "gone"
    if of.chance(0.93):
        made["metadata"]["annotations"] |= BOUND_ANNOTATION
        made["status"] = {"phase": "Bound" if of.chance(0.97) else "Lost"}
    if of.chance(0.8):
        reference = {
            "kind": "PersistentVolumeClaim",
            "namespace": NAMESPACE,
            "name": made["metadata"]["name"],
        }
        volume["spec"]["claimRef"] = reference
        volume["status"] = {"phase": "Bound"}


def attachments(of: World) -> None:
    for index, name in enumerate(of.some(of.named("PersistentVolume"))[:4]):
        spec = {
            "attacher": of.dice.choice((DISKS, CAPPED)),
            "nodeName": of.dice.choice(of.named("Node")),
            "source": {"persistentVolumeName": name},
        }
        of.objects.append(_object("VolumeAttachment", f"attachment-{index}", spec=spec))


# --------------------------------------------------------------------------- pods


def pod_volumes(of: World, item: Object) -> None:
    if of.chance(0.5):
        spec = item["spec"]
        if of.chance(0.8):
            # Nothing else shall keep it off the nodes that its volumes allow.
            for field in ("nodeSelector", "affinity", "resourceClaims", "initContainers", "resources"):
                spec.pop(field, None)
            spec["tolerations"] = [{"operator": "Exists"}]
            spec["containers"] = [{"name": "main", "image": "registry.test/workload:1"}]
        spec["volumes"] = [_volume(of, f"v{index}") for index in range(of.dice.randint(1, 2))]
        if of.chance(0.3):
            _ephemeral(of, item)


def bound_volumes(of: World, item: Object) -> None:
    """As of pods that wait; those on nodes have no volume that was never made."""
    if of.chance(0.5):
        item["spec"]["volumes"] = [_volume(of, f"v{index}") for index in range(of.dice.randint(1, 2))]


def _volume(of: World, name: str) -> Object:
    if of.chance(0.75):
        known = of.named("PersistentVolumeClaim")
        claim = of.dice.choice(known) if of.chance(0.97) else "nowhere"
        return {"name": name, "persistentVolumeClaim": {"claimName": claim}}
    is_read_only = of.chance(0.5)
    disks: Sequence[Object] = (
        {"gcePersistentDisk": {"pdName": of.dice.choice(("d1", "d2")), "readOnly": is_read_only}},
        {"awsElasticBlockStore": {"volumeID": of.dice.choice(("d1", "d2"))}},
        {"iscsi": _iscsi(of) | {"readOnly": is_read_only}},
        {"rbd": _rbd(of) | {"readOnly": is_read_only}},
    )
    return {"name": name, **of.dice.choice(disks)}


def _iscsi(of: World) -> Object:
    return {"targetPortal": "127.0.0.1", "lun": 0, "iqn": f"iqn.2001-04.com.example:{of.dice.choice('ab')}"}


def _rbd(of: World) -> Object:
    return {"monitors": of.some(("m1", "m2", "m3")), "image": of.dice.choice(("i1", "i2"))}


def _ephemeral(of: World, item: Object) -> None:
    """A volume that is made for the pod; its claim is there or not, and the pod's or not."""
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    template = {"spec": wanted | {"storageClassName": "disks"}}
    item["spec"]["volumes"].append({"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}})
    if of.chance(0.2):
        return
    pod_name = item["metadata"]["name"]
    made = _claim(of, f"{pod_name}-scratch")
    made["metadata"]["annotations"].pop(TERMINATING, None)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod_name, "controller": of.chance(0.9)}
    made["metadata"]["ownerReferences"] = [owner]
    of.owned.append(made)


STORAGE: Final[Sequence[Callable[[World], None]]] = (
    classes,
    drivers,
    capacities,
    volumes,
    volume_claims,
    attachments,
)
"""In an order in which each finds what it needs."""
