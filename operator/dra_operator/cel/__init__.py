"""CEL selectors over devices: the interface that the allocator needs, and the engine behind it (cel.md).

`default_compiler()` is the way in. Parser, checker, evaluator and Kubernetes' libraries are our own, because no Python engine has them. What the engine does not have raises `CelUnsupported`: no answer is better than a wrong one.
"""

from .answers import with_hint
from .cache import CelPythonCompiler
from .interface import Selector, SelectorCompiler

__all__ = ["CelPythonCompiler", "Selector", "SelectorCompiler", "default_compiler", "with_hint"]


def default_compiler() -> CelPythonCompiler:
    """A compiler that works as the scheduler's does, with caches of its own."""
    return CelPythonCompiler()
