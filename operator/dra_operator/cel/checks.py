"""The type checker: what upstream refuses to compile is refused here, in its words (alloc L-4).

It follows cel-go's checker: overloads are resolved by unification, `dyn` fits everything, and afterwards the validators look at literals.
Only the first fault is reported.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from dra_operator.errors import CelCompileError

from . import syntax
from .environment import (
    NAMESPACES_NOT_BUILT,
    NOT_BUILT,
    NULL_VALUE,
    TYPE_IDENTIFIERS,
    Environment,
    type_identifier,
)
from .kinds import (
    BOOL,
    BYTES,
    DEVICE,
    DOUBLE,
    DYN,
    INT,
    MAX_SIZE,
    NULL,
    STRING,
    TYPE,
    UINT,
    Bindings,
    Kind,
    list_of,
    map_of,
    optional_of,
)
from .parser import fault, unsupported
from .syntax import dotted
from .validators import validate
from .values import UInt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .registry import Overload
    from .syntax import Node

    Scope = Mapping[str, Kind]

_LITERALS: Final[dict[type, Kind]] = {
    bool: BOOL,
    int: INT,
    UInt: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    type(None): NULL,
}


@dataclass(frozen=True, slots=True)
class Checked:
    """An expression and what the checker found out about it, by node: nodes are told apart by identity.

    Attributes:
        node: the expression.
        kinds: the type of each node, type parameters resolved; what stays open is `dyn`. The target of a function in a namespace
            (`optional` in `optional.of(x)`) has none: it is no value.
        calls: for each `Call`, and each sort of a `SortBy`, the overloads that fit its arguments, in upstream's order: more than one
            when a type is known only at run time. Their `name` is the full one (`optional.of`), and `method` says whether the target is an argument.
    """

    node: Node
    kinds: dict[Node, Kind] = field(default_factory=dict)
    calls: dict[syntax.Call | syntax.SortBy, tuple[Overload, ...]] = field(default_factory=dict)

    @property
    def kind(self) -> Kind:
        """The type of the result."""
        return self.kinds[self.node]


def check(text: str, node: Node, environment: Environment) -> Checked:
    """Check an expression, whatever its result.

    Raises:
        CelCompileError: it does not compile.
        CelUnsupported: it uses what this engine does not have.
    """
    return _Checker(text, environment).run(node)


def check_selector(text: str, node: Node, environment: Environment) -> Checked:
    """Check an expression that must give a bool, or what only the device can tell.

    Raises:
        CelCompileError: it does not compile, or its result cannot be a bool.
        CelUnsupported: it uses what this engine does not have.
    """
    checked = check(text, node, environment)
    if checked.kind not in {BOOL, environment.attribute}:
        raise CelCompileError(f"must evaluate to bool or the unknown type, not {checked.kind}")
    return checked


class _Checker:
    """Checks one expression."""

    def __init__(self, text: str, environment: Environment) -> None:
        self._text = text
        self._environment = environment
        self._functions = environment.functions
        self._bindings = Bindings()
        self._kinds: dict[Node, Kind] = {}
        self._calls: dict[syntax.Call | syntax.SortBy, tuple[Overload, ...]] = {}
        self._rules: dict[type, Callable[[Any, Scope], Kind]] = {
            syntax.Literal: self._literal,
            syntax.Ident: self._ident,
            syntax.Select: self._select,
            syntax.Has: self._has,
            syntax.Call: self._call,
            syntax.Logic: self._logic,
            syntax.Conditional: self._conditional,
            syntax.ListLiteral: self._list,
            syntax.MapLiteral: self._map,
            syntax.Fold: self._fold,
            syntax.SortBy: self._sort_by,
            syntax.Bind: self._bind,
            syntax.OptionalMap: self._optional_map,
            syntax.Message: self._message,
        }

    def run(self, node: Node) -> Checked:
        self._kind(node, {})
        kinds = {part: self._bindings.resolved(kind) for part, kind in self._kinds.items()}
        checked = Checked(node, kinds, self._calls)
        validate(self._text, checked, self._environment.validators)
        return checked

    def _fault(self, at: int, message: str) -> CelCompileError:
        return fault(self._text, at, message)

    def _no_overload(
        self, at: int, name: str, kinds: tuple[Kind, ...], *, method: bool = False
    ) -> CelCompileError:
        shown = [self._bindings.substitute(kind, to_dyn=True).shown for kind in kinds]
        applied = f"{shown[0]}.({', '.join(shown[1:])})" if method else f"({', '.join(shown)})"
        return self._fault(at, f"found no matching overload for '{name}' applied to '{applied}'")

    def _kind(self, node: Node, scope: Scope) -> Kind:
        kind = self._bindings.substitute(self._rules[type(node)](node, scope))
        if kind.size(MAX_SIZE + 1) > MAX_SIZE:
            raise unsupported("so large a type")
        self._kinds[node] = kind
        return kind

    def _undeclared(self, at: int, name: str) -> CelCompileError:
        return self._fault(at, f"undeclared reference to '{name}' (in container '')")

    # names and fields

    def _literal(self, node: syntax.Literal, _: Scope) -> Kind:
        return _LITERALS[type(node.value)]

    def _ident(self, node: syntax.Ident, scope: Scope) -> Kind:
        if node.name in scope and not node.name.startswith("."):
            return scope[node.name]
        name = node.name.removeprefix(".")
        if name == "device":
            return DEVICE
        if type_identifier(node, scope):
            return TYPE
        if name in NAMESPACES_NOT_BUILT:
            raise unsupported(f"the name {node.name}")
        raise self._undeclared(node.at, node.name)

    def _select(self, node: syntax.Select, scope: Scope) -> Kind:
        if dotted(node) == NULL_VALUE:
            return INT
        if type_identifier(node, scope):
            return TYPE
        kind = self._kind(node.operand, scope)
        is_optional = kind.name == "optional_type"
        result = self._field(kind.params[0] if is_optional else kind, node.field, node.at)
        return optional_of(result) if is_optional or node.optional else result

    def _field(self, kind: Kind, field: str, at: int) -> Kind:
        if kind == DEVICE:
            if field not in self._environment.fields:
                raise self._fault(at, f"undefined field '{field}'")
            return self._environment.fields[field]
        if kind.name == "map":
            return kind.params[1]
        if kind.is_dyn or kind.is_param:
            self._bindings.accepts((kind,), (DYN,))
            return DYN
        raise self._fault(at, f"type '{kind.shown}' does not support field selection")

    def _has(self, node: syntax.Has, scope: Scope) -> Kind:
        kind = self._kind(node.operand, scope)
        self._field(kind.params[0] if kind.name == "optional_type" else kind, node.field, node.at)
        return BOOL

    def _message(self, node: syntax.Message, _: Scope) -> Kind:
        """Messages cannot be built, but for those of protocol buffers' own types, which nobody wants in a selector."""
        name = node.name.removeprefix(".")
        if name in TYPE_IDENTIFIERS:
            raise self._fault(node.at, f"'{name}' is not a message type")
        if name.startswith(("google.protobuf.", "kubernetes.")):
            raise unsupported("building messages")
        raise self._undeclared(node.at, node.name)

    # calls

    def _call(self, node: syntax.Call, scope: Scope) -> Kind:
        qualified = self._qualified(node)
        if qualified:
            return self._resolve(qualified, node, None, node.args, scope)
        name = node.function.removeprefix(".")
        if not self._functions.knows(name):
            self._unknown(node, scope)
        return self._resolve(name, node, node.target, node.args, scope)

    def _qualified(self, node: syntax.Call) -> str:
        """The full name of a function in a namespace, such as `optional.of`; a variable of the namespace's name does not hide it."""
        if not isinstance(node.target, syntax.Ident):
            return ""
        name = f"{node.target.name.removeprefix('.')}.{node.function}"
        return name if self._functions.knows(name) else ""

    def _unknown(self, node: syntax.Call, scope: Scope) -> None:
        if node.target is not None:
            self._kind(node.target, scope)
        if node.function in NOT_BUILT:
            raise unsupported(f"the function {node.function}()")
        raise self._undeclared(node.at, node.function)

    def _resolve(
        self, name: str, node: syntax.Call, target: Node | None, args: tuple[Node, ...], scope: Scope
    ) -> Kind:
        nodes = args if target is None else (target, *args)
        kinds = tuple(self._kind(argument, scope) for argument in nodes)
        overloads = self._functions.of(name, method=target is not None)
        result, self._calls[node] = self._match(overloads, kinds)
        if result is None:
            if name in NOT_BUILT:
                raise unsupported(f"the function {name}()")
            raise self._no_overload(node.at, name, kinds, method=target is not None)
        return result

    def _match(
        self, overloads: tuple[Overload, ...], kinds: tuple[Kind, ...]
    ) -> tuple[Kind | None, tuple[Overload, ...]]:
        """All overloads that fit and their result: `dyn` when they disagree."""
        result: Kind | None = None
        fitting: list[Overload] = []
        for overload in overloads:
            *params, declared = self._bindings.rename((*overload.params, overload.result))
            if not self._bindings.accepts(tuple(params), kinds):
                continue
            fitting.append(overload)
            found = self._bindings.substitute(declared)
            result = found if result is None or result == found else DYN
        return result, tuple(fitting)

    # logic and macros

    def _bool(self, node: Node, scope: Scope) -> None:
        kind = self._kind(node, scope)
        if not self._bindings.accepts((BOOL,), (kind,)):
            raise self._fault(syntax.place(node), f"expected type 'bool' but found '{kind.shown}'")

    def _logic(self, node: syntax.Logic, scope: Scope) -> Kind:
        for term in node.terms:
            self._bool(term, scope)
        return BOOL

    def _conditional(self, node: syntax.Conditional, scope: Scope) -> Kind:
        kinds = tuple(self._kind(part, scope) for part in (node.condition, node.then, node.otherwise))
        return self._choice(kinds, node.at)

    def _choice(self, kinds: tuple[Kind, ...], at: int) -> Kind:
        params = self._bindings.rename((BOOL, Kind("A"), Kind("A")))
        if not self._bindings.accepts(params, kinds):
            raise self._no_overload(at, "_?_:_", kinds)
        return self._bindings.substitute(params[1])

    def _list(self, node: syntax.ListLiteral, scope: Scope) -> Kind:
        kinds = [
            self._item(self._kind(item, scope), item, is_optional=number in node.optional)
            for number, item in enumerate(node.items)
        ]
        return list_of(self._joined(kinds))

    def _item(self, kind: Kind, node: Node, *, is_optional: bool) -> Kind:
        if not is_optional or kind.is_dyn:
            return kind
        if kind.name != "optional_type":
            raise self._fault(
                syntax.place(node),
                f"expected type 'optional_type({kind.shown})' but found '{kind.shown}'",
            )
        return kind.params[0]

    def _joined(self, kinds: list[Kind]) -> Kind:
        joined: Kind | None = None
        for kind in kinds:
            joined = self._bindings.join(joined, kind)
        return joined or self._bindings.rename((Kind("E"),))[0]

    def _map(self, node: syntax.MapLiteral, scope: Scope) -> Kind:
        keys = [self._kind(key, scope) for key, _ in node.entries]
        values = [
            self._item(self._kind(value, scope), value, is_optional=number in node.optional)
            for number, (_, value) in enumerate(node.entries)
        ]
        return map_of(self._joined(keys), self._joined(values))

    def _fold(self, node: syntax.Fold, scope: Scope) -> Kind:
        first, second = self._loop_kinds(node)(self._kind(node.range, scope), node.range)
        inner = {**scope, node.variable: first, **({node.second: second} if node.second else {})}
        if node.macro in {"all", "exists"}:
            self._bool(node.body, inner)
            return BOOL
        if node.macro == "exists_one":
            self._choice((self._kind(node.body, inner), INT, INT), node.at)
            return BOOL
        return self._gathered(node, inner)

    def _gathered(self, node: syntax.Fold, inner: Scope) -> Kind:
        """The list or map that a macro gathers. Its predicate is the condition of a choice in cel-go, and complained about as such."""
        where = node.body if node.macro == "filter" else node.where
        chosen = self._kind(where, inner) if where is not None else None
        gathered, step = self._step(node, inner)
        if chosen is not None:
            self._choice((chosen, step, gathered), node.at)
        return self._bindings.substitute(gathered)

    def _step(self, node: syntax.Fold, inner: Scope) -> tuple[Kind, Kind]:
        """The types of what is gathered so far and of what it becomes with one more."""
        if node.macro in {"transformMap", "transformMapEntry"}:
            return self._map_step(node, inner)
        one = inner[node.variable] if node.macro == "filter" else self._kind(node.body, inner)
        (gathered,) = self._bindings.rename((list_of(Kind("E")),))
        (wanted,) = self._bindings.rename((list_of(Kind("A")),))
        self._bindings.accepts((wanted, wanted), (gathered, list_of(one)))
        return gathered, self._bindings.substitute(wanted)

    def _map_step(self, node: syntax.Fold, inner: Scope) -> tuple[Kind, Kind]:
        body = self._kind(node.body, inner)
        (gathered,) = self._bindings.rename((map_of(Kind("K"), Kind("V")),))
        wanted, key, value = self._bindings.rename((map_of(Kind("K"), Kind("V")), Kind("K"), Kind("V")))
        is_entry = node.macro == "transformMapEntry"
        params = (wanted, wanted) if is_entry else (wanted, key, value)
        kinds = (gathered, body) if is_entry else (gathered, inner[node.variable], body)
        if not self._bindings.accepts(params, kinds):
            raise self._no_overload(node.at, "cel.@mapInsert", kinds)
        return gathered, self._bindings.substitute(wanted)

    def _loop_kinds(self, node: syntax.Fold) -> Callable[[Kind, Node], tuple[Kind, Kind]]:
        return self._pair if node.second else lambda kind, range_: (self._element(kind, range_), DYN)

    def _pair(self, kind: Kind, range_: Node) -> tuple[Kind, Kind]:
        """Index and element, or key and value."""
        if kind.name == "map":
            return kind.params[0], kind.params[1]
        element = self._element(kind, range_)
        return INT if kind.name == "list" else DYN, element

    def _sort_by(self, node: syntax.SortBy, scope: Scope) -> Kind:
        kind = self._kind(node.range, scope)
        key = self._kind(node.key, {**scope, node.variable: self._element(kind, node)})
        kinds = (kind, list_of(key))
        result, self._calls[node] = self._match(
            self._functions.of("@sortByAssociatedKeys", method=True), kinds
        )
        if result is None:
            raise self._no_overload(node.at, "@sortByAssociatedKeys", kinds, method=True)
        return result

    def _element(self, kind: Kind, range_: Node) -> Kind:
        if kind.name in {"list", "map"}:
            return kind.params[0]
        if kind == DYN or kind.is_param:
            self._bindings.accepts((kind,), (DYN,))
            return DYN
        raise self._fault(
            syntax.place(range_),
            f"expression of type '{kind.shown}' cannot be range of a comprehension (must be list, map, or dynamic)",
        )

    def _bind(self, node: syntax.Bind, scope: Scope) -> Kind:
        return self._kind(node.body, {**scope, node.variable: self._kind(node.value, scope)})

    def _optional_map(self, node: syntax.OptionalMap, scope: Scope) -> Kind:
        kind = self._kind(node.operand, scope)
        wanted, inner = self._bindings.rename((optional_of(Kind("A")), Kind("A")))
        if not self._bindings.accepts((wanted,), (kind,)):
            raise self._no_overload(node.at, "hasValue", (kind,), method=True)
        body = self._kind(node.body, {**scope, node.variable: self._bindings.substitute(inner)})
        if not node.flat:
            return optional_of(body)
        return self._choice((BOOL, body, *self._bindings.rename((optional_of(Kind("A")),))), node.at)
