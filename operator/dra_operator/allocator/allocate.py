"""The allocator's entry: gather, validate, search, build results (alloc section 1).

Called by placement (one node after the other) and explain. All or nothing per call (I-4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.errors import InvalidPool, NodeFailure, NoSolution

from .judge import Judge
from .matcher import may_be_of
from .pools import view_of
from .reporter import SILENT
from .requests import Reader
from .result import build
from .search import Search
from .state import Options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dra_operator.model import AllocationResult, Node, ResourceClaim

    from .pools import View
    from .reporter import Reporter
    from .requests import ClaimRequests
    from .state import Inputs

_DEFAULTS = Options()


class Allocator:
    """Allocates the claims of one pod on one node at a time; may be asked for many nodes.

    Args:
        inputs: one consistent view of the cluster; not changed.
        options: how to allocate.
        reporter: who listens.

    Attributes:
        steps: search steps over the lifetime (alloc I-7).
        looks: looks at devices over the lifetime.
    """

    def __init__(self, inputs: Inputs, options: Options = _DEFAULTS, reporter: Reporter = SILENT) -> None:
        self._inputs = inputs
        self._options = options
        self._reporter = reporter
        self._view: View | None = None
        self.steps = 0
        self.looks = 0

    def allocate(self, node: Node, claims: Sequence[ResourceClaim]) -> tuple[AllocationResult, ...]:
        """Choose devices for all claims; the first solution in upstream's order (alloc S-5).

        Args:
            node: where the pod would run.
            claims: unallocated claims of one pod, in pod order; their status is not looked at (alloc I-3).

        Returns:
            One result per claim, in claim order, without timestamp.

        Raises:
            NoSolution: impossible on this node; ask the reporter why.
            NodeFailure: this node cannot be judged (alloc E-1, E-13).
            SearchLimitReached: gave up; another limit may find a solution.
            InvalidClaim: a claim, or a class that it names, can never be allocated as written.
            InvalidPool: with `upstream_0_37` only: pools that the product fails per node.
            CelError: a selector fails on a device that had to be tested (alloc L-4).
            WorkLimitReached: the decision may do no more work on selectors.
        """
        view = self._view_of(node)
        self._report_pools(view)
        reader = Reader(self._inputs, self._options, view)
        requests = [reader.read(claim) for claim in claims]
        return self._solve(view, requests)

    def _view_of(self, node: Node) -> View:
        """What the node sees; kept for the one that was asked about last, as it may be asked about again."""
        if self._view is None or self._view.node is not node:
            strict = self._options.upstream_0_37
            self._view = view_of(self._inputs.slices, node, self._inputs.features, strict=strict)
        return self._view

    def _solve(self, view: View, claims: Sequence[ClaimRequests]) -> tuple[AllocationResult, ...]:
        search = Search(view, claims, Judge(self._inputs, self._options, view), self._options, self._reporter)
        solved = False
        try:
            solved = search.solve()
        finally:
            self.steps += search.steps
            self.looks += search.looks
            self._reporter.ended(search.steps, solved=solved)
        if not solved:
            raise self._failure(view, claims)
        return self._results(view, claims, search)

    def _results(
        self, view: View, claims: Sequence[ClaimRequests], search: Search
    ) -> tuple[AllocationResult, ...]:
        features = self._inputs.features
        try:
            return tuple(
                build(entry.claim, chosen, taken, view.node, features)
                for entry, chosen, taken in zip(claims, search.chosen(), search.taken, strict=True)
            )
        except InvalidPool as error:
            if self._options.upstream_0_37:
                raise
            raise NodeFailure(str(error)) from error

    def _failure(self, view: View, claims: Sequence[ClaimRequests]) -> NoSolution | NodeFailure:
        """What to raise (alloc E-1, E-3); an invalid pool that no request can want does not spoil the node."""
        invalid = [
            pool
            for pool in view.pools
            if pool.problem is not None
            and pool.is_invalid
            and (
                self._options.upstream_0_37
                or any(
                    may_be_of(wanted.matcher, pool.id)
                    for entry in claims
                    for request in entry.requests
                    for wanted in request.alternatives
                )
            )
        ]
        if not invalid:
            return NoSolution()
        texts = "; ".join(f"pool {pool.id}: {pool.problem.detail}" for pool in invalid if pool.problem)
        return NodeFailure(f"invalid resource pools were encountered: {texts}")

    def _report_pools(self, view: View) -> None:
        if self._reporter is SILENT:
            return
        for pool in view.pools:
            if pool.problem is not None:
                self._reporter.pool(pool.id, pool.problem)
