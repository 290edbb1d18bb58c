"""The pages that are made out of code are what the code says now."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from dra_operator.logfields import FIELDS
from dra_operator.settings import TABLE, Settings, build
from dra_operator.settings.file import read

from . import settings
from .markdown import table
from .pages import FILES, ROOT

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", FILES)
def test_a_page_is_what_the_code_says(name: str) -> None:
    path = ROOT / name
    written = path.read_text(encoding="utf-8") if path.exists() else ""
    assert written == FILES[name](), f"{name} is stale: run make docs"


def test_the_example_file_is_read_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(settings.example())
    given = read(str(path))
    assert build(**given) == Settings()
    assert set(given) == {setting.name for setting in TABLE if not setting.unset}


def test_the_settings_page_has_every_name_of_every_setting() -> None:
    text = settings.page()
    for setting in TABLE:
        names = f"`{setting.flag}`<br>`{setting.variable}`<br>`{setting.key}`"
        assert text.count(names) == 1
        assert setting.what in text
        assert setting.change in text


def test_the_settings_page_has_every_field_of_a_log_line() -> None:
    text = settings.page()
    assert [name for name in FIELDS if f"| `{name}` |" not in text] == []
    as_text, as_json = settings.log_lines().splitlines()
    found = json.loads(as_json)
    assert as_text.startswith(f"{found['time']} INFO    {found['message']} controller={found['controller']} ")


def test_a_bar_does_not_end_a_cell() -> None:
    assert table(("a",), [("x|y",)]).splitlines()[-1] == "| x\\|y |"
