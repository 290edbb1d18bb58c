"""Walks over trees of any depth without Python's stack.

A step of a walk is a generator: it yields the steps that it needs the results of, one after the other, and returns its own. Used where a walk goes
down as far as an expression is nested; must not know what it walks over.
"""

from __future__ import annotations

from types import GeneratorType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Generator

T = TypeVar("T")


def walk(first: Generator[Any, Any, T]) -> T:
    """The result of a step and of all that it asks for; what is yielded and is no generator is its own result."""
    steps: list[Generator[Any, Any, Any]] = [first]
    result: Any = None
    while steps:
        try:
            wanted = steps[-1].send(result)
        except StopIteration as end:
            steps.pop()
            result = end.value
            continue
        if isinstance(wanted, GeneratorType):
            steps.append(wanted)
            result = None
        else:
            result = wanted
    return result  # type: ignore[no-any-return]  # that of the first step, which ended last
