"""Whether a node that does not serve a pod now ever could: with every device free and nothing running there.

Called by `Placer` once no node serves a pod. The checks of the search stop at the first that fails, the cheapest first; what is in use
may so hide what will never change, and the user would be told to wait for nothing. It must not decide where a pod goes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.errors import CelCompileError, CelError

from .faults import selector_fault
from .market import first_lasting
from .nodes import lasting_reason
from .outcomes import Cause, NodeFinding

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from dra_operator.model import Node, Pod

    from .market import Market, Teller
    from .resources import Demand


class Diagnosis:
    """The findings of one decision, node by node.

    Args:
        pod: the pod.
        demand: what it asks of any node; None if it is bound, and what its node has room for was decided by others.
        markets: ours and theirs.
        dra_resources: extended resources that kube-scheduler serves by a device class.

    Attributes:
        failures: selectors that fail on a device, in the order of nodes.
    """

    def __init__(
        self, pod: Pod, demand: Demand | None, markets: Sequence[Market], dra_resources: Collection[str]
    ) -> None:
        self._pod = pod
        self._demand = demand
        self._markets = markets
        self._dra_resources = dra_resources
        self._is_hopeful = False
        self.failures: list[CelError] = []

    def finding(self, node: Node, tell: Teller) -> NodeFinding:
        """Why the node does not serve the pod: what lasts comes before what passes.

        Args:
            node: the node.
            tell: makes the finding of the search, or raises the CelError that it met.

        Raises:
            CelCompileError, InvalidClaim, FeatureUnsupported: the pod will not be served anywhere.
        """
        try:
            found = tell()
            return found if found.lasting or found.cause is Cause.LIMIT else self._lasting(node) or found
        except CelCompileError:
            raise
        except CelError as error:
            self.failures.append(error)
            text = f"node(s) where a selector fails ({selector_fault(error)})"
            return NodeFinding(node.name, Cause.FAULT, text, lasting=True)

    def _lasting(self, node: Node) -> NodeFinding | None:
        """What freed devices and resources will not change there; searched for until one node is found where nothing is."""
        reason = (
            lasting_reason(self._pod, self._demand, node, self._dra_resources)
            if self._demand is not None
            else None
        )
        if reason is not None:
            return NodeFinding(node.name, reason.cause, reason.text, lasting=True, absent=reason.absent)
        if self._is_hopeful:
            return None
        found = first_lasting(filter(None, (market.hindrance(node) for market in self._markets)))
        self._is_hopeful = found is None
        return found
