"""Expression text to syntax tree: cel-python's parser does the parsing, this module the rest.

Called by the cache when it compiles. Macros are expanded on the way (`macros.py`, alloc L-6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import lark
from lark.exceptions import UnexpectedInput

from dra_operator.errors import CelCompileError, CelUnsupported

from . import syntax
from .grammar import parser
from .literals import CONSTANTS
from .macros import Expansion, expand

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .syntax import Node

    Branch = lark.Tree[lark.Token]
    Children = Sequence[lark.Token | Branch]

MAX_LENGTH: Final = 10 * 1024
"""Expressions are limited to 10 KiB (alloc L-8)."""

MAX_DEPTH: Final = 200
"""Deepest nesting that we take. cel-go refuses 250 levels of any one rule; below this number it accepts."""

KEYWORDS: Final = frozenset({"in", "null"})
"""Words that are never names; the lexer takes them for names where nothing else can stand."""

RESERVED: Final = frozenset(
    "as break const continue else for function if import let loop package namespace return var void while".split()  # noqa: SIM905 -- reads as CEL's own list of words
)

_BINARY: Final = {
    "relation_lt": "_<_",
    "relation_le": "_<=_",
    "relation_gt": "_>_",
    "relation_ge": "_>=_",
    "relation_eq": "_==_",
    "relation_ne": "_!=_",
    "relation_in": "@in",
    "addition_add": "_+_",
    "addition_sub": "_-_",
    "multiplication_mul": "_*_",
    "multiplication_div": "_/_",
    "multiplication_mod": "_%_",
}


def fault(text: str, at: int, message: str) -> CelCompileError:
    """A compile error in upstream's form: position, message, the line and a caret under it."""
    line_start = text.rfind("\n", 0, at) + 1
    line = text[line_start:].partition("\n")[0]
    row, column = text.count("\n", 0, at) + 1, at - line_start
    pointer = "." * column + "^"
    return CelCompileError(
        f"compilation failed: ERROR: <input>:{row}:{column + 1}: {message}\n | {line}\n | {pointer}"
    )


def unsupported(what: str) -> CelUnsupported:
    """The error for what CEL has and this engine does not."""
    return CelUnsupported(f"CEL: {what} is not supported yet")


def parse(text: str) -> Node:
    """Parse an expression.

    Raises:
        CelCompileError: it is no CEL, or longer than 10 KiB.
        CelUnsupported: it is nested too deeply, or builds messages.
    """
    if len(text.encode()) > MAX_LENGTH:
        raise CelCompileError(f"expression size exceeds limit of {MAX_LENGTH} bytes")
    try:
        return _Reader(text).node(parser().parse(text))
    except UnexpectedInput as error:
        raise _syntax_fault(text, error) from error


def _syntax_fault(text: str, error: UnexpectedInput) -> CelCompileError:
    """Where the parser stopped; the wording after "Syntax error" is ours (cel.md, section 3.4)."""
    token = getattr(error, "token", None)
    if token is not None and token.type == "$END":
        return fault(text, len(text), "Syntax error: unexpected end of the expression")
    at: int = getattr(error, "pos_in_stream", None) or 0
    found = text[at : at + 1] if token is None else str(token)
    return fault(text, at, f"Syntax error: unexpected {found!r}")


def _start(tree: lark.Token | Branch) -> int:
    """Where a branch begins in the text: at its first token."""
    while isinstance(tree, lark.Tree):
        tree = tree.children[0]
    return tree.start_pos or 0


def _is(child: lark.Token | Branch, value: str) -> bool:
    return isinstance(child, lark.Token) and child.value == value


class _Reader:
    """Turns one parse tree into a syntax tree."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._depth = 0
        self._rules: dict[str, Callable[[Children], Node]] = {
            "expr": self._conditional,
            "conditionalor": lambda children: self._logic(children, is_and=False),
            "conditionaland": lambda children: self._logic(children, is_and=True),
            "relation": self._binary,
            "addition": self._binary,
            "multiplication": self._binary,
            "unary": self._unary,
            "member_dot": self._select,
            "member_opt": self._select,
            "member_index": self._index,
            "member_opt_index": self._index,
            "member_dot_arg": self._method,
            "member_object": self._message,
            "literal": self._literal,
            "dot_ident": self._ident,
            "ident": self._ident,
            "dot_ident_arg": self._function,
            "ident_arg": self._function,
            "paren_expr": lambda children: self.node(children[1]),
            "list_lit": self._list,
            "map_lit": self._map,
        }

    def node(self, tree: lark.Token | Branch) -> Node:
        """The syntax tree of one branch; rules that only pass on one child are skipped without recursion."""
        while (
            isinstance(tree, lark.Tree)
            and len(tree.children) == 1
            and isinstance(tree.children[0], lark.Tree)
        ):
            tree = tree.children[0]
        assert isinstance(tree, lark.Tree)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise unsupported("so deep a nesting")
        made = self._rules[str(tree.data)](tree.children)
        self._depth -= 1
        return made

    def _name(self, token: lark.Token | Branch) -> str:
        if str(token) in KEYWORDS:
            raise self._fault(_start(token), f"Syntax error: unexpected {str(token)!r}")
        return str(token)

    def _fault(self, at: int, message: str) -> CelCompileError:
        return fault(self.text, at, message)

    def _conditional(self, children: Children) -> Node:
        condition, mark, then, _, otherwise = children
        return syntax.Conditional(self.node(condition), self.node(then), self.node(otherwise), _start(mark))

    def _logic(self, children: Children, *, is_and: bool) -> Node:
        rule = "conditionaland" if is_and else "conditionalor"
        terms: list[Node] = []
        places: list[int] = []
        while len(children) > 1:
            left, sign, right = children
            terms.append(self.node(right))
            places.append(_start(sign))
            while isinstance(left, lark.Tree) and left.data == rule and len(left.children) == 1:
                left = left.children[0]
            if not (isinstance(left, lark.Tree) and left.data == rule):
                terms.append(self.node(left))
                break
            children = left.children
        return syntax.Logic(is_and, tuple(reversed(terms)), tuple(reversed(places)))

    def _binary(self, children: Children) -> Node:
        head, right = children
        assert isinstance(head, lark.Tree)
        left, sign = head.children
        return syntax.Call(_BINARY[str(head.data)], None, (self.node(left), self.node(right)), _start(sign))

    def _unary(self, children: Children) -> Node:
        sign, operand = children
        assert isinstance(sign, lark.Tree)
        name = "!_" if sign.data == "unary_not" else "-_"
        return syntax.Call(name, None, (self.node(operand),), _start(sign.children[0]))

    def _select(self, children: Children) -> Node:
        field = self._name(children[-1]).strip("`")
        return syntax.Select(
            self.node(children[0]), field, _start(children[1]), optional=_is(children[2], "?")
        )

    def _index(self, children: Children) -> Node:
        name = "_[?_]" if _is(children[2], "?") else "_[_]"
        return syntax.Call(name, None, (self.node(children[0]), self.node(children[-2])), _start(children[1]))

    def _arguments(self, children: Children) -> tuple[Branch, ...]:
        lists = [child for child in children if isinstance(child, lark.Tree) and child.data == "exprlist"]
        return tuple(child for child in lists[-1].children if isinstance(child, lark.Tree)) if lists else ()

    def _message(self, _: Children) -> Node:
        raise unsupported("building messages")

    def _literal(self, children: Children) -> Node:
        (token,) = children
        assert isinstance(token, lark.Token)
        try:
            return syntax.Literal(CONSTANTS[token.type](token.value), _start(token))
        except ValueError as error:
            raise self._fault(_start(token), str(error)) from error

    def _ident(self, children: Children) -> Node:
        name = self._name(children[-1])
        if name in RESERVED:
            raise self._fault(_start(children[0]), f"reserved identifier: {name}")
        return syntax.Ident("".join(map(str, children)), _start(children[-1]))

    def _list(self, children: Children) -> Node:
        items, optional = self._inits(children)
        return syntax.ListLiteral(tuple(self.node(item[-1]) for item in items), _start(children[0]), optional)

    def _map(self, children: Children) -> Node:
        items, optional = self._inits(children)
        entries = tuple((self.node(item[-3]), self.node(item[-1])) for item in items)
        return syntax.MapLiteral(entries, _start(children[0]), optional)

    def _inits(self, children: Children) -> tuple[list[Children], frozenset[int]]:
        inner = next((child.children for child in children if isinstance(child, lark.Tree)), [])
        items: list[Children] = [child.children for child in inner if isinstance(child, lark.Tree)]
        return items, frozenset(number for number, item in enumerate(items) if _is(item[0], "?"))

    def _function(self, children: Children) -> Node:
        opening = next(number for number, child in enumerate(children) if _is(child, "("))
        name, at = self._name(children[opening - 1]), _start(children[opening])
        arguments = self._arguments(children)
        if opening != 1:
            return syntax.Call(name, None, tuple(map(self.node, arguments)), at)
        return self._expanded(name, None, arguments, at)

    def _method(self, children: Children) -> Node:
        name, at = self._name(children[2]), _start(children[3])
        arguments = self._arguments(children[3:])
        return self._expanded(name, self.node(children[0]), arguments, at)

    def _expanded(self, name: str, target: Node | None, arguments: tuple[Branch, ...], at: int) -> Node:
        nodes = tuple(map(self.node, arguments))
        expanded = expand(Expansion(name, target, nodes, at, self._fault))
        return expanded or syntax.Call(name, target, nodes, at)
