"""CEL selectors over devices: the interface that the allocator needs, and the engine behind it (cel.md).

`default_compiler()` is the way in. Parser, checker, evaluators, costs and Kubernetes' libraries are our own (docs/decisions/0005-cel-engine.md).
What goes beyond our own bounds raises `CelUnsupported`: no answer is better than a wrong one.
"""

from .answers import with_hint
from .compiler import Compiler
from .interface import Selector, SelectorCompiler

__all__ = ["Compiler", "Selector", "SelectorCompiler", "default_compiler", "with_hint"]


def default_compiler() -> Compiler:
    """A compiler that works as the scheduler's does, with caches of its own."""
    return Compiler()
