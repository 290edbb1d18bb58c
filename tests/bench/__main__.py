"""`python -m tests.bench` (`make bench`): pods placed per second on the embedded server, and what that costs.

Prints a table, writes a JSON document. Exit status: 0 when every run ended rightly, however fast; 1 when not.
"""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING

from . import embedded
from .arguments import forget_settings, parser, size_of
from .load import LoadError
from .processes import NotReadyError, machine
from .report import Goal, Result, document, table, write
from .verification import WrongEndError
from .workload import Size, Way

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .figures import Figures

GOALS = {"podsPerSecond": Goal(100, at_least=True), "memoryAtRest": Goal(150, at_least=False)}
GENERATORS = {
    "stand-in": "claims made by the server's stand-in for kube-controller-manager",
    "operator": "claims made by the operator (--generate-claims=always)",
}
PLACED = {Way.GATE: "pinned and released from the gate", Way.SCHEDULER: "bound by the operator"}


def _result(plan: embedded.Plan, runs: Sequence[Figures], before: dict[str, object]) -> Result:
    size = plan.size
    title = (
        f"embedded server: {size.pods} pods on {size.nodes} nodes with {size.devices} devices each, "
        f"{GENERATORS[plan.generator]}; placed = {PLACED[plan.way]}"
    )
    parameters = {
        **dataclasses.asdict(size),
        "generator": plan.generator,
        "way": plan.way.value,
        "clients": plan.clients,
    }
    parameters |= {"repeat": len(runs), "operatorFlags": list(plan.flags), "standins": plan.standins}
    return Result("embedded", title, parameters, before, {"operator": runs}, GOALS)


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print, write."""
    made = parser("embedded", __doc__, Size(), repeat=3)
    made.add_argument("--generate-claims", choices=sorted(GENERATORS), default="stand-in", help="by whom")
    made.add_argument(
        "--rest",
        type=float,
        default=embedded.REST_SECONDS,
        help="seconds that the operator is watched at rest",
    )
    arguments = made.parse_args(argv)
    plan = embedded.Plan(
        size_of(arguments, made),
        arguments.generate_claims,
        arguments.clients,
        arguments.timeout,
        arguments.rest,
        tuple(arguments.operator_flag),
        Way(arguments.way),
    )
    forget_settings()
    before = machine()
    runs = []
    try:
        for number in range(arguments.repeat):
            runs.append(embedded.run(plan))
            print(
                f"run {number + 1} of {arguments.repeat}: {runs[-1]['podsPerSecond']:.1f} pods/s", flush=True
            )
    except (LoadError, NotReadyError, WrongEndError) as error:
        print(f"bench: {error}", *getattr(error, "__notes__", ()), sep="\n", file=sys.stderr)
        return 1
    result = _result(plan, runs, before)
    write(arguments.json, document(result))
    print(f"\n{table(result)}\n\nwritten to {arguments.json}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
