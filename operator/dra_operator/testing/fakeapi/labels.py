"""The language of label selectors: `a=b,c in (d,e),!f,g>1`.

Called by `selectors`. The grammar is apimachinery's, with its words for what does not parse, since kubectl shows them as they come.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi.failures import bad_request
from dra_operator.validation.checks import LABEL_KEY_HELP, label_key, label_value

if TYPE_CHECKING:
    from dra_operator.testing.fakeapi.failures import StatusError

Labels = Mapping[str, str]
LabelTest = Callable[[Labels], bool]

_TOKEN = re.compile(r"\s*(==|!=|[=!<>(),]|[^\s=!<>(),]+)")
_SYMBOLS = frozenset({"==", "!=", "=", "!", "<", ">", "(", ")", ","})
_BINARY = ("in", "notin", "=", "==", "!=", ">", "<")
_END = ""


def parsed(text: str) -> list[LabelTest]:
    """One test for each requirement.

    Raises:
        StatusError: 400, it does not parse.
    """
    parser = _Parser(_TOKEN.findall(text))
    try:
        return list(parser.requirements())
    except _Unparsable as error:
        raise error.refusal() from None


@dataclass(frozen=True, slots=True)
class _Unparsable(Exception):
    why: str
    in_requirement: bool = True

    def refusal(self) -> StatusError:
        return bad_request(f"unable to parse requirement: {self.why}" if self.in_requirement else self.why)


class _Parser:
    """Tokens from left to right; the empty token is the end."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    def requirements(self) -> list[LabelTest]:
        found: list[LabelTest] = []
        while self._next != _END:
            if self._next != "!" and not self._is_identifier(self._next):
                raise _Unparsable(
                    f"found '{self._next}', expected: !, identifier, or 'end of string'", in_requirement=False
                )
            found.append(self._requirement())
            self._separator()
        return found

    def _separator(self) -> None:
        """A comma with something after it, or the end."""
        found = self._take()
        if found == ",":
            if self._next != "!" and not self._is_identifier(self._next):
                raise _Unparsable(
                    f"found '{self._next}', expected: identifier after ','", in_requirement=False
                )
        elif found != _END:
            raise _Unparsable(f"found '{found}', expected: ',' or 'end of string'", in_requirement=False)

    @property
    def _next(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else _END

    def _take(self) -> str:
        token = self._next
        self._at += 1
        return token

    def _is_identifier(self, token: str) -> bool:
        return token != _END and token not in _SYMBOLS

    def _requirement(self) -> LabelTest:
        negated = self._next == "!"
        if negated:
            self._take()
        key = self._identifier()
        if causes := label_key("", key):
            raise _Unparsable(f'<nil>: Invalid value: "{key}": {_key_detail(causes[0].message, key)}')
        if self._next in (_END, ",") or negated:
            return _existence(key, wanted=not negated)
        operator = self._take()
        if operator not in _BINARY:
            raise _Unparsable(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")
        if operator in ("in", "notin"):
            return _membership(key, _checked(key, self._values()), wanted=operator == "in")
        value = self._exact_value()
        if operator in "<>":
            return _order(key, value, greater=operator == ">")
        return _membership(key, _checked(key, [value]), wanted=operator != "!=")

    def _identifier(self) -> str:
        token = self._take()
        if not self._is_identifier(token):
            raise _Unparsable(f"found '{token}', expected: identifier")
        return token

    def _exact_value(self) -> str:
        return "" if self._next in (_END, ",") else self._identifier()

    def _values(self) -> list[str]:
        opening = self._take()
        if opening != "(":
            raise _Unparsable(f"found '{opening}' expected: '('")
        if self._next not in (",", ")") and not self._is_identifier(self._next):
            raise _Unparsable(f"found '{self._next}', expected: ',', ')' or identifier")
        found: list[str] = []
        while self._next != ")":
            found.append("" if self._next == "," else self._identifier())
            if self._next == ",":
                self._take()
                if self._next == ")":
                    found.append("")
            elif self._next != ")":
                raise _Unparsable(f"found '{self._next}', expected: ',' or ')'")
        self._take()
        return found or [""]


def _key_detail(message: str, key: str) -> str:
    return LABEL_KEY_HELP if key.count("/") > 1 else message.partition(": ")[2].partition(": ")[2]


def _checked(key: str, values: list[str]) -> set[str]:
    for index, value in enumerate(values):
        if causes := label_value(f"values[{index}][{key}]", value):
            raise _Unparsable(f"{causes[0].path}: {causes[0].message}")
    return set(values)


def _membership(key: str, values: set[str], *, wanted: bool) -> LabelTest:
    return lambda labels: (labels.get(key) in values) is wanted


def _existence(key: str, *, wanted: bool) -> LabelTest:
    return lambda labels: (key in labels) is wanted


def _order(key: str, value: str, *, greater: bool) -> LabelTest:
    bound = _integer(value)
    if bound is None:
        detail = "for 'Gt', 'Lt' operators, the value must be an integer"
        raise _Unparsable(f'values[0]: Invalid value: "{value}": {detail}')

    def test(labels: Labels) -> bool:
        actual = _integer(labels.get(key, ""))
        return actual is not None and (actual > bound if greater else actual < bound)

    return test


def _integer(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[+-]?\d+", text) else None
