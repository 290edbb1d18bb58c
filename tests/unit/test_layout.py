"""The check behind `make lint` that keeps `operator/` from shadowing the standard library's `operator`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.layout import strays

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
