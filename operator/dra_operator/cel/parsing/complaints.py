"""What the parser says of a token that cannot stand where it does: upstream's words (ANTLR's, in cel-go), and what was likely meant.

Called by the parser when it gives up, and for what is no token. Of a broken expression only the first such place is named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .tokens import END

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .tokens import Token

    Complaint = tuple[int, str, str]
    """Position, upstream's message, hint."""

_STARTS: Final = ("[", "{", "(", ".", "-", "!", "true", "false", "null", "NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES", "IDENTIFIER")  # fmt: skip
"""What an operand can begin with."""

_ORDER: Final = {
    kind: number
    for number, kind in enumerate(
        ("[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", ":", "true", "false", "null", "NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES", "IDENTIFIER", "ESC_IDENTIFIER")
    )
}  # fmt: skip
"""Upstream lists kinds of tokens in this order."""

_ALSO: Final = {"call": (")",), "method": (")",), "index": ("?",), "[": ("]", ",", "?"), "{": ("}", ",", "?")}
"""What else may stand where the first operand of a construct is expected."""

_AFTER: Final = {"": (END,), "(": (")",), "call": (")",), "method": (")",), "index": ("]",), "[": ("]", ","), "{": ("}", ","), "message": ("}", ","), "key": (":",)}  # fmt: skip
"""What may follow the operand in a construct, operators aside."""

_QUOTES: Final = frozenset("“”‘’„«»")  # noqa: RUF001 -- those are the ones to complain of
_FOR_BROKEN: Final = {
    "=": "compare with ==",
    "&": "write && for a logical and",
    "|": "write || for a logical or",
    "#": "comments begin with //",
    ";": "an expression has no semicolon at its end",
    "`": "only fields can be quoted so, behind a dot, and they consist of letters, digits, _, ., -, / and spaces",
    "'": "the string has no end on this line, or has an escape that CEL does not know",
    '"': "the string has no end on this line, or has an escape that CEL does not know",
}
_WORDS: Final = {
    "and": "write && for a logical and",
    "or": "write || for a logical or",
    "not": "write ! for a logical not",
    "AND": "write && for a logical and",
    "OR": "write || for a logical or",
    "NOT": "write ! for a logical not",
    "is": "compare with ==",
    "eq": "compare with ==",
    "then": "a choice is written condition ? one : other",
}


def is_number(token: Token) -> bool:
    """Whether a minus before the token belongs to it."""
    return token.kind in {"NUM_INT", "NUM_FLOAT"}


def no_token(token: Token) -> Complaint:
    """What is no token."""
    hint = _FOR_BROKEN.get(token.text[0], "")
    if token.text[0] in _QUOTES:
        hint = "write strings in plain quotes"
    return token.at, f"Syntax error: token recognition error at: '{token.text}'", hint


def for_operand(
    token: Token, following: Token, sign: Token | None, construct: str, written: str
) -> Complaint:
    """Something else where an operand is expected.

    Args:
        token: what is there.
        following: what stands behind it.
        sign: the sign of the operand, if it has one.
        construct: what has just been opened; empty if something stands in it before.
        written: the text from the sign, or whatever else stands before the token, on.
    """
    if sign is not None and sign.kind == "-":
        return after_minus(token, written)
    also = _ALSO.get(construct, ())
    expected = _set((*_STARTS, *also))
    extra = following.kind in {*_STARTS, *also} or (sign is not None and token.kind == END)
    hint = "an operand is missing before the end" if token.kind == END else ""
    if written.startswith("/") and token.kind in {"*", "/"}:
        hint = "comments begin with // and end with the line"
    return token.at, _input(token, expected, extra=extra), hint


def after_minus(token: Token, written: str) -> Complaint:
    """Something else where the operand of a minus is expected; `written` is the text from the minus on."""
    return token.at, f"Syntax error: no viable alternative at input '{_escaped(written)}'", ""


def after_dot(token: Token, written: str) -> Complaint:
    """Something else where the name of a field is expected; `written` is the text from the dot on."""
    if token.kind in {"true", "false", "null"}:
        return token.at, _input(token, "IDENTIFIER", extra=False), _quote_it(token)
    hint = _quote_it(token) if token.kind == "in" else ""
    return token.at, f"Syntax error: no viable alternative at input '{_escaped(written)}'", hint


def after_optional_dot(token: Token) -> Complaint:
    """Something else where the name of an optional field is expected."""
    return token.at, _input(token, "{IDENTIFIER, ESC_IDENTIFIER}", extra=False), ""


_NAMES: Final = ("IDENTIFIER", "ESC_IDENTIFIER")
_ITEM: Final = {
    **dict.fromkeys(("[", "{"), frozenset({"?", *_STARTS})),
    "message": frozenset({"?", *_NAMES}),
}
"""What an item can begin with, of what may end with a comma."""


def begins_item(token: Token, construct: str) -> bool:
    """Whether another item follows a comma."""
    return construct not in _ITEM or token.kind in _ITEM[construct]


_OPERATORS: Final = (
    ".",
    "[",
    "?",
    "&&",
    "||",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "in",
    "+",
    "-",
    "*",
    "/",
    "%",
)


def for_closing(token: Token, following: Token, construct: str, around: str) -> Complaint:
    """Something else behind a comma, where nothing but the end of the construct can be; `around` is the construct that it stands in."""
    (closing, _) = _AFTER[construct]
    behind = {*_AFTER[around], *_OPERATORS, *((",",) if around in {"call", "method"} else ())}
    if following.kind != closing and token.kind in behind:
        return (
            token.at,
            f"Syntax error: missing '{closing}' at '{_shown(token) or END}'",
            _missing(closing, token),
        )
    return token.at, _input(token, f"'{closing}'", extra=following.kind == closing), _missing(closing, token)


def _missing(closing: str, token: Token) -> str:
    return f"{closing} is missing before the end" if token.kind == END else ""


def for_field(token: Token, following: Token, *, optional: bool) -> Complaint:
    """Something else where the field of a message is expected; `optional` where a question mark stands before it."""
    wanted = _NAMES if optional else ("}", ",", "?", *_NAMES)
    return token.at, _input(token, _set(wanted), extra=following.kind in wanted), ""


def for_colon(token: Token, following: Token) -> Complaint:
    """Something else where a colon is expected behind a field."""
    if following.kind != ":" and token.kind in _STARTS:
        return token.at, f"Syntax error: missing ':' at '{_shown(token)}'", ""
    return token.at, _input(token, "':'", extra=following.kind == ":"), ""


def unfinished(token: Token) -> Complaint:
    """A choice without its second branch."""
    return token.at, _input(token, "':'", extra=False), "a choice has two branches: condition ? one : other"


def after_operand(token: Token, following: Token, before: Token, construct: str) -> Complaint:
    """Something else where an operator, or the end of what is open, is expected."""
    wanted = _AFTER[construct]
    hint = _WORDS.get(token.text, "") or _WORDS.get(before.text, "") or _unbalanced(token, wanted[0])
    if token.kind == END:
        hint = "" if construct == "key" else f"{wanted[0]} is missing before the end"
    missing = (token.kind == END and construct in {"(", "call", "method", "index"}) or (
        construct == "key" and token.kind in _STARTS
    )
    if following.kind not in wanted and missing:
        return token.at, f"Syntax error: missing '{wanted[0]}' at '{_shown(token) or END}'", hint
    return token.at, _input(token, _set(wanted), extra=following.kind in wanted and token.kind != END), hint


_OPENING: Final = {")": "(", "]": "[", "}": "{"}


def _unbalanced(token: Token, closing: str) -> str:
    """Of a closing bracket that closes nothing, or not what is open."""
    if token.kind not in _OPENING:
        return ""
    if closing in _OPENING:
        return f"{closing} is missing before this {token.kind}"
    return (
        f"this {token.kind} closes nothing: there is no {_OPENING[token.kind]} for it"
        if closing == END
        else ""
    )


def for_literal(token: Token) -> str:
    """What may mend a constant that does not exist."""
    if token.kind in {"NUM_INT", "NUM_UINT"}:
        return "an int is between -9223372036854775808 and 9223372036854775807, a uint at most 18446744073709551615"
    return ""


def _quote_it(token: Token) -> str:
    return f'{token.text} is a word of the language; as a key it is written ["{token.text}"]'


def _input(token: Token, expected: str, *, extra: bool) -> str:
    kind = "extraneous" if extra else "mismatched"
    return f"Syntax error: {kind} input '{_shown(token) or END}' expecting {expected}"


def _set(kinds: Iterable[str]) -> str:
    ordered = sorted(set(kinds), key=lambda kind: _ORDER.get(kind, -1))
    shown = [kind if kind.isupper() or kind == END else f"'{kind}'" for kind in ordered]
    return shown[0] if len(shown) == 1 else f"{{{', '.join(shown)}}}"


def _shown(token: Token) -> str:
    if token.kind == END:
        return ""
    return _escaped(token.text)


def _escaped(text: str) -> str:
    return text.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
