"""What a container of a pod spec becomes on this machine: a command line, an environment, files; nothing is started here.

Used by `podrunner`. There is no image and no mount: the image stands for the program of this checkout, each mounted path becomes
a folder, and where the spec names the path, the folder is put in its place. What is not supported raises, it is never left out.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.e2e.harness.kubectl import Kubectl

Object = dict[str, Any]

PROGRAM = "dra-operator"
"""Entry point of our image; its only program."""

TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where a pod finds its token: kube-apiserver mounts it into every container unless the spec forbids it."""


class UnsupportedError(Exception):
    """The spec asks for something that this kubelet cannot do."""


@dataclass(frozen=True, slots=True)
class Container:
    """A container, ready to be started.

    Attributes:
        name: In the pod.
        argv: Command line.
        environment: Added to the one of the test session.
        has_token: Whether it may speak to kube-apiserver as the pod's ServiceAccount.
        mapped: Paths of the spec, and what stands for each on this machine; longest first.
    """

    name: str
    argv: list[str]
    environment: dict[str, str]
    has_token: bool
    mapped: dict[str, str]


def prepare(pod: Object, spec: Object, folder: Path, kubectl: Kubectl) -> Container:
    """Materialises the volumes of a container under `folder` and resolves its environment and arguments.

    Args:
        pod: As kube-apiserver has it.
        spec: Of the container.
        folder: Of the pod; made when missing.
        kubectl: Administrator in the pod's namespace, for ConfigMaps.

    Raises:
        UnsupportedError: A kind of volume, variable or image that is not known here.
    """
    if spec["image"].rpartition("/")[2].partition(":")[0] != PROGRAM:
        raise UnsupportedError(f"image {spec['image']}: only {PROGRAM} exists here")
    mapped = _mount(pod, spec, folder, kubectl)
    environment = _environment(pod, spec, kubectl)
    words = [*spec.get("command", [PROGRAM]), *spec.get("args", [])]
    program, *arguments = [_local(_expand(word, environment), mapped) for word in words]
    if program != PROGRAM:
        raise UnsupportedError(f"command {program}: only {PROGRAM} exists here")
    return Container(
        name=spec["name"],
        argv=[str(Path(sys.executable).parent / PROGRAM), *arguments],
        environment={name: _local(value, mapped) for name, value in environment.items()},
        has_token=any(mount["mountPath"] == TOKEN_PATH for mount in spec.get("volumeMounts", [])),
        mapped=mapped,
    )


# --------------------------------------------------------------------------- volumes


def _mount(pod: Object, spec: Object, folder: Path, kubectl: Kubectl) -> dict[str, str]:
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes", [])}
    mapped = {}
    for mount in spec.get("volumeMounts", []):
        path = mount["mountPath"]
        if path == TOKEN_PATH:
            continue
        source = folder / mount["name"]
        _fill(source, volumes[mount["name"]], kubectl)
        mapped[path] = str(source / mount["subPath"] if "subPath" in mount else source)
    return dict(sorted(mapped.items(), key=lambda item: -len(item[0])))


def _fill(folder: Path, volume: Object, kubectl: Kubectl) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if "emptyDir" in volume:
        return
    if "secret" in volume:
        _fill_with_secret(folder, volume["secret"], kubectl)
        return
    if "configMap" not in volume:
        raise UnsupportedError(f"volume {volume['name']}: only emptyDir, configMap and secret are known here")
    data = kubectl.get("configmap", volume["configMap"]["name"]).get("data", {})
    chosen = volume["configMap"].get("items") or [{"key": key, "path": key} for key in data]
    for item in chosen:
        (folder / item["path"]).write_text(data[item["key"]])


def _fill_with_secret(folder: Path, source: Object, kubectl: Kubectl) -> None:
    """As it is when the pod starts; a kubelet brings later changes, too."""
    secret = kubectl.find("secret", source["secretName"])
    if secret is None and not source.get("optional"):
        raise UnsupportedError(f"secret {source['secretName']} is not there, and nobody looks again here")
    for key, value in (secret or {}).get("data", {}).items():
        (folder / key).write_bytes(base64.b64decode(value))


def _local(text: str, mapped: Mapping[str, str]) -> str:
    """A word of the spec with mounted paths replaced."""
    for path, place in mapped.items():
        text = re.sub(re.escape(path) + r"(?=/|$)", place.replace("\\", r"\\"), text)
    return text


# --------------------------------------------------------------------------- environment


def _environment(pod: Object, spec: Object, kubectl: Kubectl) -> dict[str, str]:
    found: dict[str, str] = {}
    for source in spec.get("envFrom", []):
        if "configMapRef" not in source:
            raise UnsupportedError(f"envFrom {json.dumps(source)}")
        data = kubectl.get("configmap", source["configMapRef"]["name"]).get("data", {})
        found |= {source.get("prefix", "") + key: value for key, value in data.items()}
    for variable in spec.get("env", []):
        found[variable["name"]] = _value(pod, variable, kubectl, found)
    return found


def _value(pod: Object, variable: Object, kubectl: Kubectl, known: Mapping[str, str]) -> str:
    source = variable.get("valueFrom")
    if source is None:
        return _expand(variable.get("value", ""), known)
    if "fieldRef" in source:
        return _field(pod, source["fieldRef"]["fieldPath"])
    if "configMapKeyRef" in source:
        wanted = source["configMapKeyRef"]
        return str(kubectl.get("configmap", wanted["name"])["data"][wanted["key"]])
    raise UnsupportedError(f"variable {variable['name']}: {json.dumps(source)}")


def _field(pod: Object, path: str) -> str:
    """A field by the paths that the downward API knows, such as `metadata.name` or `metadata.labels['a']`."""
    if by_key := re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path):
        return str(pod["metadata"].get(by_key[1], {}).get(by_key[2], ""))
    found: Any = pod
    for step in path.split("."):
        found = found.get(step, {})
    return str(found or "")


def _expand(text: str, environment: Mapping[str, str]) -> str:
    """`$(NAME)` by the container's environment, as kubelets do it; unknown ones stay as they are."""
    return re.sub(r"\$\((\w+)\)", lambda match: environment.get(match[1], match[0]), text)
