"""cel-python's grammar, extended to what Kubernetes' CEL has.

The package's Lark grammar lacks optional syntax, quoted fields and trailing commas, and its string terminals end too early.
The differences are written down here as replacements of single lines; each must still be found exactly once, so that an
upgrade of the package that changes them fails loudly when the first selector is compiled (a test does it, too).
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Final

import lark

_REPLACED: Final = {
    "member         : member_dot | member_dot_arg | member_index | member_object | primary": (
        "member : member_dot | member_dot_arg | member_index | member_object | primary | member_opt | member_opt_index"
    ),
    'member_dot     : member "." IDENT': (
        'member_dot : member "." (IDENT | QUOTED)\n'
        'member_opt : member "." "?" (IDENT | QUOTED)\n'
        'member_opt_index : member "[" "?" expr "]"\n'
        "QUOTED : /`[a-zA-Z0-9_.\\/ -]+`/"
    ),
    'list_lit       : "[" [exprlist] "]"': (
        'list_lit : "[" [listinits] "]"\nlistinits : listinit ("," listinit)* [","]\nlistinit : ["?"] expr'
    ),
    'map_lit        : "{" [mapinits] "}"': 'map_lit : "{" [mapinits] "}"',
    'mapinits       : expr ":" expr ("," expr ":" expr)*': (
        'mapinits : mapinit ("," mapinit)* [","]\nmapinit : ["?"] expr ":" expr'
    ),
    "FLOAT_LIT      : "
    '/-?/ DIGIT+ "." DIGIT* EXPONENT? | /-?/ DIGIT* "." DIGIT+ EXPONENT? | /-?/ DIGIT+ EXPONENT': (
        'FLOAT_LIT : /-?/ DIGIT* "." DIGIT+ EXPONENT? | /-?/ DIGIT+ EXPONENT'
    ),
    "BYTES_LIT      : /[bB]/ MLSTRING_LIT | /[bB]/ STRING_LIT": (
        "BYTES_LIT : /[bB]/ (_LONG | _SHORT) | /[bB][rR]/ (_RAW_LONG | _RAW_SHORT)"
    ),
}

_STRINGS: Final = r"""
STRING_LIT : _SHORT | /[rR]/ _RAW_SHORT
MLSTRING_LIT.2 : _LONG | /[rR]/ _RAW_LONG
_SHORT : /"(?:\\[^\r\n]|[^"\\\r\n])*"/ | /'(?:\\[^\r\n]|[^'\\\r\n])*'/
_LONG : /\"{3}(?:\\(?:.|[\r\n])|\"{1,2}(?!\")|[^\\"])*\"{3}/ | /'{3}(?:\\(?:.|[\r\n])|'{1,2}(?!')|[^\\'])*'{3}/
_RAW_SHORT : /"[^"\r\n]*"/ | /'[^'\r\n]*'/
_RAW_LONG : /\"{3}(?:\"{1,2}(?!\")|[^"])*\"{3}/ | /'{3}(?:'{1,2}(?!')|[^'])*'{3}/
"""

_STRING_RULES = re.compile(r"^(?:ML)?STRING_LIT +:.*\n(?: +\|.*\n)*", re.MULTILINE)


def extended() -> str:
    """The grammar text.

    Raises:
        RuntimeError: the installed cel-python has another grammar than the one that the replacements were written for.
    """
    text = (files("celpy") / "cel.lark").read_text(encoding="utf-8")
    for old, new in _REPLACED.items():
        if text.count(old) != 1:
            raise RuntimeError(f"cel-python's grammar has changed: {old!r} is not in it once")
        text = text.replace(old, new)
    return _STRING_RULES.sub("", text) + _STRINGS


def _bool_literal(token: lark.Token) -> lark.Token:
    """`true` and `false` are lexed as names; cel-python's own callback loses their position."""
    return token.update(type="BOOL_LIT") if token.value in {"true", "false"} else token


@cache
def parser() -> lark.Lark:
    """The parser; built once, as it takes a tenth of a second. It keeps punctuation, whose positions messages need."""
    return lark.Lark(
        extended(),
        parser="lalr",
        start="expr",
        lexer_callbacks={"IDENT": _bool_literal},
        keep_all_tokens=True,
        maybe_placeholders=False,
    )
