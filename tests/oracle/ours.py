"""Asks our engine what `upstream` asks upstream's, and answers in the same form: the fields of README.md.

It goes through the compiler that the product uses. What upstream has no word for: outcome `unsupported` (the engine says that it cannot tell) and
`crash` (an exception that nobody may see).
"""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any, Final

from dra_operator.cel import Compiler
from dra_operator.cel.answers import HINT
from dra_operator.cel.checking.checks import check
from dra_operator.cel.checking.environment import new_expressions, stored_expressions
from dra_operator.cel.costs.estimate import estimate
from dra_operator.cel.evaluation.counted import counted
from dra_operator.cel.types.values import device_input
from dra_operator.errors import CelCompileError, CelError, CelRuntimeError, CelUnsupported
from dra_operator.features import Features
from dra_operator.model import ResourceSlice, from_object, to_object

if TYPE_CHECKING:
    from collections.abc import Callable

    from dra_operator.cel.checking.checks import Checked
    from dra_operator.cel.checking.environment import Environment
    from dra_operator.cel.evaluation.counted import Counted
    from dra_operator.model import DeviceAttribute

Json = dict[str, Any]

OUTCOMES: Final[dict[type[CelError], str]] = {
    CelUnsupported: "unsupported",
    CelCompileError: "compile-error",
    CelRuntimeError: "runtime-error",
}

ENVIRONMENTS: Final = {
    "StoredExpressions": lambda _: stored_expressions(),
    "NewExpressions": new_expressions,
}


def slice_of(device: Json) -> ResourceSlice:
    """A slice with that device alone."""
    fields = {key: value for key, value in device.items() if key != "driver"}
    spec = {"driver": device.get("driver", ""), "devices": [{"name": "device", **fields}]}
    return from_object(ResourceSlice, {"metadata": {"name": "slice"}, "spec": spec})


class Ours:
    """Our engine. Slices are kept by the identity of the question's devices, as long as this object."""

    def __init__(self) -> None:
        self._compilers = {name: Compiler(known) for name, known in ENVIRONMENTS.items()}
        self._slices: dict[int, tuple[Json, ResourceSlice]] = {}

    def answer(self, question: Json) -> Json:
        """Our answer to a question."""
        try:
            evaluate, said = self._compiled(question)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
            return _failure(error)
        if device := question.get("device"):
            said |= evaluate(self._slice(device))
        if devices := question.get("devices"):
            said["results"] = [evaluate(self._slice(each)) for each in devices]
        return said

    def _compiled(self, question: Json) -> tuple[Callable[[ResourceSlice], Json], Json]:
        gates = question.get("features", {})
        features = Features(
            consumable_capacity=gates.get("ConsumableCapacity", False),
            list_type_attributes=gates.get("ListTypeAttributes", False),
        )
        name = question.get("env", "StoredExpressions")
        compiler = self._compilers[name]
        environment = ENVIRONMENTS[name](features)
        expression = question["expression"]
        if question.get("derived"):
            derivation = compiler.compile_derived(expression, features)
        else:
            selector = compiler.compile(expression, features)
        checked = check(expression, environment)
        counting = counted(checked, environment.functions)

        def evaluate(slice_: ResourceSlice) -> Json:
            device = slice_.spec.devices[0]
            if question.get("derived"):
                return {"attribute": _attribute(derivation.attribute(slice_, device))}
            return {"match": selector.matches(slice_, device)}

        return lambda slice_: _with_cost(_evaluated(evaluate, slice_), counting, slice_), _static(
            checked, environment
        )

    def _slice(self, device: Json) -> ResourceSlice:
        found = self._slices.get(id(device))
        if found is None:
            found = self._slices[id(device)] = (device, slice_of(device))
        return found[1]


def _static(checked: Checked, environment: Environment) -> Json:
    """What is known without a device: the type and the estimated cost."""
    return {"outcome": "ok", "outputType": str(checked.kind), "maxCost": estimate(checked).max}


def _with_cost(said: Json, counting: Counted, slice_: ResourceSlice) -> Json:
    """An answer, with what the evaluation costs; without, where upstream does not come to it, or our engine cannot tell.

    The counted evaluation has to come to the same answer as the one that the product has chosen.
    """
    device = device_input(slice_.spec.driver, slice_.spec.devices[0])
    if device.fault:
        return said
    try:
        result, cost = counting.measure(device)
    except CelUnsupported:
        return said
    failed = isinstance(result, CelRuntimeError)
    agrees = said["outcome"] != "ok" if failed else said.get("match") in {None, result is True}
    if not agrees:
        return {"outcome": "crash", "error": f"counted: {result!r}, otherwise: {said}"}
    return {**said, "actualCost": cost}


def _evaluated(evaluate: Callable[[ResourceSlice], Json], slice_: ResourceSlice) -> Json:
    try:
        return {"outcome": "ok", **evaluate(slice_)}
    except Exception as error:  # noqa: BLE001 - as above
        return _failure(error)


def _attribute(attribute: DeviceAttribute) -> Json:
    """As JSON; Go leaves empty lists out."""
    return {name: value for name, value in to_object(attribute).items() if value != []}


def _failure(error: Exception) -> Json:
    outcome = OUTCOMES.get(type(error)) if isinstance(error, CelError) else None
    if outcome is None:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return {"outcome": "crash", "error": f"{error!r} in {where.name}"}
    return {"outcome": outcome, "error": str(error).removesuffix(HINT)}
