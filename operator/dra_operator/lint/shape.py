"""Whether an object has the shape of its version: its fields, their types, and what becomes of features that are off.

Gives the object in its v1 form, without what does not fit, so that the rest of it can be looked at all the same. What it means is not its business.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from dra_operator.errors import InvalidQuantity
from dra_operator.quantity import Quantity
from dra_operator.validation.claims import default_claim_spec
from dra_operator.validation.fields import table
from dra_operator.validation.objects import Obj, dicts, dig
from dra_operator.words import akin

from .gates import gate_remedy, off
from .objects import GROUP

if TYPE_CHECKING:
    from .objects import Item
    from .places import Path

VERSIONS: Final = {
    "DeviceClass": ("v1", "v1beta2", "v1beta1"),
    "DeviceTaintRule": ("v1", "v1beta2", "v1alpha3"),
    "ResourceClaim": ("v1", "v1beta2", "v1beta1"),
    "ResourceClaimTemplate": ("v1", "v1beta2", "v1beta1"),
    "ResourceSlice": ("v1", "v1beta2", "v1beta1"),
}
"""Kind → versions of `resource.k8s.io` that have it (cp G-3)."""

FLAT: Final = (
    "deviceClassName", "selectors", "allocationMode", "count", "adminAccess", "tolerations", "capacity", "derivedAttributes",
)  # fmt: skip
"""Fields that stand directly in a request of v1beta1, and under `exactly` from v1beta2 on (cp G-4)."""

_POD: Final = "io.k8s.api.core.v1."
_LIMITS: Final = {"int32": 2**31, "int64": 2**63}
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "bytes": (str,),
    "time": (str,),
    "micro-time": (str,),
}
_SHORT: Final = 40
"""Characters of a text that is shown as it is. Arbitrary."""

_NAMES: Final = {
    "int32": "a whole number",
    "int64": "a whole number",
    "bool": "true or false",
    "float64": "a number",
}
_OF_1_36: Final = (
    "Kubernetes 1.36 has it, 1.37 has `nodeAllocatableResources`: write `cpu: {mapping: {deviceMultiplier: N}}` for "
    "`cpu: {allocationMultiplier: N}`, and `capacityMultiplier` beside a `capacityKey`"
)
_OLD_SOURCE: Final = (
    "since Kubernetes 1.31, `resourceClaimName` and `resourceClaimTemplateName` stand directly in the entry"
)


def shaped(item: Item) -> bool:
    """Fill in the item's v1 form and tell what does not fit; False if it is of no version that there is."""
    versions = VERSIONS[item.kind]
    if item.version not in versions:
        listed = ", ".join(f"{GROUP}/{version}" for version in versions)
        item.tell("UnknownVersion", ("apiVersion",), f"{item.kind} is served as {listed}")
        return False
    if item.version != "v1":
        message = f"{item.api_version} is not served by Kubernetes 1.37 unless it is switched on there"
        item.tell("VersionNotServed", ("apiVersion",), message)
    body = copy.deepcopy(item.raw)
    _to_v1(item, body)
    item.obj = _Walker(item).struct(table().kinds[f"{GROUP}/v1/{item.kind}"], body, ())
    _defaulted(item)
    return True


def _defaulted(item: Item) -> None:
    metadata = item.obj.setdefault("metadata", {})
    metadata.setdefault("name", "")
    if not metadata["name"]:
        del metadata["name"]
    spec = item.obj.setdefault("spec", {})
    if item.kind == "ResourceClaim":
        default_claim_spec(spec)
    elif item.kind == "ResourceClaimTemplate":
        default_claim_spec(spec.setdefault("spec", {}))


def claim_path(kind: str) -> Path:
    """Where the spec of claims is, in a claim or a template."""
    return ("spec", "spec") if kind == "ResourceClaimTemplate" else ("spec",)


# --- bodies of other versions


def _to_v1(item: Item, body: Obj) -> None:
    if item.kind in {"ResourceClaim", "ResourceClaimTemplate"}:
        path = claim_path(item.kind)
        requests = dig(body, *map(str, path), "devices", "requests")
        for index, request in enumerate(requests if isinstance(requests, list) else ()):
            if isinstance(request, dict):
                _request(item, request, (*path, "devices", "requests", index))
    elif item.kind == "ResourceSlice":
        devices = dig(body, "spec", "devices")
        for index, device in enumerate(devices if isinstance(devices, list) else ()):
            if isinstance(device, dict):
                _device(item, device, ("spec", "devices", index))


def _request(item: Item, request: Obj, path: Path) -> None:
    flat = [name for name in request if name in FLAT]
    if item.version == "v1beta1":
        if "exactly" in request:
            message = "`exactly` is of v1beta2 and later; in v1beta1 its fields stand directly in the request"
            remedy = "change apiVersion to resource.k8s.io/v1"
            item.tell("WrongVersionBody", (*path, "exactly"), message, remedy=remedy, at_key=True)
    elif flat:
        message = f"{_listed(flat)} directly in a request {'is' if len(flat) == 1 else 'are'} of v1beta1; in {item.version} they belong under `exactly`"
        item.tell(
            "WrongVersionBody", (*path, flat[0]), message, remedy="put them under `exactly:`", at_key=True
        )
    if flat:
        exactly = request.setdefault("exactly", {})
        if isinstance(exactly, dict):
            exactly.update({name: request.pop(name) for name in flat})


def _device(item: Item, device: Obj, path: Path) -> None:
    basic = device.get("basic")
    beta = item.version == "v1beta1"
    if basic is not None and not beta:
        message = (
            f"`basic` of a device is of v1beta1; in {item.version} its fields stand directly in the device"
        )
        item.tell(
            "WrongVersionBody",
            (*path, "basic"),
            message,
            remedy="move them up, and drop `basic:`",
            at_key=True,
        )
    elif basic is None and beta and set(device) - {"name"}:
        name = next(field for field in device if field != "name")
        message = "fields directly in a device are of v1beta2 and later; in v1beta1 they belong under `basic`"
        remedy = "change apiVersion to resource.k8s.io/v1"
        item.tell("WrongVersionBody", (*path, name), message, remedy=remedy, at_key=True)
    if isinstance(basic, dict):
        del device["basic"]
        for name, value in basic.items():
            device.setdefault(name, value)


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


# --- fields and types


class _Walker:
    """Follows the table of fields through an object."""

    def __init__(self, item: Item) -> None:
        self._item = item

    def struct(self, name: str, value: Obj, path: Path) -> Obj:
        """The fields of one struct that fit."""
        fields = table().structs[name]
        short = name.rpartition(".")[2]
        found: Obj = {}
        for key, item in value.items():
            here = (*path, key)
            if key not in fields:
                self._unknown(short, key, list(fields), here)
            elif item is None:
                continue
            elif why := off(f"{short}.{key}", self._item.gates):
                message = f"needs {why}: the API server drops it"
                todo = gate_remedy(f"{short}.{key}")
                self._item.tell("FeatureOff", here, message, remedy=todo, at_key=True)
            else:
                kept = self.value(fields[key], item, here)
                if kept is not None:
                    found[key] = kept
        return found

    def _unknown(self, struct: str, key: str, fields: list[str], path: Path) -> None:
        self._item.told.append(path)
        remedy = ""
        if struct == "PodResourceClaim" and key == "source":
            remedy = _OLD_SOURCE
        meant = akin(key, fields)
        if struct == "Device" and key == "nodeAllocatableResourceMappings":
            remedy = _OF_1_36
        elif meant:
            remedy = f"did you mean `{meant}`?"
        message = f"{struct} has no field `{key}`"
        self._item.tell(
            "UnknownField",
            path,
            message,
            remedy=remedy or f"there are: {', '.join(sorted(fields))}",
            at_key=True,
        )

    def value(self, code: str, value: Any, path: Path) -> Any:
        """The value as it fits a type; None if it does not."""
        if code[0] == "@":
            return self.struct(code[1:], value, path) if self._is(value, dict, "an object", path) else None
        if code.startswith("[]"):
            return self._list(code[2:], value, path) if self._is(value, list, "a list", path) else None
        if code.startswith("{}"):
            return self._map(code[2:], value, path) if self._is(value, dict, "an object", path) else None
        if code == "quantity":
            return self._quantity(value, path)
        return value if self._scalar(code, value, path) else None

    def _list(self, code: str, value: list[Any], path: Path) -> list[Any]:
        """Places in lists stay what they are: what does not fit becomes something that no rule looks at."""
        nothing: Any = {} if code[0] == "@" else ""
        kept = (self.value(code, item, (*path, number)) for number, item in enumerate(value))
        return [nothing if item is None else item for item in kept]

    def _map(self, code: str, value: Obj, path: Path) -> Obj:
        kept = {key: self.value(code, item, (*path, key)) for key, item in value.items() if item is not None}
        return {key: item for key, item in kept.items() if item is not None}

    def _quantity(self, value: Any, path: Path) -> str | None:
        text = value.strip() if isinstance(value, str) else repr(value)
        try:
            Quantity.parse(value if isinstance(value, bool) else text)
        except InvalidQuantity as error:
            self._item.told.append(path)
            self._item.tell("BadQuantity", path, error.args[0] if error.args else str(error))
            return None
        return text

    def _scalar(self, code: str, value: Any, path: Path) -> bool:
        if code in _LIMITS:
            if type(value) is int and not -_LIMITS[code] <= value < _LIMITS[code]:
                return self._wrong(f"a number of {code}", value, path)
            return type(value) is int or self._wrong(_NAMES[code], value, path)
        if code == "bool":
            return isinstance(value, bool) or self._wrong(_NAMES[code], value, path)
        if code == "float64":
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            return is_number or self._wrong(_NAMES[code], value, path)
        if code in _TYPES:
            return isinstance(value, str) or self._wrong("a string", value, path)
        return True

    def _is(self, value: Any, wanted: type, name: str, path: Path) -> bool:
        return isinstance(value, wanted) or self._wrong(name, value, path)

    def _wrong(self, wanted: str, value: Any, path: Path) -> bool:
        self._item.told.append(path)
        quote = ""
        if wanted == "a string" and isinstance(value, bool | int | float):
            quote = "quote it: YAML reads it as something else"
        message = f"must be {wanted}, and is {_described(value)}"
        self._item.tell("WrongType", path, message, remedy=quote or f"write {wanted}")
        return False


def _described(value: Any) -> str:
    match value:
        case None:
            return "empty (null)"
        case bool():
            return f"the boolean {str(value).lower()}"
        case int() | float():
            return f"the number {value}"
        case str():
            return f'the string "{value}"' if len(value) <= _SHORT else "a string"
        case list():
            return "a list"
    return "an object"


# --- pods


def pod_shape(item: Item, path: Path, spec: Obj) -> Obj:
    """What a pod's spec says of claims, as far as it fits."""
    walker = _Walker(item)
    found: Obj = {"resourceClaims": []}
    claims = spec.get("resourceClaims")
    if claims is not None:
        found["resourceClaims"] = (
            walker.value(f"[]@{_POD}PodResourceClaim", claims, (*path, "resourceClaims")) or []
        )
    for field in ("initContainers", "containers"):
        containers = spec.get(field)
        found[field] = [
            {
                "name": one.get("name"),
                "resources": {"claims": _container(walker, one, (*path, field, number))},
            }
            if isinstance(one, dict)
            else {}
            for number, one in enumerate(containers if isinstance(containers, list) else ())
        ]
    return found


def _container(walker: _Walker, container: Obj, path: Path) -> list[Obj]:
    claims = dig(container, "resources", "claims")
    if claims is None:
        return []
    kept = walker.value(f"[]@{_POD}ResourceClaim", claims, (*path, "resources", "claims"))
    return list(dicts(kept)) if isinstance(kept, list) else []
