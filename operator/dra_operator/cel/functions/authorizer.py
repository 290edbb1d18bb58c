"""Kubernetes' functions of authorizers: declared for all expressions, though devices are selected without an authorizer.

So they pass the type check where a type is not known, and never run.
"""

from __future__ import annotations

from typing import Final, NoReturn

from dra_operator.errors import CelRuntimeError

from .registry import Table

AUTHORIZER: Final = Table()
SELECTORS: Final = Table()

_PREFIX: Final = "kubernetes.authorization."
_DECLARED: Final = (
    ".path(Authorizer, string) -> PathCheck",
    ".group(Authorizer, string) -> GroupCheck",
    ".serviceAccount(Authorizer, string, string) -> Authorizer",
    ".resource(GroupCheck, string) -> ResourceCheck",
    ".subresource(ResourceCheck, string) -> ResourceCheck",
    ".namespace(ResourceCheck, string) -> ResourceCheck",
    ".name(ResourceCheck, string) -> ResourceCheck",
    ".check(PathCheck, string) -> Decision",
    ".check(ResourceCheck, string) -> Decision",
    ".errored(Decision) -> bool",
    ".error(Decision) -> string",
    ".allowed(Decision) -> bool",
    ".reason(Decision) -> string",
)
_SELECTORS: Final = (
    ".fieldSelector(ResourceCheck, string) -> ResourceCheck",
    ".labelSelector(ResourceCheck, string) -> ResourceCheck",
)
_TYPES: Final = ("Authorizer", "PathCheck", "GroupCheck", "ResourceCheck", "Decision")


def _never(*_: object) -> NoReturn:
    raise CelRuntimeError("no such overload")


def _full(signature: str) -> str:
    for name in _TYPES:
        signature = signature.replace(f"({name}", f"({_PREFIX}{name}").replace(
            f"-> {name}", f"-> {_PREFIX}{name}"
        )
    return signature


AUTHORIZER.define(*map(_full, _DECLARED))(_never)
SELECTORS.define(*map(_full, _SELECTORS))(_never)
