"""The world under construction, and the few values that all traits draw from. Used by `worlds` and by the modules with traits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

Object = dict[str, Any]

NAMESPACE = "default"
ZONE = "topology.kubernetes.io/zone"
ZONES = ("a", "b", "c")
APPS = ("web", "db", "batch")
CLASS = "gpu"
DRIVER = "gpu.example.com"

NODES = 8
BOUND = 20
PODS = 80


@dataclass
class World:
    """One cluster.

    Attributes:
        dice: the one source of chance.
        objects: everything but pods that wait, in an order in which they can be created. Pods among them are bound.
        pods: those to be placed; their names say nothing.
        owned: objects that pods own; they are created last, with the owner's uid, which is the API server's to give.
    """

    dice: Random
    objects: list[Object] = field(default_factory=list)
    pods: list[Object] = field(default_factory=list)
    owned: list[Object] = field(default_factory=list)

    def chance(self, share: float) -> bool:
        """True in that share of all cases."""
        return self.dice.random() < share

    def some(self, values: Sequence[str], least: int = 1) -> list[str]:
        """A few of the values, in their order."""
        chosen = self.dice.sample(values, self.dice.randint(least, len(values)))
        return [value for value in values if value in chosen]

    def named(self, kind: str) -> list[str]:
        """Names of the objects of a kind."""
        return [item["metadata"]["name"] for item in self.objects if item["kind"] == kind]


Trait = Callable[[World, Object], None]
"""Changes an object in place, and adds to the world what that needs."""

TERMINATING = "example.com/terminating"
"""The annotation of objects that are deleted after their creation, and stay: pods for want of a kubelet, others for a finalizer."""
