"""The log: one line a record, as text or JSON, to standard error."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

TEXT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"

QUIET = ("aiohttp.access", "asyncio", "kopf.activities", "kubernetes_asyncio")
"""Loggers of libraries whose INFO is of no use to an admin."""


class JsonFormatter(logging.Formatter):
    """One JSON object a line, with the keys that log collectors expect."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON."""
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry)


def is_news(record: logging.LogRecord) -> bool:
    """Whether a record is worth a line.

    Kopf's tracebacks are not: each of its failing tasks logs one, we tell of the failure once. Nor is that it finds its own connections
    closed when it ends.
    """
    if not record.name.startswith(("kopf._core.", "kopf._cogs.")):
        return True
    return not record.exc_info and "Connector is closed" not in record.getMessage()


def set_up(level: int, style: str) -> None:
    """Configure the root logger; `style` is `text` or `json`."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if style == "json" else logging.Formatter(TEXT))
    handler.addFilter(is_news)
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name in QUIET:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))
