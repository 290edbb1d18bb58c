"""Fails if `operator/` could shadow the standard library's `operator` module, or holds a function of more than 60 lines.

`make lint` runs it. An `operator/__init__.py`, or any module directly in `operator/`, would make the folder importable as
`operator` from the repository root, and Python itself would break.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Final

LONGEST: Final = 60
"""Lines of a function, decorators and docstring included; no lint rule counts lines."""


def strays(source: Path) -> list[Path]:
    """Python files that lie directly in `source`."""
    return sorted(
        path for path in source.iterdir() if path.is_file() and path.suffix in {".py", ".pyi", ".pth"}
    )


def long_functions(source: Path) -> list[str]:
    """`path:line: name has N lines` for each function in `source` that is too long."""
    return [
        f"{path}:{function.lineno}: {function.name} has {lines} lines, more than {LONGEST}"
        for path in sorted(source.rglob("*.py"))
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := _lines(function)) > LONGEST
    ]


def _lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
    return (function.end_lineno or first) - first + 1


def main() -> int:
    """Exit status: 0 when the folder is clean, 1 with a message otherwise."""
    source = Path(__file__).resolve().parent.parent / "operator"
    found, long = strays(source), long_functions(source)
    for path in found:
        print(
            f"{path}: operator/ is a source folder; move this module into operator/dra_operator/",
            file=sys.stderr,
        )
    for line in long:
        print(line, file=sys.stderr)
    return 1 if found or long else 0


if __name__ == "__main__":
    sys.exit(main())
