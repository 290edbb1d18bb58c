"""The settings file: a YAML mapping from the keys of `TABLE` to values. Reads and checks it; what wins is not its business."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import yaml

from dra_operator.errors import InvalidSettings

from .table import TABLE

BY_KEY = {setting.key: setting for setting in TABLE}

LARGEST = 1 << 20
"""Bytes; a ConfigMap holds no more. What is longer is another file."""


def read(path: str) -> dict[str, Any]:
    """The values of a settings file by field of `Settings`; only those that stand there.

    Raises:
        InvalidSettings: the file cannot be read, is no mapping, or holds something that is no setting. Names the file, the key and the
            remedy.
    """
    pairs = _pairs(path)
    for key in pairs:
        if key not in BY_KEY:
            raise InvalidSettings(f"{path}: {key}", _advice(str(key)))
    return {
        BY_KEY[key].name: BY_KEY[key].value(given, f"{path}: {key}", strict=True)
        for key, given in pairs.items()
    }


def _pairs(path: str) -> dict[Any, Any]:
    text = _text(path)
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            raise InvalidSettings(path, "holds no settings; write {} if none are wanted")
        if not isinstance(node, yaml.MappingNode):
            raise InvalidSettings(path, "must be a mapping, a line for each setting: settleSeconds: 15")
        _refuse_twins(path, node)
        pairs = loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{path}, line {mark.line + 1}" if mark else path
        raise InvalidSettings(where, f"is not YAML: {error.problem}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a date of no calendar
        raise InvalidSettings(path, f"is not YAML: {error}") from error
    assert isinstance(pairs, dict)  # it comes from a mapping node
    return pairs


def _text(path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise InvalidSettings(
            path, f"cannot be read: {error.strerror}; give the path of a settings file"
        ) from error
    if len(content) > LARGEST:
        raise InvalidSettings(path, "is larger than 1 MiB; give the path of a settings file")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise InvalidSettings(path, "is not UTF-8 text; give the path of a settings file") from error


def _refuse_twins(path: str, mapping: yaml.MappingNode) -> None:
    """YAML's loader would take the last of two lines with one key."""
    lines: dict[str, int] = {}
    for key, _ in mapping.value:
        if not isinstance(key, yaml.ScalarNode):
            continue  # no setting anyway
        line = key.start_mark.line + 1
        if key.value in lines:
            raise InvalidSettings(
                f"{path}: {key.value}", f"stands in lines {lines[key.value]} and {line}; remove one of them"
            )
        lines[key.value] = line


def _advice(key: str) -> str:
    """What to write instead of a key that is none."""
    folded = {name.casefold(): name for name in BY_KEY}
    word = key.casefold().lstrip("-").replace("-", "").replace("_", "")
    close = difflib.get_close_matches(word, folded, n=1)
    if close:
        return f"is no setting; did you mean {folded[close[0]]}?"
    return f"is no setting; there are {', '.join(sorted(BY_KEY))}"
