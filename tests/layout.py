"""Fails if `operator/` could shadow the standard library's `operator` module.

`make lint` runs it. An `operator/__init__.py`, or any module directly in `operator/`, would make the folder importable as
`operator` from the repository root, and Python itself would break.
"""

from __future__ import annotations

import sys
from pathlib import Path


def strays(source: Path) -> list[Path]:
    """Python files that lie directly in `source`."""
    return sorted(
        path for path in source.iterdir() if path.is_file() and path.suffix in {".py", ".pyi", ".pth"}
    )


def main() -> int:
    """Exit status: 0 when the folder is clean, 1 with a message otherwise."""
    found = strays(Path(__file__).resolve().parent.parent / "operator")
    for path in found:
        print(
            f"{path}: operator/ is a source folder; move this module into operator/dra_operator/",
            file=sys.stderr,
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
