"""Text and JSON lines: their form, and that each record is one."""

from __future__ import annotations

import json
import logging
import re
import warnings
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.app.logs import HERE, QUIET, JsonFormatter, TextFormatter, set_up
from dra_operator.handlers import KOPF
from dra_operator.logfields import fields, hide, scope

if TYPE_CHECKING:
    from collections.abc import Iterator

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
LIBRARIES = ("kopf", *QUIET)


class Log:
    """The log of this process, as `set_up` makes it."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture

    def start(self, level: int, style: str) -> None:
        logging.getLogger().handlers.clear()  # pytest's own, which `force` would close
        set_up(level, style)

    def text(self) -> str:
        return self._capture.readouterr().err


@pytest.fixture
def stream(capsys: pytest.CaptureFixture[str]) -> Iterator[Log]:
    """The logging of the process is as before afterwards."""
    root = logging.getLogger()
    before = root.level, list(root.handlers), {name: logging.getLogger(name).level for name in LIBRARIES}
    yield Log(capsys)
    logging.captureWarnings(capture=False)
    root.handlers[:] = before[1]
    root.setLevel(before[0])
    for name, level in before[2].items():
        logging.getLogger(name).setLevel(level)


def log(name: str = "dra_operator.x", level: int = logging.INFO, text: str = "done", **more: Any) -> None:
    logging.getLogger(name).log(level, text, **more)


def test_a_text_line_is_time_level_message_and_fields(stream: Log) -> None:
    stream.start(logging.INFO, "text")
    with scope(decision="ab-1"):
        log(extra=fields(pod="team/web", node="n1", seconds=0.25, reason="two words"))
    assert re.fullmatch(
        TIME + ' INFO    done pod=team/web node=n1 reason="two words" decision=ab-1 seconds=0.25\n',
        stream.text(),
    )


def test_a_json_line_has_the_fields_as_keys(stream: Log) -> None:
    stream.start(logging.INFO, "json")
    log(extra=fields(pod="team/web", devices=2, seconds=0.058406444999491214))
    entry = json.loads(stream.text())
    assert re.fullmatch(TIME, entry.pop("time"))
    assert entry == {
        "level": "info",
        "message": "done",
        "pod": "team/web",
        "devices": 2,
        "seconds": 0.058,
        "logger": "dra_operator.x",
    }


def test_the_text_of_a_library_names_its_logger(stream: Log) -> None:
    stream.start(logging.INFO, "text")
    log("kopf._core.reactor", logging.WARNING, "odd")
    assert stream.text().endswith(" WARNING odd logger=kopf._core.reactor\n")


@pytest.mark.parametrize("style", ["text", "json"])
@pytest.mark.parametrize("text", ["a\nb", "a\r\x1b[31mb", "a\u2028b", "a\ud800b", "…"])
def test_whatever_a_message_holds_it_is_one_line(stream: Log, style: str, text: str) -> None:
    """Texts of others, such as the API server's, must not forge a line."""
    stream.start(logging.INFO, style)
    logging.getLogger("dra_operator").info("%s", text, extra=fields(object=text))
    line = stream.text()
    assert len(line.splitlines()) == 1
    assert line.encode()
    assert "\x1b" not in line
    if style == "json":
        assert json.loads(line)["message"] == json.loads(line)["object"] == text


def test_a_traceback_stays_in_its_json_line(stream: Log) -> None:
    stream.start(logging.INFO, "json")
    try:
        _ = 1 // 0
    except ZeroDivisionError:
        logging.getLogger("dra_operator").exception("a bug")
    entry = json.loads(stream.text())
    assert (entry["message"], entry["level"]) == ("a bug", "error")
    assert entry["exception"].startswith("Traceback")
    assert entry["exception"].endswith("ZeroDivisionError: integer division or modulo by zero")


def test_a_traceback_follows_its_text_line(stream: Log) -> None:
    stream.start(logging.INFO, "text")
    try:
        _ = 1 // 0
    except ZeroDivisionError:
        logging.getLogger("dra_operator").exception("a bug", extra=fields(pod="a/b"))
    first, second, *_, last = stream.text().splitlines()
    assert first.endswith(" ERROR   a bug pod=a/b")
    assert second.startswith("Traceback")
    assert last.startswith("ZeroDivisionError")


@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()])
@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer opaque-token-of-somebody",
        "<CIMultiDict('Authorization': 'Bearer opaque-token-of-somebody')>",
        "token eyJhbGciOi.opaque-token-of-somebody.c2ln",
        "told us told-by-kubeconfig",
    ],
)
def test_no_token_gets_out(formatter: logging.Formatter, text: str) -> None:
    hide("told-by-kubeconfig")
    error = ValueError(text)
    made = logging.LogRecord("x", logging.INFO, "x", 1, "%s", (text,), (ValueError, error, None))
    made.__dict__.update(fields(object=text))
    line = formatter.format(made)
    assert "opaque" not in line
    assert "told-by-kubeconfig" not in line
    assert line.count("(hidden)") == 3


def test_of_libraries_only_what_matters_is_heard(stream: Log) -> None:
    stream.start(logging.INFO, "text")
    for name in ("kopf._core.reactor.running", "kopf.objects", "aiohttp.access", "asyncio"):
        log(name, logging.INFO, "noise")
        log(name, logging.WARNING, "matter")
    text = stream.text()
    assert (text.count("noise"), text.count("matter")) == (0, 4)


RETRY = "Request attempt #2 failed; TCP closed; will re-authenticate: GET http://127.0.0.1/watch"


def test_that_kopf_asks_again_is_for_debugging(stream: Log) -> None:
    stream.start(logging.INFO, "text")
    log("kopf._cogs.clients.watching", logging.ERROR, RETRY)
    at_info = stream.text()
    stream.start(logging.DEBUG, "text")
    log("kopf._cogs.clients.watching", logging.ERROR, RETRY)
    assert at_info == ""
    assert " DEBUG   Request attempt " in stream.text()


def failing(file: str) -> BaseException:
    """An error with a frame of that file in its traceback."""
    try:
        exec(compile("1 // 0", file, "exec"), {})  # noqa: S102 - the only way to a frame of another's file
    except ZeroDivisionError as error:
        return error
    raise AssertionError


@pytest.mark.parametrize(
    ("file", "is_told"),
    [(f"{KOPF}/_core/reactor/running.py", False), ("/usr/lib/python3/asyncio/tasks.py", True), (HERE, True)],
)
def test_what_asyncio_tells_of_kopfs_tasks_is_told_by_us(stream: Log, file: str, *, is_told: bool) -> None:
    """Seen: "Task exception was never retrieved" and "Exception in callback" when Kopf ends in the midst of a request."""
    stream.start(logging.INFO, "text")
    log("asyncio", logging.ERROR, "Task exception was never retrieved", exc_info=failing(file))
    assert bool(stream.text()) == is_told


def test_a_failure_of_ours_inside_of_kopf_is_told(stream: Log) -> None:
    stream.start(logging.INFO, "text")
    error = failing(KOPF + "/x.py")
    error.__traceback__ = TracebackType(failing(HERE + "/x.py").__traceback__, *frame_of(error))
    log("asyncio", logging.ERROR, "Task exception was never retrieved", exc_info=error)
    assert "Traceback" in stream.text()


def frame_of(error: BaseException) -> tuple[FrameType, int, int]:
    trace = error.__traceback__
    assert trace is not None
    assert trace.tb_next is not None
    return trace.tb_next.tb_frame, 0, 1


def test_at_debug_kopf_tells_of_itself_but_not_of_each_event(stream: Log) -> None:
    stream.start(logging.DEBUG, "text")
    log("kopf._cogs.clients.watching", logging.DEBUG, "watch")
    log("kopf.objects", logging.INFO, "noise")
    log("kubernetes_asyncio.client.rest", logging.DEBUG, "noise")
    text = stream.text()
    assert (text.count(" watch "), text.count("noise")) == (1, 0)


def test_at_error_nobody_warns(stream: Log) -> None:
    stream.start(logging.ERROR, "text")
    for name in ("kopf._core", "asyncio", "dra_operator"):
        log(name, logging.WARNING, "matter")
    assert not stream.text()


def test_warnings_of_python_are_records(stream: Log) -> None:
    stream.start(logging.INFO, "json")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(capture=False)
        logging.captureWarnings(capture=True)
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    assert json.loads(stream.text())["logger"] == "py.warnings"
