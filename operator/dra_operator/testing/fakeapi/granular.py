"""Rights within a claim's status: whoever changes who holds what needs more than `resourceclaims/status` (cp V-77 to V-81).

Called by `machinery` on writes of a claim's status; the rights themselves are for `access`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi.access import Action, Asker
from dra_operator.testing.fakeapi.objects import Obj, dicts, dig, meta
from dra_operator.validation.checks import forbidden

if TYPE_CHECKING:
    from dra_operator.validation.causes import Cause

_GROUP = "resource.k8s.io"
_NODE_NAME = "authentication.kubernetes.io/node-name"


def missing_rights(new: Obj, old: Obj, verb: str, asker: Asker) -> list[Cause]:
    """What the writer would need for this change and has not got."""
    after, before = new.get("status") or {}, old.get("status") or {}
    decided = any(after.get(field) != before.get(field) for field in ("allocation", "reservedFor"))
    # Asked without namespace and name: a RoleBinding never suffices.
    why = asker.refusal(Action(verb, _GROUP, "resourceclaims/binding")) if decided else ""
    if why:
        what = "changing status.allocation or status.reservedFor"
        return [_forbidden("status.allocation", what, "binding", verb, why)]
    if not after.get("allocation"):
        return []
    namespace, node = str(meta(new).get("namespace")), _pinned_node(after["allocation"])
    return [
        cause
        for driver in sorted(_changed_drivers(after, before))
        for cause in _driver_rights(driver, namespace, _verbs(verb, node, asker), asker)
    ]


def _verbs(verb: str, node: str, asker: Asker) -> list[str]:
    """On its own node a driver may use the narrower right, too."""
    homes = asker.who.extra.get(_NODE_NAME) or ()
    is_account = asker.who.user.startswith("system:serviceaccount:")
    own = [f"associated-node:{verb}"] if is_account and node and list(homes) == [node] else []
    return [*own, f"arbitrary-node:{verb}"]


def _driver_rights(driver: str, namespace: str, verbs: list[str], asker: Asker) -> list[Cause]:
    actions = [Action(verb, _GROUP, "resourceclaims/driver", namespace, driver) for verb in verbs]
    why = asker.refusal(*actions)
    listed = f"[{' '.join(verbs)}]"
    return [_forbidden("status.devices", "changing status.devices", "driver", listed, why)] if why else []


def _forbidden(path: str, what: str, resource: str, verb: str, why: str) -> Cause:
    detail = f'{what} requires resource="resourceclaims/{resource}", verb="{verb}" permission: {why}'
    return forbidden(path, detail)


def _pinned_node(allocation: Obj) -> str:
    """The node of a selector in the canonical form (cp V-80); empty for any other."""
    match dig(allocation, "nodeSelector", "nodeSelectorTerms"):
        case [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}], **rest}] if (
            not rest
        ):
            return str(name)
    return ""


def _changed_drivers(after: Obj, before: Obj) -> set[str]:
    new, old = _by_device(after), _by_device(before)
    return {key[0] for key in new.keys() | old.keys() if new.get(key) != old.get(key)}


def _by_device(status: Obj) -> dict[tuple[str, str, str, str], Obj]:
    return {
        (
            str(dig(item, "driver")),
            str(dig(item, "pool")),
            str(dig(item, "device")),
            str(item.get("shareID", "")),
        ): item
        for item in dicts(status.get("devices"))
    }
