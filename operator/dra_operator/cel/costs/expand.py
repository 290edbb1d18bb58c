"""The expression as cel-go sees it: macros written out as calls and loops. Upstream's costs are about this tree, not about what was written.

Made from a checked syntax tree, for the estimate and for evaluations that are counted. The evaluator that answers without counting
does not need it. No expression is evaluated here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dra_operator.cel.parsing import syntax
from dra_operator.cel.types.kinds import BOOL, DYN, INT, STRING, Kind, list_of, optional_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from dra_operator.cel.checking.checks import Checked

ACCUMULATOR: Final = "@result"
"""The name of what a macro gathers in; no expression can use it."""

ACCUMULATORS: Final = frozenset({ACCUMULATOR, "__result__"})
"""The names that cel-go has had for it."""

UNUSED: Final = "#unused"
"""The name of the element in the loop over nothing that `cel.bind` is."""

_SORTED: Final = "@__sortBy_input__"
"""The name of the list that `sortBy` sorts."""

Params: TypeAlias = tuple[Kind, ...]


@dataclass(eq=False, slots=True)
class Constant:
    """A literal."""

    value: object
    kind: Kind


@dataclass(eq=False, slots=True)
class Name:
    """A variable, or the name of a type."""

    name: str
    kind: Kind
    is_type: bool = False


@dataclass(eq=False, slots=True)
class Field:
    """`operand.field`; with `test` only whether it is there."""

    operand: Expanded
    field: str
    kind: Kind
    test: bool = False


@dataclass(eq=False, slots=True)
class Invocation:
    """A call: of a function, a method (with target), an operator, `&&`, `||` or `? :`.

    Attributes:
        params: the parameters of each overload that fits.
    """

    function: str
    target: Expanded | None
    args: tuple[Expanded, ...]
    params: tuple[Params, ...]
    kind: Kind


@dataclass(eq=False, slots=True)
class Items:
    """A list literal."""

    items: tuple[Expanded, ...]
    kind: Kind
    optional: frozenset[int] = frozenset()


@dataclass(eq=False, slots=True)
class Entries:
    """A map literal."""

    entries: tuple[tuple[Expanded, Expanded], ...]
    kind: Kind
    optional: frozenset[int] = frozenset()


@dataclass(eq=False, slots=True)
class Message:
    """A message of protocol buffers, with the names of its fields."""

    name: str
    fields: tuple[str, ...]
    values: tuple[Expanded, ...]
    kind: Kind
    optional: frozenset[int] = frozenset()


@dataclass(eq=False, slots=True)
class Loop:
    """A comprehension: while the condition holds, the step makes a new accumulator of each element."""

    range: Expanded
    variables: tuple[str, ...]
    accumulator: str
    start: Expanded
    condition: Expanded
    step: Expanded
    result: Expanded
    kind: Kind

    @property
    def is_bind(self) -> bool:
        """Whether it only names a value. With the accumulator's former name, upstream's estimate takes it for a loop."""
        return (
            isinstance(self.condition, Constant)
            and self.condition.value is False
            and self.accumulator not in ACCUMULATORS
        )


Expanded: TypeAlias = Constant | Name | Field | Invocation | Items | Entries | Message | Loop

_NOTHING: Final = list_of(DYN)


def parts(node: Expanded) -> list[Expanded]:
    """The nodes directly below a node."""
    if isinstance(node, Field):
        return [node.operand]
    if isinstance(node, Invocation):
        return [*node.args] if node.target is None else [node.target, *node.args]
    if isinstance(node, Items):
        return [*node.items]
    if isinstance(node, Entries):
        return [part for entry in node.entries for part in entry]
    if isinstance(node, Message):
        return [*node.values]
    if isinstance(node, Loop):
        return [node.range, node.start, node.condition, node.step, node.result]
    return []


def _invocation(function: str, kind: Kind, params: Params, *args: Expanded) -> Invocation:
    return Invocation(function, None, args, (params,), kind)


def _appended(so_far: Name, element: Expanded) -> Invocation:
    """A list with one element more."""
    kind = so_far.kind
    return _invocation("_+_", kind, (kind, kind), so_far, Items((element,), kind))


def expand(checked: Checked) -> Expanded:
    """The tree with all macros written out. What a macro of upstream's writes twice is one node here, found in two places."""
    return _Expander(checked).expand(checked.node)


def expand_with_origins(checked: Checked) -> tuple[Expanded, dict[Expanded, syntax.Node]]:
    """The tree, and what its nodes were made of; those that macros add were made of nothing."""
    origins: dict[Expanded, syntax.Node] = {}
    return _Expander(checked, origins).expand(checked.node), origins


class _Expander:
    """Writes out one expression."""

    def __init__(self, checked: Checked, origins: dict[Expanded, syntax.Node] | None = None) -> None:
        self._origins = origins
        self._kinds = checked.kinds
        self._calls = checked.calls
        self._rules: dict[type, Callable[[Any], Expanded]] = {
            syntax.Literal: lambda node: Constant(node.value, self._kinds[node]),
            syntax.Ident: self._ident,
            syntax.Select: self._select,
            syntax.Has: lambda node: Field(self.expand(node.operand), node.field, BOOL, test=True),
            syntax.Call: self._call,
            syntax.Logic: self._logic,
            syntax.Conditional: self._conditional,
            syntax.ListLiteral: self._list,
            syntax.MapLiteral: self._map,
            syntax.Message: self._message,
            syntax.Fold: self._fold,
            syntax.SortBy: self._sort_by,
            syntax.Bind: self._bind,
            syntax.OptionalMap: self._optional_map,
        }

    def expand(self, node: syntax.Node) -> Expanded:
        found = self._rules[type(node)](node)
        if self._origins is not None:
            self._origins.setdefault(found, node)
        return found

    def _ident(self, node: syntax.Ident) -> Expanded:
        return self._named(node.name, self._kinds[node])

    def _named(self, name: str, kind: Kind) -> Name:
        return Name(name.removeprefix("."), kind, is_type=kind.name == "type")

    def _select(self, node: syntax.Select) -> Expanded:
        if node.operand not in self._kinds:
            return self._named(syntax.dotted(node), self._kinds[node])
        operand, kind = self.expand(node.operand), self._kinds[node]
        if not node.optional:
            return Field(operand, node.field, kind)
        return _invocation("_?._", kind, (DYN, STRING), operand, Constant(node.field, STRING))

    def _call(self, node: syntax.Call) -> Expanded:
        overloads = self._calls[node]
        first = overloads[0]
        args = tuple(self.expand(argument) for argument in node.args)
        target = self.expand(node.target) if first.method and node.target is not None else None
        params = tuple(overload.params for overload in overloads)
        return Invocation(first.name, target, args, params, self._kinds[node])

    def _logic(self, node: syntax.Logic) -> Expanded:
        terms = [self.expand(term) for term in node.terms]
        return _balanced("_&&_" if node.is_and else "_||_", terms)

    def _conditional(self, node: syntax.Conditional) -> Expanded:
        return self._choice(
            self._kinds[node],
            self.expand(node.condition),
            self.expand(node.then),
            self.expand(node.otherwise),
        )

    def _choice(self, kind: Kind, condition: Expanded, then: Expanded, otherwise: Expanded) -> Expanded:
        return _invocation("_?_:_", kind, (BOOL, kind, kind), condition, then, otherwise)

    def _list(self, node: syntax.ListLiteral) -> Expanded:
        return Items(tuple(self.expand(item) for item in node.items), self._kinds[node], node.optional)

    def _map(self, node: syntax.MapLiteral) -> Expanded:
        entries = tuple((self.expand(key), self.expand(value)) for key, value in node.entries)
        return Entries(entries, self._kinds[node], node.optional)

    def _message(self, node: syntax.Message) -> Expanded:
        values = tuple(self.expand(value) for value in node.values)
        fields = tuple(name for name, _ in node.fields)
        return Message(node.name.removeprefix("."), fields, values, self._kinds[node], node.optional)

    def _fold(self, node: syntax.Fold) -> Expanded:
        if node.macro in {"all", "exists"}:
            return self._quantifier(node)
        if node.macro == "exists_one":
            return self._exactly_one(node)
        return self._gathering(node)

    def _loop(self, node: syntax.Fold, start: Expanded, step: Expanded) -> Loop:
        return Loop(
            self.expand(node.range),
            (node.variable, node.second) if node.second else (node.variable,),
            ACCUMULATOR,
            start=start,
            condition=Constant(True, BOOL),
            step=step,
            result=Name(ACCUMULATOR, start.kind),
            kind=start.kind,
        )

    def _quantifier(self, node: syntax.Fold) -> Expanded:
        is_all = node.macro == "all"
        so_far: Expanded = Name(ACCUMULATOR, BOOL)
        more = "_&&_" if is_all else "_||_"
        step = _invocation(more, BOOL, (BOOL, BOOL), Name(ACCUMULATOR, BOOL), self.expand(node.body))
        loop = self._loop(node, Constant(is_all, BOOL), step)
        if not is_all:
            so_far = _invocation("!_", BOOL, (BOOL,), so_far)
        loop.condition = _invocation("@not_strictly_false", BOOL, (BOOL,), so_far)
        return loop

    def _exactly_one(self, node: syntax.Fold) -> Expanded:
        more = _invocation("_+_", INT, (INT, INT), Name(ACCUMULATOR, INT), Constant(1, INT))
        step = self._choice(INT, self.expand(node.body), more, Name(ACCUMULATOR, INT))
        loop = self._loop(node, Constant(0, INT), step)
        loop.result = _invocation("_==_", BOOL, (INT, INT), Name(ACCUMULATOR, INT), Constant(1, INT))
        loop.kind = BOOL
        return loop

    def _gathering(self, node: syntax.Fold) -> Expanded:
        """The list or map that a macro gathers."""
        kind = self._kinds[node]
        where = node.body if node.macro == "filter" else node.where
        step = self._gathered(node, kind)
        if where is not None:
            step = self._choice(kind, self.expand(where), step, Name(ACCUMULATOR, kind))
        start: Expanded = Entries((), kind) if kind.name == "map" else Items((), kind)
        return self._loop(node, start, step)

    def _gathered(self, node: syntax.Fold, kind: Kind) -> Expanded:
        """What was gathered so far, and one more."""
        so_far = Name(ACCUMULATOR, kind)
        if node.macro == "filter":
            return _appended(so_far, self._element(node))
        body = self.expand(node.body)
        if node.macro == "transformMapEntry":
            return _invocation("cel.@mapInsert", kind, (kind, kind), so_far, body)
        if node.macro == "transformMap":
            key = Name(node.variable, kind.params[0])
            return _invocation("cel.@mapInsert", kind, (kind, *kind.params), so_far, key, body)
        return _appended(so_far, body)

    def _element(self, node: syntax.Fold) -> Expanded:
        kind = self._kinds[node.range]
        return Name(node.variable, kind.params[0] if kind.name in {"list", "map"} else DYN)

    def _sort_by(self, node: syntax.SortBy) -> Expanded:
        value, key = self.expand(node.range), self.expand(node.key)
        keys = list_of(key.kind)
        loop = Loop(
            Name(_SORTED, value.kind),
            (node.variable,),
            ACCUMULATOR,
            start=Items((), keys),
            condition=Constant(True, BOOL),
            step=_appended(Name(ACCUMULATOR, keys), key),
            result=Name(ACCUMULATOR, keys),
            kind=keys,
        )
        params = tuple(overload.params for overload in self._calls[node])
        name = "@sortByAssociatedKeys"
        call = Invocation(name, Name(_SORTED, value.kind), (loop,), params, self._kinds[node])
        return self._bound(_SORTED, value, call)

    def _bind(self, node: syntax.Bind) -> Expanded:
        return self._bound(node.variable, self.expand(node.value), self.expand(node.body))

    def _bound(self, variable: str, value: Expanded, body: Expanded) -> Expanded:
        """A variable: a loop over nothing, whose accumulator it is."""
        return Loop(
            Items((), _NOTHING),
            (UNUSED,),
            variable,
            start=value,
            condition=Constant(False, BOOL),
            step=Name(variable, value.kind),
            result=body,
            kind=body.kind,
        )

    def _optional_map(self, node: syntax.OptionalMap) -> Expanded:
        target, kind = self.expand(node.operand), self._kinds[node]
        held = target.kind.params[0] if target.kind.name == "optional_type" else DYN
        wanted = (optional_of(held),)
        value = Invocation("value", target, (), (wanted,), held)
        found = self._bound(node.variable, value, self.expand(node.body))
        if not node.flat:
            found = _invocation("optional.of", kind, (found.kind,), found)
        return self._choice(
            kind,
            Invocation("hasValue", target, (), (wanted,), BOOL),
            found,
            _invocation("optional.none", kind, ()),
        )


def _balanced(function: str, terms: list[Expanded]) -> Expanded:
    """A chain of `&&` or `||` as a tree of low height, as cel-go's parser builds it."""
    if len(terms) == 1:
        return terms[0]
    middle = (len(terms) + 1) // 2
    left, right = _balanced(function, terms[:middle]), _balanced(function, terms[middle:])
    return _invocation(function, BOOL, (BOOL, BOOL), left, right)
