"""docs/settings.md, out of the table of settings."""

from __future__ import annotations

import logging
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from dra_operator.app.logs import JsonFormatter, TextFormatter
from dra_operator.errors import InvalidSettings
from dra_operator.logfields import FIELDS, fields
from dra_operator.settings import TABLE, Group, Setting
from dra_operator.settings.file import read
from dra_operator.settings.table import plain

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


LOG = """
## What a line of the log holds

One happening is one line, to standard error, and while nothing happens there is none: a pod that waits is told of when its reason changes, what
fails and is tried again is told of once. Each record is one line in both formats; only the traceback of a bug in the text format has more. Tokens are
written as `(hidden)`, wherever they come from.

| level | is for |
| --- | --- |
| `error` | an accident that somebody has to look at, or the reason why the operator ends |
| `warning` | something is wrong around the operator: missing rights, an API server that does not answer, an object that cannot be read |
| `info` | what became of a pod, a claim, a policy; start and end |
| `debug` | each attempt to serve a pod: the answer, nodes, steps of the search, every write. Of use with `decision`, which all lines of one attempt have |

The same line as text and as JSON:
"""

LOG_FIELDS = """
A line has those of these fields that apply, in this order; in JSON they are keys beside `time` (RFC 3339, UTC), `level`, `message`, `logger` and, after a
bug, `exception`.
"""


def page() -> str:
    """The page."""
    parts = [INTRODUCTION]
    for group in Group:
        parts += [f"## {group.value}", _table(group)]
    parts += [EXAMPLE, block("yaml", example()), ERRORS, block("text", _errors())]
    parts += [LOG, block("text", log_lines()), LOG_FIELDS, table(("field", "meaning"), _log_fields())]
    return joined(generated("operator/dra_operator/settings/table.py"), *parts)


def example() -> str:
    """A settings file with everything at its default."""
    lines = []
    for group in Group:
        lines += ["", f"# {group.value}", *(_line(setting) for setting in TABLE if setting.group is group)]
    return "\n".join(lines[1:])


def log_lines() -> str:
    """One record in both formats."""
    facts = fields(pod="team-a/train", claims="team-a/train-gpu-x7k2m", node="gpu-node-1", devices=1)
    facts |= fields(controller="allocation", decision="5f0c2a1e-1", seconds=0.042)
    record = logging.makeLogRecord(
        {"name": "dra_operator.controllers.telling", "levelno": logging.INFO, "levelname": "INFO", **facts}
    )
    record.msg, record.created = "pod has its devices", datetime(2026, 7, 1, 12, tzinfo=UTC).timestamp()
    return f"{TextFormatter().format(record)}\n{JsonFormatter().format(record)}"


def _log_fields() -> list[tuple[str, str]]:
    return [(f"`{name}`", meaning) for name, meaning in FIELDS.items()]


def _line(setting: Setting) -> str:
    if setting.unset:
        value = setting.choices[-1] if setting.choices else "…"
        return f"# {setting.key}: {value}  # not set: {setting.unset}"
    value = f"{setting.key}: {plain(setting.default)}"
    ends = "" if setting.type is str and not setting.choices else f"  # {setting.range}"
    return value + ends


def _table(group: Group) -> str:
    return table(
        ("flag, variable, key of the file", "default", "allowed", "meaning"),
        (_row(setting) for setting in TABLE if setting.group is group),
    )


def _row(setting: Setting) -> tuple[str, ...]:
    names = "<br>".join(f"`{name}`" for name in (setting.flag, setting.variable, setting.key))
    default = setting.unset or f"`{plain(setting.default)}`"
    return names, default, setting.range, f"{setting.what} {setting.change}"


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
