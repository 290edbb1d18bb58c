"""CEL validation rules of custom kinds (`x-kubernetes-validations`).

Called by `strategies` on objects that their schema accepts. The engine is cel-python: these rules have nothing of DRA's selectors, and
their authors test them on a real server, which also refuses rules that cost too much; here none is.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dra_operator.testing.fakeapi.objects import Obj, dicts
from dra_operator.validation.causes import Cause
from dra_operator.validation.checks import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

_UNCHECKED = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"


BLOCKING = frozenset({
    "FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid",
})  # fmt: skip
"""Errors beside which rules are not evaluated."""


def not_checked() -> Cause:
    """What stands beside other errors of a kind that has rules."""
    return Cause("<nil>", "FieldValueInvalid", f"Invalid value: null: {_UNCHECKED}")


def has_rules(schema: Obj) -> bool:
    """Whether a schema has rules at any depth."""
    below = [
        *(schema.get("properties") or {}).values(),
        schema.get("items"),
        schema.get("additionalProperties"),
    ]
    return bool(schema.get("x-kubernetes-validations")) or any(
        has_rules(part) for part in below if isinstance(part, dict)
    )


def violations(schema: Obj, new: Any, old: Any = None, path: str = "") -> Iterator[Cause]:
    """Every rule that does not hold for `new`; rules about `oldSelf` are skipped where there is nothing old."""
    for rule in dicts(schema.get("x-kubernetes-validations")):
        yield from _violation(rule, schema, new, old, path)
    if isinstance(new, dict):
        before = old if isinstance(old, dict) else {}
        for name, value in new.items():
            yield from violations(
                _declared(schema, name), value, before.get(name), f"{path}.{name}" if path else name
            )
    elif isinstance(new, list):
        for index, item in enumerate(new):
            yield from violations(schema.get("items") or {}, item, None, f"{path}[{index}]")


def _declared(schema: Obj, name: str) -> Obj:
    extra = schema.get("additionalProperties")
    found = (schema.get("properties") or {}).get(name)
    return found or (extra if isinstance(extra, dict) else {})


def _violation(rule: Obj, schema: Obj, new: Any, old: Any, path: str) -> Iterator[Cause]:
    text = rule["rule"]
    if "oldSelf" in text and old is None:
        return
    if _holds(text, new, old):
        return
    shown = quoted(schema.get("type")) if isinstance(new, dict | list) else quoted(new)
    message = rule.get("message") or f"failed rule: {text}"
    yield Cause(
        path or "<nil>",
        rule.get("reason") or "FieldValueInvalid",
        f"Invalid value: {shown}: {message.strip()}",
    )


def _holds(text: str, new: Any, old: Any) -> bool:
    from celpy import adapter, evaluation  # half a second that only servers with rules need

    activation = {"self": adapter.json_to_cel(new)}
    if old is not None:
        activation["oldSelf"] = adapter.json_to_cel(old)
    try:
        return bool(_program(text).evaluate(activation))
    except evaluation.CELEvalError:
        return False


@lru_cache(maxsize=256)
def _program(text: str) -> Any:
    import celpy

    allowed = sys.getrecursionlimit()
    environment = celpy.Environment()
    sys.setrecursionlimit(max(allowed, sys.getrecursionlimit()))  # it takes back what others need
    return environment.program(environment.compile(text))
