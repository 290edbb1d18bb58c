"""Whether a node that does not serve a pod now ever could: with every device free and nothing running there.

Called by `Placer` once no node serves a pod. The checks of the search stop at the first that fails, the cheapest first; what is in use
may so hide what will never change, and the user would be told to wait for nothing. It must not decide where a pod goes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.errors import CelCompileError, CelError

from .faults import selector_fault
from .market import first_lasting
from .outcomes import Cause, NodeFinding

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dra_operator.model import Node

    from .market import Market, Teller
    from .nodes import NodeReason


class Diagnosis:
    """The findings of one decision, node by node.

    Args:
        markets: ours and theirs.
        lasting_reason: why a node cannot take the pod even when it is up and empty, devices aside.

    Attributes:
        failures: selectors that fail on a device, in the order of nodes.
    """

    def __init__(
        self, markets: Sequence[Market], lasting_reason: Callable[[Node], NodeReason | None]
    ) -> None:
        self._markets = markets
        self._lasting_reason = lasting_reason
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
        reason = self._lasting_reason(node)
        if reason is not None:
            return NodeFinding(node.name, reason.cause, reason.text, lasting=True, absent=reason.absent)
        if self._is_hopeful:
            return None
        found = first_lasting(filter(None, (market.hindrance(node) for market in self._markets)))
        self._is_hopeful = found is None
        return found
