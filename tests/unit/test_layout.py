"""The check behind `make lint`: nothing in `operator/` shadows the standard library's module, no function is too long."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.layout import LONGEST, long_functions, strays

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", ["__init__.py", "helpers.py", "stubs.pyi"])
def test_a_module_directly_in_the_source_folder_is_found(tmp_path: Path, name: str) -> None:
    (tmp_path / "dra_operator").mkdir()
    (tmp_path / name).touch()

    assert strays(tmp_path) == [tmp_path / name]


def test_packages_in_it_are_fine(tmp_path: Path) -> None:
    package = tmp_path / "dra_operator"
    package.mkdir()
    (package / "__init__.py").touch()

    assert strays(tmp_path) == []


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_function_of_more_lines_than_allowed_is_found(tmp_path: Path, kind: str) -> None:
    """Methods and nested functions are functions, and decorators are lines."""
    module = tmp_path / "package" / "module.py"
    module.parent.mkdir()
    fits = f"    @property\n    {kind} fits(self):\n" + "        pass\n" * (LONGEST - 2)
    long = f"    @property\n    {kind} long(self):\n" + "        pass\n" * (LONGEST - 1)
    module.write_text(f"class Some:\n{fits}{long}", encoding="utf-8")

    assert long_functions(tmp_path) == [
        f"{module}:{3 + LONGEST}: long has {LONGEST + 1} lines, more than {LONGEST}"
    ]
