"""What is wrong with a kubeconfig, with the path in it and what to do: kubernetes-asyncio takes the file to be well-formed, and fails otherwise
in words about Python.

Called by `credentials` before that library reads the file. Looks at what the library reads, as strictly as kubectl does, and leaves the rest
alone; knows nothing of what it means. Shows no value of a field that may be secret.
"""

from __future__ import annotations

import base64
import binascii
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from dra_operator.errors import InvalidSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

WORDS: Final = {dict: "a map", list: "a list", str: "text", bool: "true or false", type(None): "empty"}
"""What YAML's types are called; all others are numbers and dates."""

PARTS: Final = {"clusters": "cluster", "contexts": "context", "users": "user"}
"""The lists, and the key of an entry under which its facts are."""

TEXTS: Final = {
    "clusters": ("server", "certificate-authority", "tls-server-name", "proxy-url"),
    "contexts": ("cluster", "user", "namespace"),
    "users": ("client-certificate", "client-key", "tokenFile", "username"),
}
ENCODED: Final = {
    "clusters": ("certificate-authority-data",),
    "users": ("client-certificate-data", "client-key-data"),
}

PEM: Final = b"-----BEGIN "


class _Wrong(Exception):
    """At a path, something is not as it has to be; the text is both."""


def examine(files: str, context: str | None = None) -> None:
    """Look through the files of a kubeconfig, several as in `$KUBECONFIG`; those that are not there are left out.

    Args:
        files: paths, separated as those of `PATH`.
        context: the context that will be used; None for the current one.

    Raises:
        InvalidSettings: names the file, the path in it and the remedy.
    """
    for name in files.split(os.pathsep):
        file = Path(name).expanduser()
        if not name or not file.exists():
            continue
        try:
            _examine(_parse(file), context)
        except _Wrong as error:
            remedy = (
                f"mend the file, or name another; kubectl config view --kubeconfig={file} has to accept it"
            )
            raise InvalidSettings("kubeconfig", f"cannot use {file}: {error}; {remedy}") from error


def _parse(file: Path) -> Any:
    try:
        return yaml.safe_load(file.read_bytes())
    except OSError as error:
        raise _Wrong(f"it cannot be read: {error.strerror}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise _Wrong(f"{f'line {mark.line + 1}' if mark else 'it'} is not YAML: {error.problem}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _Wrong("it is not YAML text") from error


def _examine(config: Any, context: str | None) -> None:
    if not isinstance(config, dict):
        raise _Wrong(f"it has to be a map with clusters, contexts and users, and is {_word(config)}")
    _need(config, "current-context", "", str)
    for part, inner in PARTS.items():
        for path, entry in _entries(config, part):
            facts = _need(entry, inner, path, dict)
            for key in TEXTS[part]:
                _need(facts, key, f"{path}.{inner}", str)
            for key in ENCODED.get(part, ()):
                _check_encoded(facts, key, f"{path}.{inner}")
    _check_plugin(config, context or config.get("current-context"))


def _word(found: Any) -> str:
    return WORDS.get(type(found), "a number or a date")


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _need(facts: Mapping[str, Any], key: str, path: str, kind: type) -> Any:
    """The value of a key, an empty one of its kind if there is none.

    Raises:
        _Wrong: it is of another kind.
    """
    found = facts.get(key)
    if found is None:
        return kind()
    if not isinstance(found, kind):
        raise _Wrong(f"{_join(path, key)} has to be {WORDS[kind]}, and is {_word(found)}")
    return found


def _entries(config: Mapping[str, Any], part: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for index, entry in enumerate(_need(config, part, "", list)):
        path = f"{part}[{index}]"
        if not isinstance(entry, dict):
            raise _Wrong(f"{path} has to be a map with name and {PARTS[part]}, and is {_word(entry)}")
        for key in ("name", PARTS[part]):
            if entry.get(key) is None:
                raise _Wrong(f"{path}.{key} is missing")
        _need(entry, "name", path, str)
        yield path, entry


def _check_encoded(facts: Mapping[str, Any], key: str, path: str) -> None:
    encoded = _need(facts, key, path, str)
    try:
        decoded = base64.b64decode("".join(encoded.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise _Wrong(f"{path}.{key} is not base64; kubectl config set-credentials writes it") from error
    if encoded and PEM not in decoded:
        raise _Wrong(f"{path}.{key} has to be the base64 of PEM text, which has -----BEGIN … in it")


def _check_plugin(config: Mapping[str, Any], context: str | None) -> None:
    """The program that makes credentials for the chosen user: others may well be missing here."""
    contexts = {entry["name"]: entry["context"] for _, entry in _entries(config, "contexts")}
    user = contexts.get(context, {}).get("user")
    for path, entry in _entries(config, "users"):
        plugin = _need(entry["user"], "exec", f"{path}.user", dict)
        if not plugin or entry["name"] != user:
            continue
        path = f"{path}.user.exec"  # noqa: PLW2901 - of the plug-in from here on
        command = _need(plugin, "command", path, str)
        _need(plugin, "apiVersion", path, str)
        _need(plugin, "args", path, list)
        extra = _environment(plugin, path)
        if command and shutil.which(command, path=extra.get("PATH", os.environ.get("PATH"))) is None:
            raise _Wrong(f"{path}.command: there is no program {command} to be run; install the plug-in")


def _environment(plugin: Mapping[str, Any], path: str) -> dict[str, str]:
    found = {}
    for index, item in enumerate(_need(plugin, "env", path, list)):
        if not isinstance(item, dict) or not all(isinstance(item.get(key), str) for key in ("name", "value")):
            raise _Wrong(f"{path}.env[{index}] has to be a map with name and value, both text")
        found[item["name"]] = item["value"]
    return found
