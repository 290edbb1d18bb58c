"""Switchable stand-ins for the parts of a cluster that the embedded API server lacks.

`server` starts those that it is told to. Each keeps the rules of what it stands for as far as claims are concerned, and nothing
else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi.standins.base import StandIn
from dra_operator.testing.fakeapi.standins.binding import Binding
from dra_operator.testing.fakeapi.standins.claims import Claims
from dra_operator.testing.fakeapi.standins.gate import Gate
from dra_operator.testing.fakeapi.standins.kubelet import Kubelet

if TYPE_CHECKING:
    from collections.abc import Mapping

STANDINS: Mapping[str, type[StandIn]] = {
    "claims": Claims,
    "binding": Binding,
    "kubelet": Kubelet,
    "gate": Gate,
}

__all__ = ["STANDINS", "StandIn"]
