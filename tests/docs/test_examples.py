"""Pages that need no cluster, followed: their files are written, their commands run by a shell, their output compared."""

from __future__ import annotations

import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .commands import ROOT, Command, File, fences, file_name, matches, steps, tokens

PAGES = ("docs/kubectl-dra.md", "docs/library.md", "docs/simulate.md")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_without_a_cluster_shows_what_its_commands_print(page: str, tmp_path: Path) -> None:
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    found = steps(page)
    assert any(isinstance(step, Command) and step.output for step in found)
    for step in found:
        if isinstance(step, File):
            (tmp_path / step.path).write_text(step.text)
        else:
            printed = run(step.text, tmp_path)
            assert matches(step.output, printed), f"{page}:{step.line}: {step.text}\n{printed}"


def run(command: str, folder: Path, **more: str) -> str:
    """What a reader sees, both streams together; `more` of the environment."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "200", **more}
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout


# --- the table of what is public


def rows() -> list[tuple[str, list[str]]]:
    """Module → names, of the table in docs/library.md."""
    cells = [token.content for token in tokens("docs/library.md") if token.type == "inline"]
    found = [(cells[number], cells[number + 1]) for number in range(len(cells) - 1)]
    return [
        (module.strip("`"), [name.strip("` ") for name in names.split(",")])
        for module, names in found
        if module.startswith("`dra_operator.") and "`" in names
    ]


@pytest.mark.parametrize(("module", "names"), rows())
def test_a_name_that_is_called_public_is_there_with_a_docstring(module: str, names: list[str]) -> None:
    found = importlib.import_module(module)
    exported = getattr(found, "__all__", dir(found))
    assert [name for name in names if name not in exported] == []
    assert [
        name for name in names if callable(getattr(found, name)) and not getattr(found, name).__doc__
    ] == []


def test_the_example_imports_only_what_is_public() -> None:
    public = {module: set(names) for module, names in rows()}
    assert public
    imported = [
        (node.module, alias.name)
        for fence in fences("docs/library.md")
        if fence.info == "python" and file_name(fence.content)
        for node in ast.walk(ast.parse(fence.content))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("dra_operator")
        for alias in node.names
    ]
    assert imported
    assert [(module, name) for module, name in imported if name not in public.get(str(module), set())] == []


@pytest.mark.parametrize("module", [module for module, _ in rows()])
def test_what_is_public_brings_no_client_of_clusters(module: str) -> None:
    code = f"import sys, {module}; print(sorted({{'aiohttp', 'kopf', 'kubernetes_asyncio'}} & sys.modules.keys()))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "[]\n"
