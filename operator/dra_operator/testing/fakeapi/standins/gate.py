"""Stand-in for the admission policy that puts the operator's gate on pods with claims.

Called by `server`. The shipped MutatingAdmissionPolicy is stored like any object and not evaluated; this does what it says, in
namespaces with the label `dra-operator.io/enabled: "true"`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi.objects import Key, Obj, Resource, dicts, dig, meta
from dra_operator.testing.fakeapi.standins.base import Later, StandIn
from dra_operator.testing.fakeapi.standins.resources import NAMESPACES

if TYPE_CHECKING:
    from dra_operator.testing.fakeapi.kinds import Kind
    from dra_operator.testing.fakeapi.store import Change

GATE = "dra-operator.io/allocate"
LABEL = "dra-operator.io/enabled"


class Gate(StandIn):
    """Adds the gate on creation of pods that have claims and no node."""

    name = "gate"

    def start(self, later: Later) -> None:
        """Admit pods from now on."""
        super().start(later)
        self.machinery.admission.append(self._admit)

    def stop(self) -> None:
        """Admit nothing any longer."""
        super().stop()
        self.machinery.admission.remove(self._admit)

    def changed(self, _resource: Resource, _change: Change) -> None:
        """Nothing to do: it acts on admission alone."""

    def look(self, _resource: Resource, _key: Key) -> None:
        """Nothing to do: it acts on admission alone."""

    def _admit(self, kind: Kind, obj: Obj) -> None:
        if kind.kind != "Pod" or not dig(obj, "spec", "resourceClaims") or dig(obj, "spec", "nodeName"):
            return
        namespace = self.store.get(NAMESPACES, ("", meta(obj).get("namespace", "")))
        labels = meta(namespace.obj).get("labels") or {} if namespace else {}
        gates = list(dicts(obj["spec"].get("schedulingGates")))
        if labels.get(LABEL) == "true" and all(gate.get("name") != GATE for gate in gates):
            obj["spec"]["schedulingGates"] = [*gates, {"name": GATE}]
