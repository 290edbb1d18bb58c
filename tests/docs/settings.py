"""docs/settings.md, out of the table of settings."""

from __future__ import annotations

import tempfile
from pathlib import Path

from dra_operator.errors import InvalidSettings
from dra_operator.settings import TABLE, Group, Setting
from dra_operator.settings.file import read

from .markdown import block, generated, joined, table

INTRODUCTION = """
# Settings

Each setting can be given as a flag of `dra-operator run`, as an environment variable, or in a YAML file. A flag wins over the environment, the
environment over the file, the file over the default. The first line of the log names the settings that are not at their defaults, and where each
comes from.

The file is named by `--config FILE` or `DRA_OPERATOR_CONFIG`. In the cluster it comes from the ConfigMap that `kubectl apply -k manifests` makes out of
`manifests/base/config.yaml`, mounted as `/etc/dra-operator/config.yaml`; change that file and apply again, and the operator restarts with it. The operator
reads its settings when it starts, and never again.
"""

EXAMPLE = """
## A whole file

Every setting at its default. Lines that start with `#` show those that have no fixed one.
"""

ERRORS = """
## What is wrong is told at the start

A setting that is unknown, of the wrong type or out of its range ends the operator at once with exit status 2 and a sentence that names the flag, the
variable, or file and key:
"""

MISTAKES = ("settleSecond: 15", "maxWrites: lots", "settleSeconds: 86400")


def page() -> str:
    """The page."""
    parts = [INTRODUCTION]
    for group in Group:
        parts += [f"## {group.value}", _table(group)]
    parts += [EXAMPLE, block("yaml", example()), ERRORS, block("text", _errors())]
    return joined(generated("operator/dra_operator/settings/table.py"), *parts)


def example() -> str:
    """A settings file with everything at its default."""
    lines = []
    for group in Group:
        lines += ["", f"# {group.value}", *(_line(setting) for setting in TABLE if setting.group is group)]
    return "\n".join(lines[1:])


def _line(setting: Setting) -> str:
    if setting.unset:
        value = setting.choices[-1] if setting.choices else "…"
        return f"# {setting.key}: {value}  # not set: {setting.unset}"
    value = f"{setting.key}: {_shown(setting.default)}"
    ends = "" if setting.type is str and not setting.choices else f"  # {setting.range}"
    return value + ends


def _table(group: Group) -> str:
    return table(
        ("flag, variable, key of the file", "default", "allowed", "meaning"),
        (_row(setting) for setting in TABLE if setting.group is group),
    )


def _row(setting: Setting) -> tuple[str, ...]:
    names = "<br>".join(f"`{name}`" for name in (setting.flag, setting.variable, setting.key))
    default = setting.unset or f"`{_shown(setting.default)}`"
    return names, default, setting.range, f"{setting.what} {setting.change}"


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _errors() -> str:
    with tempfile.TemporaryDirectory() as folder:
        return "\n".join(_error(Path(folder) / "config.yaml", text) for text in MISTAKES)


def _error(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    try:
        read(str(path))
    except InvalidSettings as error:
        return f"Error: {error}".replace(str(path), f"/etc/dra-operator/{path.name}")
    raise AssertionError(f"{text!r} is no mistake")
