"""Expression text to tokens: CEL's lexical rules (language definition, "Syntax"; cel-go's grammar), the longest token first.

Called by the parser. What is no token is passed over, as upstream does it, so that each such place is named.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

ESCAPE: Final = r"\\(?:[abfnrtv\"'\\?`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})"
_HALF_ESCAPE: Final = r"\\(?:[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7}|[0-3][0-7]?)?"

_STRING: Final = (
    rf'(?:"""(?:{ESCAPE}|[^\\])*?"""'
    rf"|'''(?:{ESCAPE}|[^\\])*?'''"
    rf'|"(?:{ESCAPE}|[^\\"\n\r])*"'
    rf"|'(?:{ESCAPE}|[^\\'\n\r])*'"
    r'|[rR]"""(?s:.)*?"""'
    r"|[rR]'''(?s:.)*?'''"
    r'|[rR]"[^"\n\r]*"'
    r"|[rR]'[^'\n\r]*')"
)

_TOKEN: Final = re.compile(
    r"(?P<SPACE>[\t \r\n\f]+|//[^\n]*)"
    r"|(?P<NUM_FLOAT>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<NUM_UINT>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])"
    r"|(?P<NUM_INT>0x[0-9a-fA-F]+|[0-9]+)"
    rf"|(?P<STRING>{_STRING})"
    rf"|(?P<BYTES>[bB]{_STRING})"
    r"|(?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<ESC_IDENTIFIER>`[A-Za-z0-9_./ -]+`)"
    r"|(?P<SIGN>==|!=|<=|>=|&&|\|\||[<>\[\]{}().,\-!?:+*/%])"
)

_BROKEN: Final = re.compile(
    rf"""'(?:{ESCAPE}|[^\\'\n\r])*(?:{_HALF_ESCAPE})?|"(?:{ESCAPE}|[^\\"\n\r])*(?:{_HALF_ESCAPE})?"""
    r"|`[A-Za-z0-9_./ -]*|[&|=]|"
)
"""What could have become a token; the character after it is the one that does not fit."""

_WORDS: Final = frozenset({"in", "true", "false", "null"})
"""Words that are never names."""

END: Final = "<EOF>"


class Token(NamedTuple):
    """A token.

    Args:
        kind: what it is: one of the grammar's names, or itself for signs and the words that are no names; `<EOF>` at the end.
        text: as it is written.
        at: where it begins, in characters.
    """

    kind: str
    text: str
    at: int


def tokens(text: str) -> tuple[list[Token], list[Token]]:
    """The tokens of an expression, the last of them its end, and what is none."""
    found, broken, at = [], [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            end = min(len(text), _half(text, at) + 1)
            broken.append(Token("", text[at:end], at))
        else:
            end = match.end()
            if match.lastgroup != "SPACE":
                found.append(_token(match, at))
        at = end
    found.append(Token(END, END, at))
    return found, broken


def _token(match: re.Match[str], at: int) -> Token:
    text, kind = match[0], str(match.lastgroup)
    return Token(text if kind == "SIGN" or text in _WORDS else kind, text, at)


def _half(text: str, at: int) -> int:
    match = _BROKEN.match(text, at)
    return match.end() if match else at
