"""The allocator without its reporter: its modules once more, with every call of the reporter, and every question whether somebody listens, taken out.

For comparisons only (`reporting`). The code is that of the product, changed in memory as it is loaded; there is no second copy to keep.
"""

from __future__ import annotations

import ast
import importlib
import sys
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import dra_operator.allocator

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

FOLDER: Final = Path(dra_operator.allocator.__file__).parent
REPORTER: Final = "_reporter"
LISTENING: Final = frozenset({"_listening", "_in_words"})
"""Attributes that say whether anybody listens, or reads."""

REASON: Final = "Rejection"
SEARCHING: Final = frozenset({"constraints", "judge", "search", "taking"})
"""Modules that make reasons again and again in a search."""


class _Strip(ast.NodeTransformer):
    """Takes the calls out; what hangs on somebody listening is left to Python's compiler, which leaves out what is never true."""

    def __init__(self, *, reasons: bool) -> None:
        self.taken_out = 0
        self.kinds: set[str] = set()
        self._reasons = reasons
        self._depth = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self._depth += 1
        found = self.generic_visit(node)
        self._depth -= 1
        return found

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        called = node.value.func if isinstance(node.value, ast.Call) else None
        if (
            isinstance(called, ast.Attribute)
            and isinstance(called.value, ast.Attribute)
            and called.value.attr == REPORTER
        ):
            self.taken_out += 1
            return ast.copy_location(ast.Pass(), node)
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if node.attr in LISTENING and isinstance(node.ctx, ast.Load):
            self.taken_out += 1
            return ast.copy_location(ast.Constant(value=False), node)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A reason becomes a constant of its kind, as the search asks for nothing else of it."""
        self.generic_visit(node)
        named = isinstance(node.func, ast.Name) and node.func.id == REASON
        kind = node.args[0] if named and node.args else None
        if not (self._reasons and self._depth and isinstance(kind, ast.Attribute)):
            return node
        self.kinds.add(kind.attr)
        self.taken_out += 1
        return ast.copy_location(ast.Name(id=f"_{kind.attr}_", ctx=ast.Load()), node)


class _Loader(SourceFileLoader):
    def __init__(self, fullname: str, path: str, *, reasons: bool) -> None:
        super().__init__(fullname, path)
        self._reasons = reasons
        self.taken_out = 0

    def get_code(self, fullname: str) -> Any:
        """Never out of the cache, where the code is that of the product."""
        path = self.get_filename(fullname)
        tree = ast.parse(self.get_data(path))
        strip = _Strip(reasons=self._reasons and Path(path).stem in SEARCHING)
        tree = strip.visit(tree)
        tree.body += ast.parse(
            "\n".join(f"_{kind}_ = {REASON}(Why.{kind})" for kind in sorted(strip.kinds))
        ).body
        self.taken_out = strip.taken_out
        return compile(ast.fix_missing_locations(tree), path, "exec")


class _Finder(MetaPathFinder):
    """Finds the modules of the allocator under another name."""

    def __init__(self, name: str, *, reasons: bool) -> None:
        self._name = name
        self._reasons = reasons
        self.loaders: dict[str, _Loader] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        name, _, module = fullname.partition(".")
        if name != self._name:
            return None
        file = FOLDER / f"{module or '__init__'}.py"
        self.loaders[module] = _Loader(fullname, str(file), reasons=self._reasons)
        inside = [str(FOLDER)] if not module else None
        return spec_from_file_location(
            fullname, file, loader=self.loaders[module], submodule_search_locations=inside
        )


@cache
def load(*, reasons: bool) -> tuple[ModuleType, int]:
    """The package `dra_operator.allocator` without its reporter, and how many places were taken out.

    Args:
        reasons: whether the reasons, which are built with or without a listener where the search itself needs to know that there is one, become
            constants, too.
    """
    name = f"allocator_without_{'reasons' if reasons else 'calls'}"
    finder = _Finder(name, reasons=reasons)
    sys.meta_path.insert(0, finder)
    try:
        return importlib.import_module(name), sum(loader.taken_out for loader in finder.loaders.values())
    finally:
        sys.meta_path.remove(finder)
