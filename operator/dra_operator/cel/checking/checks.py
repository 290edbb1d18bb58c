"""The type checker: what upstream refuses to compile is refused here, in its words (alloc L-4).

It follows cel-go's checker: overloads are resolved by unification, `dyn` fits everything, what is wrong fits everything too so that one
fault is told once, and afterwards the validators look at literals. Walks have no depth (`walk.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from dra_operator.cel.parsing import syntax
from dra_operator.cel.parsing.parser import parse
from dra_operator.cel.parsing.source import compile_error, located, unsupported
from dra_operator.cel.parsing.syntax import dotted
from dra_operator.cel.types.kinds import (
    BOOL,
    BYTES,
    DEVICE,
    DOUBLE,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    UINT,
    Bindings,
    Kind,
    list_of,
    map_of,
    optional_of,
    type_of,
)
from dra_operator.cel.types.messages import ALSO, FIELDLESS, MESSAGES, RECORDS
from dra_operator.cel.types.values import UInt
from dra_operator.errors import CelCompileError

from .environment import (
    NULL_VALUE,
    TYPE_IDENTIFIERS,
    Environment,
    type_identifier,
)
from .hints import Hints
from .validators import validate
from .walk import walk

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from dra_operator.cel.functions.registry import Overload
    from dra_operator.cel.parsing.syntax import Node
    from dra_operator.cel.types.messages import Field
    from dra_operator.errors import CelFault

    Scope = Mapping[str, Kind]
    Step = Generator[Any, Any, Kind]

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


def check(text: str, environment: Environment) -> Checked:
    """Parse and check an expression, whatever its result.

    Raises:
        CelCompileError: it does not compile.
        CelUnsupported: it goes beyond our own bounds.
    """
    return _Checker(text, environment).run(parse(text, environment.macros))


def check_selector(text: str, environment: Environment) -> Checked:
    """Parse and check an expression that must give a bool, or what only the device can tell.

    Raises:
        CelCompileError: it does not compile, or its result cannot be a bool.
        CelUnsupported: it goes beyond our own bounds.
    """
    checked = check(text, environment)
    if checked.kind.plain not in {BOOL, environment.attribute}:
        message = f"must evaluate to bool or the unknown type, not {checked.kind}"
        raise CelCompileError(f"{message}{Hints(environment).for_result(checked)}")
    return checked


_NAMED: Final = {
    **{name: message.kind for name, message in MESSAGES.items()},
    "duration": Kind("google.protobuf.Duration"),
    "list": list_of(DYN),
    "map": map_of(DYN, DYN),
    "optional_type": optional_of(DYN),
    "timestamp": Kind("google.protobuf.Timestamp"),
}


_MANY: Final = 4
_AT_THE_TOP: Final = {2: 0, 3: 2, _MANY: _MANY}
"""How many terms of `&&` and `||` are deeper than the others, by their number: cel-go makes balanced trees of two terms each, and forgets
faults that are not at the top. With many terms, all are deep."""


def _named_type(name: str) -> Kind:
    """The type of a type's name."""
    return type_of(_NAMED.get(name) or Kind(name))


_OPEN: Final = frozenset({syntax.Ident, syntax.ListLiteral, syntax.MapLiteral})
"""What keeps type parameters in its type although they stand for something already; what comes later may still make that more general."""


class _Checker:
    """Checks one expression. Rules are steps of a walk; a fault is noted, and the check goes on with a type that fits everything."""

    def __init__(self, text: str, environment: Environment) -> None:
        self._text = text
        self._environment = environment
        self._functions = environment.functions
        self._hints = Hints(environment)
        self._bindings = Bindings()
        self._faults: list[CelFault] = []
        self._kinds: dict[Node, Kind] = {}
        self._calls: dict[syntax.Call | syntax.SortBy, tuple[Overload, ...]] = {}
        self._rules: dict[type, Callable[[Any, Scope], Step | Kind]] = {
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
        walk(self._kind(node, {}))
        if self._faults:
            raise compile_error(self._text, self._faults)
        kinds = {part: self._bindings.resolved(kind) for part, kind in self._kinds.items()}
        checked = Checked(node, kinds, self._calls)
        validate(self._text, checked, self._environment.validators)
        return checked

    def _kind(self, node: Node, scope: Scope) -> Step:
        found: Kind = yield self._rules[type(node)](node, scope)
        kind = self._bindings.substitute(found)
        if kind.is_large:
            raise unsupported("so large a type")
        self._kinds[node] = found
        return found if type(node) in _OPEN else kind

    def _each(self, nodes: Sequence[Node], scope: Scope) -> Generator[Any, Any, list[Kind]]:
        kinds: list[Kind] = []
        for node in nodes:
            kinds.append((yield self._kind(node, scope)))  # noqa: PERF401 -- a comprehension cannot yield
        return kinds

    # faults

    def _wrong(self, at: int, message: str, hint: str = "") -> Kind:
        """Note a fault; the type of what is wrong."""
        self._faults.append(located(self._text, at, message, hint))
        return ERROR

    def _undeclared(self, at: int, name: str, hint: str) -> Kind:
        return self._wrong(at, f"undeclared reference to '{name}' (in container '')", hint)

    def _no_overload(self, at: int, name: str, kinds: Sequence[Kind], *, method: bool = False) -> Kind:
        known = [self._bindings.resolved(kind) for kind in kinds]
        shown = [kind.shown for kind in known]
        applied = f"{shown[0]}.({', '.join(shown[1:])})" if method else f"({', '.join(shown)})"
        message = f"found no matching overload for '{name}' applied to '{applied}'"
        return self._wrong(at, message, self._hints.for_overload(name, known))

    def _mismatch(self, node: Node, wanted: str, kind: Kind) -> Kind:
        return self._wrong(syntax.place(node), f"expected type '{wanted}' but found '{kind.shown}'")

    # names and fields

    def _literal(self, node: syntax.Literal, _: Scope) -> Kind:
        return _LITERALS[type(node.value)]

    def _ident(self, node: syntax.Ident, scope: Scope) -> Kind:
        if node.name in scope and not node.name.startswith("."):
            return scope[node.name]
        name = node.name.removeprefix(".")
        if name == "device":
            return DEVICE
        type_name = type_identifier(node, scope)
        if type_name:
            return _named_type(type_name)
        return self._undeclared(node.at, node.name, self._hints.for_name(name, scope))

    def _select(self, node: syntax.Select, scope: Scope) -> Step:
        if dotted(node) == NULL_VALUE:
            return INT
        type_name = type_identifier(node, scope)
        if type_name:
            return _named_type(type_name)
        kind = self._bindings.substitute((yield self._kind(node.operand, scope)))
        is_optional = kind.name == "optional_type"
        result = self._field(kind.params[0] if is_optional else kind, node.field, node.at)
        return optional_of(result) if is_optional or node.optional else result

    def _field(self, kind: Kind, field: str, at: int) -> Kind:
        if kind == DEVICE:
            if field not in self._environment.fields:
                return self._wrong(at, f"undefined field '{field}'", self._hints.for_field(field))
            return self._environment.fields[field]
        if kind.name == "map":
            return kind.params[1]
        if kind.name in RECORDS:
            return self._record_field(RECORDS[kind.name], field, at)
        if kind.is_param:
            self._bindings.accepts((kind,), (DYN,))
        elif not kind.is_dyn and kind != ERROR:
            message = f"type '{kind.shown}' does not support field selection"
            if kind.name.startswith("kubernetes."):
                message = f"unexpected failed resolution of '{kind.shown}'"  # object types; net.IP is none
            self._wrong(at, message, self._hints.for_selection(kind))
        return DYN

    def _has(self, node: syntax.Has, scope: Scope) -> Step:
        kind = self._bindings.substitute((yield self._kind(node.operand, scope)))
        self._field(kind.params[0] if kind.name == "optional_type" else kind, node.field, node.at)
        return BOOL

    def _message(self, node: syntax.Message, scope: Scope) -> Step:
        name = node.name.removeprefix(".")
        kind = self._built(node, name)
        if kind is None:
            return self._undeclared(node.at, node.name, "")
        for number, value in enumerate(node.values):
            given: Kind = yield self._kind(value, scope)
            given = self._item(given, value) if number in node.optional else given
            self._initialised(name, node.fields[number], given)
        return kind

    def _initialised(self, message: str, field: tuple[str, int], given: Kind) -> None:
        """Whether a field takes what it is given."""
        name, at = field
        wanted = self._message_field(message, name, at)
        if not self._bindings.accepts((given,), (wanted,)):
            known = [self._bindings.resolved(kind).shown for kind in (wanted, given)]
            text = f"expected type of field '{name}' is '{known[0]}' but provided type is '{known[1]}'"
            self._wrong(at, text)

    def _built(self, node: syntax.Message, name: str) -> Kind | None:
        """The type of a message; none where nothing is called so."""
        found = MESSAGES.get(ALSO.get(name, name))
        if found is not None:
            return found.kind
        if name in ALSO:
            return NULL
        if name == DEVICE.name:
            return DEVICE
        return self._wrong(node.at, f"'{name}' is not a message type") if name in TYPE_IDENTIFIERS else None

    def _message_field(self, name: str, field: str, at: int) -> Kind:
        if name == DEVICE.name:
            return self._field(DEVICE, field, at)
        message = ALSO.get(name, name)
        if message in MESSAGES:
            return self._record_field(MESSAGES[message].fields, field, at)
        if name == "map":
            return DYN  # its fields are not declared; that it is no message is told
        if name in FIELDLESS:
            return self._wrong(at, f"undefined field '{field}'")
        return self._wrong(at, f"unexpected failed resolution of '{message}'")

    def _record_field(self, fields: Mapping[str, Field], field: str, at: int) -> Kind:
        return fields[field].kind if field in fields else self._wrong(at, f"undefined field '{field}'")

    # calls

    def _call(self, node: syntax.Call, scope: Scope) -> Step:
        qualified = self._qualified(node)
        name, target = (qualified, None) if qualified else (node.function.removeprefix("."), node.target)
        kinds: list[Kind] = yield self._each(node.args if target is None else (target, *node.args), scope)
        if not self._functions.knows(name):
            return self._undeclared(node.at, node.function, self._hints.for_function(node, kinds))
        result, self._calls[node] = self._match(self._functions.of(name, method=target is not None), kinds)
        if result is None:
            return self._no_overload(node.at, name, kinds, method=target is not None)
        return result

    def _qualified(self, node: syntax.Call) -> str:
        """The full name of a function in a namespace, such as `optional.of`; a variable of the namespace's name does not hide it."""
        if not isinstance(node.target, syntax.Ident):
            return ""
        name = f"{node.target.name.removeprefix('.')}.{node.function}"
        return name if self._functions.knows(name) else ""

    def _match(
        self, overloads: tuple[Overload, ...], kinds: Sequence[Kind]
    ) -> tuple[Kind | None, tuple[Overload, ...]]:
        """All overloads that fit and their result: `dyn` when they disagree."""
        result: Kind | None = None
        fitting: list[Overload] = []
        for overload in overloads:
            if not overload.declared:
                continue
            *params, declared = self._bindings.rename((*overload.params, overload.result))
            if not self._bindings.accepts(tuple(params), tuple(kinds)):
                continue
            fitting.append(overload)
            found = self._bindings.substitute(declared)
            if result is None:
                result = found
            elif result.plain != found.plain:
                result = DYN
        return result, tuple(fitting)

    # logic and macros

    def _bool(self, node: Node, scope: Scope) -> Step:
        kind: Kind = yield self._kind(node, scope)
        if not self._bindings.accepts((BOOL,), (kind,)):
            return self._mismatch(node, "bool", kind)
        return BOOL

    def _logic(self, node: syntax.Logic, scope: Scope) -> Step:
        kinds: list[Kind] = []
        for term in node.terms:
            kinds.append((yield self._bool(term, scope)))  # noqa: PERF401 -- a comprehension cannot yield
        return ERROR if ERROR in kinds[_AT_THE_TOP[min(len(kinds), _MANY)] :] else BOOL

    def _conditional(self, node: syntax.Conditional, scope: Scope) -> Step:
        kinds: list[Kind] = yield self._each((node.condition, node.then, node.otherwise), scope)
        return self._choice(kinds, node.at)

    def _choice(self, kinds: Sequence[Kind], at: int) -> Kind:
        params = self._bindings.rename((BOOL, Kind("A"), Kind("A")))
        if not self._bindings.accepts(params, tuple(kinds)):
            return self._no_overload(at, "_?_:_", kinds)
        return self._bindings.substitute(params[1])

    def _list(self, node: syntax.ListLiteral, scope: Scope) -> Step:
        kinds: list[Kind] = []
        for number, item in enumerate(node.items):
            kind: Kind = yield self._kind(item, scope)
            kinds.append(self._item(kind, item) if number in node.optional else kind)
        return list_of(self._joined(kinds))

    def _item(self, kind: Kind, node: Node) -> Kind:
        """What an optional element or entry adds."""
        if kind.name == "optional_type":
            return kind.params[0]
        if not kind.is_dyn:
            self._mismatch(node, f"optional_type({kind.shown})", kind)
        return kind

    def _joined(self, kinds: list[Kind]) -> Kind:
        joined: Kind | None = None
        for kind in kinds:
            joined = self._bindings.join(joined, kind)
        return joined or self._bindings.rename((Kind("E"),))[0]

    def _map(self, node: syntax.MapLiteral, scope: Scope) -> Step:
        keys: list[Kind] = []
        values: list[Kind] = []
        for number, (key, value) in enumerate(node.entries):
            keys.append((yield self._kind(key, scope)))
            kind: Kind = yield self._kind(value, scope)
            values.append(self._item(kind, value) if number in node.optional else kind)
        return map_of(self._joined(keys), self._joined(values))

    def _fold(self, node: syntax.Fold, scope: Scope) -> Step:
        kind = self._bindings.substitute((yield self._kind(node.range, scope)))
        first, second = (
            self._pair(kind, node.range) if node.second else (self._element(kind, node.range), DYN)
        )
        inner = {**scope, node.variable: first, **({node.second: second} if node.second else {})}
        if node.macro in {"all", "exists"}:
            yield self._bool(node.body, inner)
            return BOOL
        if node.macro == "exists_one":
            body: Kind = yield self._kind(node.body, inner)
            self._choice((body, INT, INT), node.at)
            return BOOL
        result: Kind = yield self._gathered(node, inner)
        return result

    def _gathered(self, node: syntax.Fold, inner: Scope) -> Step:
        """The list or map that a macro gathers. Its predicate is the condition of a choice in cel-go, and complained about as such."""
        where = node.body if node.macro == "filter" else node.where
        chosen: Kind | None = None
        if where is not None:
            chosen = yield self._kind(where, inner)
        one: Kind = inner[node.variable]
        if node.macro != "filter":
            one = yield self._kind(node.body, inner)
        is_map = node.macro in {"transformMap", "transformMapEntry"}
        gathered, step = self._map_step(node, inner, one) if is_map else self._list_step(one)
        if chosen is not None:
            self._choice((chosen, step, gathered), node.at)
        return self._bindings.substitute(gathered)

    def _list_step(self, one: Kind) -> tuple[Kind, Kind]:
        """The types of what is gathered so far and of what it becomes with one more."""
        (gathered,) = self._bindings.rename((list_of(Kind("E")),))
        (wanted,) = self._bindings.rename((list_of(Kind("A")),))
        self._bindings.accepts((wanted, wanted), (gathered, list_of(one)))
        return gathered, self._bindings.substitute(wanted)

    def _map_step(self, node: syntax.Fold, inner: Scope, body: Kind) -> tuple[Kind, Kind]:
        (gathered,) = self._bindings.rename((map_of(Kind("K"), Kind("V")),))
        wanted, key, value = self._bindings.rename((map_of(Kind("K"), Kind("V")), Kind("K"), Kind("V")))
        is_entry = node.macro == "transformMapEntry"
        params = (wanted, wanted) if is_entry else (wanted, key, value)
        kinds = (gathered, body) if is_entry else (gathered, inner[node.variable], body)
        if not self._bindings.accepts(params, kinds):
            return gathered, self._no_overload(node.at, "cel.@mapInsert", kinds)
        return gathered, self._bindings.substitute(wanted)

    def _pair(self, kind: Kind, range_: Node) -> tuple[Kind, Kind]:
        """Index and element, or key and value."""
        if kind.name == "map":
            return kind.params[0], kind.params[1]
        element = self._element(kind, range_)
        return INT if kind.name == "list" else element, element

    def _sort_by(self, node: syntax.SortBy, scope: Scope) -> Step:
        kind = self._bindings.substitute((yield self._kind(node.range, scope)))
        key: Kind = yield self._kind(node.key, {**scope, node.variable: self._element(kind, node)})
        kinds = (kind, list_of(key))
        overloads = self._functions.of("@sortByAssociatedKeys", method=True)
        result, self._calls[node] = self._match(overloads, kinds)
        if result is None:
            return self._no_overload(node.at, "@sortByAssociatedKeys", kinds, method=True)
        return result

    def _element(self, kind: Kind, range_: Node) -> Kind:
        if kind.name in {"list", "map"}:
            return kind.params[0]
        if kind in {DYN, ERROR} or kind.is_param:
            self._bindings.accepts((kind,), (DYN,))
            return DYN
        message = f"expression of type '{kind.shown}' cannot be range of a comprehension (must be list, map, or dynamic)"
        return self._wrong(syntax.place(range_), message, self._hints.for_range(kind))

    def _bind(self, node: syntax.Bind, scope: Scope) -> Step:
        value: Kind = yield self._kind(node.value, scope)
        body: Kind = yield self._kind(node.body, {**scope, node.variable: value})
        return body

    def _optional_map(self, node: syntax.OptionalMap, scope: Scope) -> Step:
        """In cel-go the operand is asked twice, for whether it has a value and for the value, so that its faults are told twice."""
        before = len(self._faults)
        kind: Kind = yield self._kind(node.operand, scope)
        self._faults += self._faults[before:]
        wanted, inner = self._bindings.rename((optional_of(Kind("A")), Kind("A")))
        if not self._bindings.accepts((wanted,), (kind,)):
            self._no_overload(node.at, "hasValue", (kind,), method=True)
            inner = self._no_overload(node.at, "value", (kind,), method=True)
        body: Kind = yield self._kind(node.body, {**scope, node.variable: self._bindings.substitute(inner)})
        if not node.flat:
            return optional_of(body)
        return self._choice((BOOL, body, *self._bindings.rename((optional_of(Kind("A")),))), node.at)
