"""The log: one line a record, as text or JSON, to standard error; of ours and of the libraries alike."""

from __future__ import annotations

import json
import logging
import re
import traceback
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from dra_operator.handlers import KOPF
from dra_operator.logfields import Field, fields_of, without_secrets

OURS: Final = "dra_operator"

HERE: Final = str(Path(__file__).parents[1])
"""The folder of our code."""

QUIET: Final = ("aiohttp", "asyncio", "kopf.activities", "kopf.objects", "kubernetes_asyncio")
"""Loggers of libraries whose INFO and DEBUG are of no use to an admin: a line for each request or event, bodies and headers in them."""

BARE: Final = re.compile(r"[\w./:@+,-]+")
"""Values that need no quotes."""


class _Formatter(logging.Formatter):
    """What both styles have in common: the facts of a record, and that no secret gets out."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        return without_secrets(self.line(record))

    def line(self, record: logging.LogRecord) -> str:
        """The line, before secrets are hidden."""
        raise NotImplementedError

    def time(self, record: logging.LogRecord) -> str:
        """RFC 3339, in UTC, with milliseconds."""
        moment = datetime.fromtimestamp(record.created, UTC)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def message(self, record: logging.LogRecord) -> str:
        """The text of the call; Python's warnings end with a line break."""
        return record.getMessage().rstrip()

    def trace(self, record: logging.LogRecord) -> str:
        """Traceback and stack, if there are any."""
        parts = [self.formatException(record.exc_info)] if record.exc_info else []
        if record.stack_info:
            parts.append(self.formatStack(record.stack_info))
        return "\n".join(parts)


class TextFormatter(_Formatter):
    """`time level message key=value …`; a traceback follows on lines of its own."""

    def line(self, record: logging.LogRecord) -> str:
        """The record as text. A message of several lines becomes one: nobody can forge a line by the name of an object."""
        found = fields_of(record)
        parts = [self.time(record), f"{record.levelname:<7}", _one_line(self.message(record))]
        parts += [f"{name}={_value(value)}" for name, value in found.items()]
        if not record.name.startswith(OURS):
            parts.append(f"logger={record.name}")
        trace = self.trace(record)
        return " ".join(parts) + (f"\n{trace}" if trace else "")


class JsonFormatter(_Formatter):
    """One JSON object a line, with the keys that log collectors expect."""

    def line(self, record: logging.LogRecord) -> str:
        """The record as JSON."""
        entry: dict[str, Field] = {
            "time": self.time(record),
            "level": record.levelname.lower(),
            "message": self.message(record),
            **{name: _rounded(value) for name, value in fields_of(record).items()},
            "logger": record.name,
        }
        if trace := self.trace(record):
            entry["exception"] = trace
        return json.dumps(entry)


def is_news(record: logging.LogRecord, level: int = logging.INFO) -> bool:
    """Whether a record is worth a line at a level.

    Kopf's tracebacks are not, whether it logs them itself or asyncio for its tasks: we tell of the failure once. Nor is that it finds its
    own connections closed when it ends. That it asks again after a broken connection is an error to Kopf; here it is for debugging, as
    the feeds' own retries are, and an outage is told once by the sync guard.
    """
    if record.name == "asyncio":
        return not _is_of_kopf_alone(record)
    if not record.name.startswith(("kopf._core.", "kopf._cogs.")):
        return True
    text = record.getMessage()
    if text.startswith("Request attempt "):
        record.levelno, record.levelname = logging.DEBUG, "DEBUG"
        return level <= logging.DEBUG
    return not record.exc_info and "Connector is closed" not in text


def _is_of_kopf_alone(record: logging.LogRecord) -> bool:
    """Whether a traceback goes through Kopf's code and none of ours."""
    trace = record.exc_info[2] if record.exc_info else None
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(trace)]
    return any(file.startswith(KOPF) for file in files) and not any(file.startswith(HERE) for file in files)


def set_up(level: int, style: str) -> None:
    """Configure the root logger; `style` is `text` or `json`. Python's warnings go there, too."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if style == "json" else TextFormatter())
    handler.addFilter(partial(is_news, level=level))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    logging.captureWarnings(capture=True)
    for name in QUIET:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))
    # Kopf speaks of its own life at INFO, where ours is told already; at DEBUG it tells of its watches.
    logging.getLogger("kopf").setLevel(level if level < logging.INFO else max(level, logging.WARNING))


def _rounded(value: Field) -> Field:
    """Seconds to the millisecond; nobody measures finer."""
    return round(value, 3) if isinstance(value, float) else value


def _one_line(text: str) -> str:
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _value(value: Field) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if BARE.fullmatch(text) else '"' + _one_line(text).replace('"', '\\"') + '"'
