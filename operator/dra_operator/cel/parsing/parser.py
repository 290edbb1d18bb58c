"""Expression text to syntax tree: a parser with a stack of its own, so that no expression exhausts Python's.

Called when something is compiled. Macros are expanded on the way (`macros.py`, alloc L-6). It takes what cel-go's grammar takes and refuses
what cel-go refuses, depth included. Chains of `&&` and `||` are one node, however long they are. Must not know what names mean.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from dra_operator.errors import CelCompileError

from . import complaints, syntax
from .depth import make_room
from .literals import CONSTANTS
from .macros import ALL, Expansion, expand
from .source import NOWHERE, compile_error, fault, located
from .tokens import END, Token, tokens

if TYPE_CHECKING:
    from collections.abc import Callable

    from dra_operator.errors import CelFault

    from .complaints import Complaint
    from .macros import Macros
    from .syntax import Node

    State = Callable[[], "State | None"]

MAX_BYTES: Final = 10 * 1024
"""Expressions are limited to 10 KiB of UTF-8 (alloc L-8): the API server's validation refuses longer ones before it compiles them."""

MAX_DEPTH: Final = 250
"""cel-go's limit: for each rule of its grammar, of how deep it is in itself, and for operators, choices, selections, methods and indices that hold one another."""

RESERVED: Final = frozenset(
    "as break const continue else for function if import let loop package namespace return var void while".split()  # noqa: SIM905 -- reads as CEL's own list of words
)

_CHOICE, _EITHER, _BOTH, _RELATION, _SUM, _PRODUCT = range(1, 7)
_BINDS: Final = {
    "?": 0,
    ":": _CHOICE,
    "||": _EITHER,
    "&&": _BOTH,
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!=", "in"), _RELATION),
    **dict.fromkeys(("+", "-"), _SUM),
    **dict.fromkeys(("*", "/", "%"), _PRODUCT),
}
"""How strongly operators bind; `?` is a choice whose first branch is not over."""

_CLOSED_BY: Final = {
    "(": ")",
    "call": ")",
    "method": ")",
    "index": "]",
    "[": "]",
    "{": "}",
    "message": "}",
    "": END,
}
_ITEMS: Final = frozenset({"[", "{", "message"})
"""What may be empty but for a comma, and end with one."""


def parse(text: str, macros: Macros = ALL) -> Node:
    """Parse an expression.

    Args:
        text: the expression.
        macros: those that there are; by default all.

    Raises:
        CelCompileError: it is no CEL, or longer or deeper than upstream allows.
    """
    text = _whole_characters(text)
    if len(text.encode()) > MAX_BYTES:
        raise CelCompileError(f"Too long: may not be more than {MAX_BYTES} bytes")
    return _Parser(text, macros).parse()


def _whole_characters(text: str) -> str:
    """Halves of characters become what Go makes of them when it reads JSON."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


class _Value(NamedTuple):
    """A part that is parsed, and how many of the nodes that cel-go counts, and of all nodes, lie on the longest way down."""

    node: Node
    height: int
    levels: int


@dataclass(slots=True)
class _Operator:
    """An operator that waits for its right side, with what stands left of it; `&&` and `||` gather their terms."""

    sign: str
    places: list[int]
    values: list[_Value]


@dataclass(slots=True)
class _Level:
    """A construct that is open: parentheses, a list, the arguments of a call; the outermost is the whole expression."""

    kind: str
    at: int
    name: str = ""
    target: _Value | None = None
    values: list[_Value] = field(default_factory=list)
    optional: set[int] = field(default_factory=set)
    fields: list[tuple[str, int]] = field(default_factory=list)
    operators: list[_Operator] = field(default_factory=list)


class _Stop(Exception):
    """Nothing behind a syntax error is looked at."""


class _Parser:
    """Parses one expression: each state is a method that goes on from the next token and says which state follows."""

    def __init__(self, text: str, macros: Macros) -> None:
        self._text = text
        self._macros = macros
        self._tokens, broken = tokens(text)
        self._at = 0
        self._faults: list[CelFault] = []
        for token in broken:
            self._note(complaints.no_token(token))
        self._levels = [_Level("", 0)]
        self._depth = {"expr": 1, "relation": 1, "calc": 1}
        self._value = _Value(syntax.Literal(None, 0), 0, 1)

    def parse(self) -> Node:
        state: State | None = self._operand
        try:
            while state is not None:
                state = state()
        except _Stop:
            pass
        if self._faults:
            raise compile_error(self._text, self._faults)
        make_room(self._value.levels)
        return self._value.node

    def _peek(self, ahead: int = 0) -> Token:
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def _take(self) -> Token:
        token = self._peek()
        self._at += 1
        return token

    def _takes(self, kind: str) -> bool:
        """Take the next token if it is of that kind."""
        found = self._peek().kind == kind
        self._at += found
        return found

    # faults and limits

    def _note(self, complaint: Complaint) -> None:
        at, message, hint = complaint
        self._faults.append(located(self._text, at, message, hint))

    def _refuse(self, complaint: Complaint) -> _Stop:
        self._note(complaint)
        return _Stop()

    def _deeper(self, *rules: str) -> None:
        """Rules of the grammar begin in themselves."""
        for rule in rules:
            self._depth[rule] += 1
            if self._depth[rule] > MAX_DEPTH:
                raise self._refuse((NOWHERE, f"expression recursion limit exceeded: {MAX_DEPTH}", ""))

    def _higher(self, *rules: str) -> None:
        """Rules are over that began in themselves."""
        for rule in rules:
            self._depth[rule] -= 1

    def _made(self, node: Node, *parts: _Value, counted: bool = True) -> None:
        """A part is parsed."""
        height = max((part.height for part in parts), default=0) + counted
        if height > MAX_DEPTH:
            raise self._refuse((NOWHERE, "max recursion depth exceeded", ""))
        self._value = _Value(node, height, 1 + max((part.levels for part in parts), default=0))

    def _written(self) -> str:
        """The text of the next token and the one before it, with what stands between them."""
        token = self._peek()
        return self._text[self._peek(-1).at : token.at + len(token.text)]

    # operands

    def _operand(self) -> State | None:
        return self._sign() if self._peek().kind in {"!", "-"} else self._primary()

    def _sign(self) -> State | None:
        """Signs before an operand; two of them are none. One minus before a number is part of the number."""
        sign = self._take()
        odd = True
        while self._takes(sign.kind):
            odd = not odd
        number = complaints.is_number(self._peek())
        if sign.kind == "-" and number and self._peek(-1) is sign:
            return self._literal(self._take(), sign)
        if odd:
            self._levels[-1].operators.append(_Operator(f"{sign.kind}_", [sign.at], []))
        if sign.kind == "!" and self._peek().kind == "-":
            minus = self._take()
            if not complaints.is_number(self._peek()):
                raise self._refuse(complaints.after_minus(self._peek(), self._written()))
            return self._literal(self._take(), minus)
        return self._primary(after=sign)

    def _primary(self, after: Token | None = None) -> State | None:
        token = self._peek()
        if token.kind in CONSTANTS:
            return self._literal(self._take())
        if token.kind in {"IDENTIFIER", "."}:
            return self._name()
        if token.kind in {"(", "[", "{"}:
            self._take()
            return self._open(_Level(token.kind, token.at))
        opened = self._levels[-1].kind if self._peek(-1).kind in {"(", "[", "{"} else ""
        raise self._refuse(complaints.for_operand(token, self._peek(1), after, opened, self._written()))

    def _literal(self, token: Token, minus: Token | None = None) -> State | None:
        at = token.at if minus is None else minus.at
        value: object = None
        try:
            value = CONSTANTS[token.kind](f"-{token.text}" if minus else token.text)
        except ValueError as error:
            self._note((at, str(error), complaints.for_literal(token)))
        self._made(syntax.Literal(value, at), counted=False)
        return self._operator

    def _name(self) -> State | None:
        first = self._peek()
        dot = "." if self._takes(".") else ""
        token = self._take()
        if token.kind != "IDENTIFIER":
            raise self._refuse(complaints.after_dot(token, self._text[first.at : token.at + len(token.text)]))
        if self._is_message():
            return self._message(dot + token.text)
        if token.text in RESERVED:
            self._note((first.at, f"reserved identifier: {token.text}", ""))
            self._made(syntax.Literal(None, first.at), counted=False)
            return self._operator if self._peek().kind != "(" else self._open(_Level("call", self._take().at))
        if self._peek().kind == "(":
            return self._open(_Level("call", self._take().at, dot + token.text))
        self._made(syntax.Ident(dot + token.text, token.at), counted=False)
        return self._operator

    def _is_message(self) -> bool:
        ahead = 0
        while self._peek(ahead).kind == "." and self._peek(ahead + 1).kind == "IDENTIFIER":
            ahead += 2
        return self._peek(ahead).kind == "{"

    def _message(self, name: str) -> State | None:
        while self._takes("."):
            name += f".{self._take().text}"
        return self._open(_Level("message", self._take().at, name))

    # what is open

    def _open(self, level: _Level) -> State | None:
        self._levels.append(level)
        closing = _CLOSED_BY[level.kind]
        if level.kind in _ITEMS and self._takes(",") and self._peek().kind != closing:
            raise self._unclosed(level)
        if self._peek().kind == closing and level.kind not in {"(", "index"}:
            self._take()
            return self._close()
        self._deeper("expr", "relation", "calc")
        return self._item(level)

    def _item(self, level: _Level) -> State | None:
        """An element, a key, an index, a field or an argument begins."""
        optional = level.kind in {"[", "{", "index", "message"} and self._takes("?")
        if optional:
            level.optional.add(len(level.values))
        if level.kind == "message":
            token = self._take()
            if token.kind not in {"IDENTIFIER", "ESC_IDENTIFIER"}:
                raise self._refuse(complaints.for_field(token, self._peek(), optional=optional))
            level.fields.append((token.text.strip("`"), self._peek().at))
            if not self._takes(":"):
                raise self._refuse(complaints.for_colon(self._peek(), self._peek(1)))
        return self._operand

    def _unclosed(self, level: _Level) -> _Stop:
        """Behind a comma, nothing but the end can be."""
        around = self._levels[-2]
        is_key = around.kind == "{" and len(around.values) % 2 == 0
        outer = "key" if is_key else around.kind
        return self._refuse(complaints.for_closing(self._peek(), self._peek(1), level.kind, outer))

    def _close(self) -> State | None:
        level = self._levels.pop()
        nodes = tuple(value.node for value in level.values)
        if level.kind == "(":
            return self._operator
        if level.kind == "[":
            self._made(
                syntax.ListLiteral(nodes, level.at, frozenset(level.optional)), *level.values, counted=False
            )
        elif level.kind == "{":
            optional = frozenset(number // 2 for number in level.optional)
            entries = tuple(zip(nodes[::2], nodes[1::2], strict=True))
            self._made(syntax.MapLiteral(entries, level.at, optional), *level.values, counted=False)
        elif level.kind == "message":
            fields, optional = tuple(level.fields), frozenset(level.optional)
            node = syntax.Message(level.name, nodes, level.at, fields, optional)
            self._made(node, *level.values, counted=False)
        else:
            self._called(level, nodes)
        return self._operator

    def _called(self, level: _Level, nodes: tuple[Node, ...]) -> None:
        """A call, a method or an index is complete."""
        if level.target is None:
            self._made(self._expanded(level.name, None, nodes, level.at), *level.values, counted=False)
            return
        target, node = level.target.node, None
        if level.kind == "index":
            node = syntax.Call("_[?_]" if level.optional else "_[_]", None, (target, *nodes), level.at)
        self._made(node or self._expanded(level.name, target, nodes, level.at), level.target, *level.values)

    def _expanded(self, name: str, target: Node | None, nodes: tuple[Node, ...], at: int) -> Node:
        try:
            found = expand(
                Expansion(name, target, nodes, at, lambda at, message: fault(self._text, at, message)),
                self._macros,
            )
        except CelCompileError as error:
            self._faults.extend(error.faults)
            return syntax.Literal(None, at)
        return found or syntax.Call(name, target, nodes, at)

    # what follows an operand

    def _operator(self) -> State | None:
        kind = self._peek().kind
        if kind == ".":
            return self._member()
        if kind == "[":
            return self._open(_Level("index", self._take().at, target=self._value))
        self._reduce(_PRODUCT + 1)
        if kind in {"&&", "||"}:
            return self._chain()
        if _BINDS.get(kind, 0) >= _RELATION:
            return self._binary()
        if kind in {"?", ":"}:
            return self._question() if kind == "?" else self._colon()
        return self._end()

    def _member(self) -> State | None:
        dot = self._take()
        optional = self._takes("?")
        name = self._take()
        if name.kind not in {"IDENTIFIER", "ESC_IDENTIFIER"}:
            written = self._text[dot.at : name.at + len(name.text)]
            raise self._refuse(
                complaints.after_optional_dot(name) if optional else complaints.after_dot(name, written)
            )
        if name.kind == "IDENTIFIER" and not optional and self._peek().kind == "(":
            return self._open(_Level("method", self._take().at, name.text, self._value))
        self._made(syntax.Select(self._value.node, name.text.strip("`"), dot.at, optional), self._value)
        return self._operator

    def _wait(self, operator: _Operator) -> State:
        self._levels[-1].operators.append(operator)
        return self._operand

    def _top(self) -> _Operator | None:
        operators = self._levels[-1].operators
        return operators[-1] if operators else None

    def _chain(self) -> State:
        token = self._take()
        self._reduce(_BINDS[token.kind] + 1)
        top = self._top()
        if top is None or top.sign != token.kind:
            return self._wait(_Operator(token.kind, [token.at], [self._value]))
        top.places.append(token.at)
        top.values.append(self._value)
        return self._operand

    def _binary(self) -> State:
        token = self._take()
        binds = _BINDS[token.kind]
        self._reduce(binds)
        self._deeper("relation" if binds == _RELATION else "calc")
        return self._wait(_Operator(token.kind, [token.at], [self._value]))

    def _question(self) -> State:
        self._reduce(_EITHER)
        top = self._top()
        if top is not None and top.sign == "?":
            raise self._refuse(complaints.unfinished(self._peek()))
        return self._wait(_Operator("?", [self._take().at], [self._value]))

    def _colon(self) -> State | None:
        self._reduce(_EITHER)
        top, level = self._top(), self._levels[-1]
        if top is not None and top.sign == "?":
            self._take()
            top.sign = ":"
            top.values.append(self._value)
            self._deeper("expr")
            return self._operand
        self._reduce(_CHOICE)
        if level.kind != "{" or len(level.values) % 2:
            return self._end()
        self._take()
        level.values.append(self._value)
        return self._operand

    def _end(self) -> State | None:
        """The end of an item, of what is open, or of everything."""
        self._reduce(_CHOICE)
        token, level = self._peek(), self._levels[-1]
        if level.operators:
            raise self._refuse(complaints.unfinished(token))
        is_key = level.kind == "{" and len(level.values) % 2 == 0
        if token.kind == _CLOSED_BY[level.kind] and not is_key:
            level.values.append(self._value)
            return self._closing()
        if token.kind == "," and level.kind in {"[", "{", "message", "call", "method"} and not is_key:
            self._take()
            level.values.append(self._value)
            if level.kind in _ITEMS and self._peek().kind == _CLOSED_BY[level.kind]:
                return self._closing()
            if not complaints.begins_item(self._peek(), level.kind):
                raise self._unclosed(level)
            return self._item(level)
        kind = "key" if is_key else level.kind
        raise self._refuse(complaints.after_operand(token, self._peek(1), self._peek(-1), kind))

    def _closing(self) -> State | None:
        if not self._levels[-1].kind:
            return None
        self._take()
        self._higher("expr", "relation", "calc")
        return self._close()

    # operators that have both sides

    def _reduce(self, binds: int) -> None:
        """Complete the operators that bind that strongly."""
        operators = self._levels[-1].operators
        while operators and _BINDS.get(operators[-1].sign, _PRODUCT + 1) >= binds:
            self._complete(operators.pop())

    def _complete(self, operator: _Operator) -> None:
        sign, at = operator.sign, operator.places[0]
        values = (*operator.values, self._value)
        nodes = tuple(value.node for value in values)
        if sign in {"!_", "-_"}:
            self._made(syntax.Call(sign, None, nodes, at), *values, counted=False)
        elif sign in {"&&", "||"}:
            self._made(syntax.Logic(sign == "&&", nodes, tuple(operator.places)), *values, counted=False)
        elif sign == ":":
            self._higher("expr")
            self._made(syntax.Conditional(nodes[0], nodes[1], nodes[2], at), *values)
        else:
            self._higher("relation" if _BINDS[sign] == _RELATION else "calc")
            name = "@in" if sign == "in" else f"_{sign}_"
            self._made(syntax.Call(name, None, nodes, at), *values)
