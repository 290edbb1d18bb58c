"""The fast way: Python source for the shapes that selectors usually have, which gives the same answers as the closures or none at all.

The source assumes that nothing fails. On any exception the caller evaluates the device again with the closures (`evaluate.py`), which absorb
errors as CEL does and know every text; expressions have no effects, so that is sound. What this module does not know has no source.

Nothing that a user writes gets into the source: every constant, name of an attribute included, is passed as an argument `K0`, `K1`, …, variables
are numbered, and no built-in can be reached. The code keeps no state but memos, which are bounded; it may run in several threads.

It must not do what costs more than `MAX_WORK`, as it does not count.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from dra_operator.cel.functions.patterns import PATTERNS
from dra_operator.cel.functions.standard import differs, in_list, in_set, set_of
from dra_operator.cel.parsing import syntax
from dra_operator.cel.types.values import INT_MAX, TYPE_NAMES, equal
from dra_operator.cel.types.versions import Semver
from dra_operator.errors import CelError
from dra_operator.quantity import Quantity

from .memo import MAX_ITEMS, Memo
from .paths import Domain, Entry, Scalar, Table, device_path
from .source import Generated, UnknownShapeError, compiled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from dra_operator.cel.functions.registry import Table as Functions
    from dra_operator.cel.parsing.syntax import Node
    from dra_operator.cel.types.kinds import Kind

    from .paths import Path

MAX_WORK: Final = 4_000
"""Nodes that an evaluation may run through: those of comprehensions' bodies as often as they run. Half a millisecond."""

_MOST_CONSTANTS: Final = 400
"""Names and constants of a source: what has more will be too long, so no more of it is written."""

_SHORT: Final = 64
"""Characters of a constant that count for nothing, as attributes have no more."""

_CHARACTERS: Final = 4
"""Further characters that count as a node. Upstream asks a unit of cost for as many of a regular expression, times a tenth of those of the text: what
`MAX_WORK` nodes can cost there stays far below its limit for an evaluation, so that nothing has to be counted."""

_SEARCH: Final = 100
"""Nodes that a search counts as, for texts that have not been searched yet."""


class _Optional:
    """Stands for the type of code that gives a value or `MISSING`."""


@dataclass(frozen=True, slots=True)
class _Code:
    """An expression in Python.

    Attributes:
        text: in parentheses where it needs them.
        kind: the class that its values surely have; `object` if that is not known.
        value: what it gives, where `constant`.
        items: how many elements it has at most, if it is a list.
    """

    text: str
    kind: type = object
    constant: bool = False
    value: Any = None
    items: int = MAX_ITEMS


_SIMPLE: Final = frozenset({bool, int, str})
"""Types of constants that Python compares as CEL does, with values of the very same class."""

_SCALARS: Final = _SIMPLE | {float, Quantity, Semver}
"""Types of values that hold no others."""

_ORDERS: Final = {"_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">="}
_EQUALITIES: Final = {"_==_": "==", "_!=_": "!="}
_ORDERED: Final = frozenset({int, str})
_AMOUNTS: Final = {"isGreaterThan": ">", "isLessThan": "<"}
_VERSIONS: Final[dict[str, tuple[type, Callable[[Semver, Semver], object]]]] = {
    "compareTo": (int, lambda other, version: version.compare(other)),
    "isGreaterThan": (bool, lambda other, version: version.compare(other) > 0),
    "isLessThan": (bool, lambda other, version: version.compare(other) < 0),
}
"""Methods of versions with another one: class of the answer, and how it is found."""

_CHEAP: Final = frozenset(
    {
        "asInteger", "compareTo", "contains", "endsWith", "includes", "isGreaterThan", "isInteger", "isLessThan", "lowerAscii", "major",
        "minor", "patch", "sign", "size", "startsWith", "trim", "upperAscii",
    }
)  # fmt: skip
"""Functions that are called as they are: their work is that of their arguments, and what they give is no larger."""

_CLASSES: Final[dict[str, type]] = {
    "bool": bool,
    "int": int,
    "string": str,
    "list": tuple,
    "kubernetes.Quantity": Quantity,
    "kubernetes.Semver": Semver,
}
"""Names of CEL's types that the source knows → the class of their values."""


def generate(node: Node, functions: Functions) -> Generated | None:
    """The source of a checked selector; None if it has an unusual shape.

    Args:
        node: the syntax tree.
        functions: those of the environment.
    """
    try:
        generator = _Generator(functions)
        code = generator.truth(node, {})
        return compiled(code, generator.constants, generator.work, generator.searches)
    except (UnknownShapeError, RecursionError, MemoryError):
        return None


def _search(pattern: str) -> Callable[[str], bool]:
    return lambda text: PATTERNS.search(text, pattern)


def _flat(path: Domain | Entry) -> str:
    return f"d.flat_{path.table}"


def _common(one: _Code, other: _Code) -> type:
    """The class of what is either of two."""
    if one.kind is other.kind:
        return one.kind
    if _Optional in {one.kind, other.kind}:
        raise UnknownShapeError
    return object


def _terms(node: syntax.Logic) -> Iterator[Node]:
    """Terms of a conjunction or disjunction, those of the same inside of it included."""
    for term in node.terms:
        if isinstance(term, syntax.Logic) and term.is_and is node.is_and:
            yield from _terms(term)
        else:
            yield term


def _may_be(code: _Code, param: Kind) -> bool:
    """Whether values can be of the type that a function takes."""
    if param.is_dyn or param.is_param or code.kind is object:
        return True
    return TYPE_NAMES.get(code.kind) == param.name


_Scope = dict[str, "_Code | Path"]


class _Generator:
    """Writes the source of one expression.

    Attributes:
        constants: what the source is given, by name.
        work: nodes that the source runs through at most.
        searches: searches by regular expressions, those in loops as often as they run.
    """

    def __init__(self, functions: Functions) -> None:
        self.constants: dict[str, Any] = {}
        self._functions = functions
        self.work = 0
        self.searches = 0
        self._times = 1
        self._variables = 0
        self._rules: dict[type, Callable[[Any, _Scope], _Code]] = {
            syntax.Literal: lambda node, _: self._constant(node.value),
            syntax.Ident: self._ident,
            syntax.Select: self._no_path,
            syntax.Has: self._has,
            syntax.Call: self._call,
            syntax.Logic: self._logic,
            syntax.Conditional: self._conditional,
            syntax.ListLiteral: self._list,
            syntax.Fold: self._fold,
            syntax.Bind: self._bind,
            syntax.OptionalMap: self._optional_map,
        }
        # By name, whether it is a method, and the number of arguments beside the receiver.
        self._calls: Mapping[tuple[str, bool, int], Callable[[syntax.Call, _Scope], _Code]] = {
            ("!_", False, 1): self._not,
            ("@in", False, 2): self._contained,
            ("matches", False, 2): self._matches,
            ("matches", True, 1): self._matches,
            ("-_", False, 1): self._minus,
            ("compareTo", True, 1): self._compared,
            ("isGreaterThan", True, 1): self._compared,
            ("isLessThan", True, 1): self._compared,
            ("quantity", False, 1): self._parsed,
            ("semver", False, 1): self._parsed,
            ("dyn", False, 1): self._dyn,
            ("orValue", True, 1): self._or_value,
            ("or", True, 1): self._or,
            ("value", True, 0): self._value,
            ("hasValue", True, 0): self._has_value,
        }

    # ------------------------------------------------------------------ names

    def _name(self, value: Any) -> str:
        if len(self.constants) >= _MOST_CONSTANTS:
            raise UnknownShapeError
        name = f"K{len(self.constants)}"
        self.constants[name] = value
        return name

    def _constant(self, value: Any) -> _Code:
        if isinstance(value, str):
            self._count(max(0, len(value) - _SHORT) // _CHARACTERS)
        return _Code(self._name(value), type(value), constant=True, value=value)

    def _variable(self) -> str:
        self._variables += 1
        return f"v{self._variables}"

    def _count(self, nodes: int) -> None:
        self.work += nodes * self._times
        if self.work > MAX_WORK:
            raise UnknownShapeError

    # ------------------------------------------------------------------ anything, or of one type

    def any(self, node: Node, scope: _Scope) -> _Code:
        """The source of an expression."""
        self._count(1)
        path = device_path(node, scope)
        if path is not None:
            return self._path(path)
        rule = self._rules.get(type(node))
        if rule is None:
            raise UnknownShapeError
        return rule(node, scope)

    def truth(self, node: Node, scope: _Scope) -> str:
        """The source of an expression that gives a bool, or raises."""
        return self._of(self.any(node, scope), bool)

    def _of(self, code: _Code, *kinds: type) -> str:
        """The same, which surely gives one of these classes, or raises."""
        if code.kind in kinds:
            return code.text
        if code.kind is not object:
            raise UnknownShapeError
        variable = self._variable()
        test = f"is {self._name(kinds[0])}" if len(kinds) == 1 else f"in {self._name(frozenset(kinds))}"
        return f"({variable} if ({variable} := {code.text}).__class__ {test} else elsewhere())"

    # ------------------------------------------------------------------ the device

    def _path(self, path: Path) -> _Code:
        if isinstance(path, Entry):
            flat, key = _flat(path), self._name(path.key)
            if path.optional:
                return _Code(f"{flat}.get({key}, MISSING)", _Optional)
            return _Code(f"{flat}[{key}]", Quantity if path.table == "capacity" else object)
        if isinstance(path, Scalar):
            return _Code("d.driver", str) if path.name == "driver" else _Code("d.multiple", bool)
        raise UnknownShapeError

    def _no_path(self, _: syntax.Select, __: _Scope) -> _Code:
        raise UnknownShapeError

    def _ident(self, node: syntax.Ident, scope: _Scope) -> _Code:
        found = scope.get(node.name)
        if not isinstance(found, _Code):
            raise UnknownShapeError
        return found

    def _has(self, node: syntax.Has, scope: _Scope) -> _Code:
        path = device_path(node.operand, scope)
        if not isinstance(path, Domain):
            raise UnknownShapeError
        return _Code(f"({self._name((path.domain, node.field))} in {_flat(path)})", bool)

    # ------------------------------------------------------------------ logic

    def _logic(self, node: syntax.Logic, scope: _Scope) -> _Code:
        terms = [self.truth(term, scope) for term in _terms(node)]
        return _Code(f"({(' and ' if node.is_and else ' or ').join(terms)})", bool)

    def _conditional(self, node: syntax.Conditional, scope: _Scope) -> _Code:
        condition = self.truth(node.condition, scope)
        then, otherwise = self.any(node.then, scope), self.any(node.otherwise, scope)
        items = max(then.items, otherwise.items)
        return _Code(
            f"({then.text} if {condition} else {otherwise.text})", _common(then, otherwise), items=items
        )

    # ------------------------------------------------------------------ calls

    def _call(self, node: syntax.Call, scope: _Scope) -> _Code:
        name = node.function
        if name in _EQUALITIES or name in _ORDERS:
            return self._comparison(node, scope)
        rule = self._calls.get((name, node.target is not None, len(node.args)))
        if rule is not None:
            return rule(node, scope)
        if name in _CHEAP:
            return self._function(node, scope)
        raise UnknownShapeError

    def _not(self, node: syntax.Call, scope: _Scope) -> _Code:
        return _Code(f"(not {self.truth(node.args[0], scope)})", bool)

    def _minus(self, node: syntax.Call, _: _Scope) -> _Code:
        (number,) = node.args
        if not isinstance(number, syntax.Literal) or type(number.value) not in {int, float}:
            raise UnknownShapeError
        negative = -cast("int | float", number.value)
        if isinstance(negative, int) and negative > INT_MAX:
            raise UnknownShapeError  # that of the smallest number overflows
        return self._constant(negative)

    def _comparison(self, node: syntax.Call, scope: _Scope) -> _Code:
        sign = {**_EQUALITIES, **_ORDERS}[node.function]
        amounts = self._amounts(node, sign, scope)
        if amounts is not None:
            return amounts
        left, right = (self.any(argument, scope) for argument in node.args)
        if _Optional in {left.kind, right.kind}:
            raise UnknownShapeError
        if node.function in _ORDERS:
            return _Code(f"({self._ordered(left, right, sign)})", bool)
        return _Code(self._equality(left, right, sign), bool)

    def _amounts(self, node: syntax.Call, sign: str, scope: _Scope) -> _Code | None:
        """`a.compareTo(b) >= 0` of quantities."""
        call, zero = node.args
        is_sign = isinstance(zero, syntax.Literal) and type(zero.value) is int and zero.value == 0
        if not (is_sign and isinstance(call, syntax.Call) and call.function == "compareTo"):
            return None
        if call.target is None or len(call.args) != 1:
            return None
        sides = [self.any(side, scope) for side in (call.target, call.args[0])]
        if all(side.kind is Quantity for side in sides):
            left, right = map(self._nano, sides)
            return _Code(f"({left} {sign} {right})", bool)
        return None

    def _nano(self, code: _Code) -> str:
        return self._name(code.value.nano) if code.constant else f"{code.text}.nano"

    def _ordered(self, left: _Code, right: _Code, sign: str) -> str:
        kinds = {left.kind, right.kind} - {object}
        if len(kinds) != 1 or not kinds <= _ORDERED:
            raise UnknownShapeError
        (kind,) = kinds
        return f"{self._of(left, kind)} {sign} {self._of(right, kind)}"

    def _equality(self, left: _Code, right: _Code, sign: str) -> str:
        if left.kind is right.kind and left.kind in _SIMPLE:
            return f"({left.text} {sign} {right.text})"
        if left.kind is right.kind is Quantity:
            return f"({self._nano(left)} {sign} {self._nano(right)})"
        slow = self._name(equal if sign == "==" else differs)
        for one, other in ((left, right), (right, left)):
            if one.kind is object and other.constant and other.kind in _SIMPLE:
                variable, kind = self._variable(), self._name(other.kind)
                sides = [variable if side is one else side.text for side in (left, right)]
                quick = f"{variable} {sign} {other.text}"
                return f"({quick} if ({variable} := {one.text}).__class__ is {kind} else {slow}({', '.join(sides)}))"
        return f"{slow}({left.text}, {right.text})"

    def _contained(self, node: syntax.Call, scope: _Scope) -> _Code:
        item, container = node.args
        path = device_path(container, scope)
        if path is not None and not isinstance(path, Entry):
            return self._known_name(item, path)
        wanted, held = self.any(item, scope), self.any(container, scope)
        if _Optional in {wanted.kind, held.kind}:
            raise UnknownShapeError
        self._count(held.items)
        if held.constant and held.kind is tuple:
            return _Code(self._among(wanted, held), bool)
        return _Code(f"{self._name(in_list)}({wanted.text}, {self._members(held)})", bool)

    def _known_name(self, item: Node, path: Path) -> _Code:
        """`"name" in device.attributes["domain"]`, and the same of domains."""
        if not isinstance(item, syntax.Literal) or type(item.value) is not str:
            raise UnknownShapeError
        if isinstance(path, Table | Domain) and path.optional:
            raise UnknownShapeError
        if isinstance(path, Domain):
            return _Code(f"({self._name((path.domain, item.value))} in {_flat(path)})", bool)
        if isinstance(path, Table):
            return _Code(f"({self._name(item.value)} in d.{path.name})", bool)
        raise UnknownShapeError

    def _among(self, wanted: _Code, held: _Code) -> str:
        """`in` a list of constants."""
        known = set_of(held.value)
        if known is None:
            return f"{self._name(in_list)}({wanted.text}, {held.text})"
        test, name = self._name(in_set), self._name(known)
        kinds = set(map(type, held.value))
        if len(kinds) == 1 and kinds <= _SIMPLE:
            (kind,) = kinds
            members_ = self._name(frozenset(held.value))
            if wanted.kind is kind:
                return f"({wanted.text} in {members_})"
            if wanted.kind is object:
                variable = self._variable()
                slow = f"{test}({variable}, {name})"
                return f"({variable} in {members_} if ({variable} := {wanted.text}).__class__ is {self._name(kind)} else {slow})"
        return f"{test}({wanted.text}, {name})"

    def _members(self, code: _Code) -> str:
        """A list of bounded length, or an exception."""
        if code.kind is tuple:
            return code.text
        if code.kind is not object:
            raise UnknownShapeError
        return f"members({code.text})"

    def _matches(self, node: syntax.Call, scope: _Scope) -> _Code:
        text, pattern = ((node.target,) if node.target is not None else ()) + node.args
        if not isinstance(pattern, syntax.Literal) or type(pattern.value) is not str:
            raise UnknownShapeError
        self._count(_SEARCH + len(pattern.value) // _CHARACTERS)
        self.searches += self._times
        return self._remembered(self.any(text, scope), str, _search(pattern.value), bool)

    def _remembered(self, code: _Code, kind: type, compute: Callable[[Any], Any], result: type) -> _Code:
        """A property of one value of a certain class, found out once for each value."""
        if code.kind not in {object, kind}:
            raise UnknownShapeError
        return _Code(f"{self._name(Memo(kind, compute))}[{code.text}]", result)

    def _compared(self, node: syntax.Call, scope: _Scope) -> _Code:
        """Comparisons of quantities, and of a version with a constant one; anything else is a function as others are."""
        assert node.target is not None
        left, right = self.any(node.target, scope), self.any(node.args[0], scope)
        if left.kind in {object, Semver} and not left.constant and right.constant and right.kind is Semver:
            result, compute = _VERSIONS[node.function]
            return self._remembered(left, Semver, partial(compute, right.value), result)
        if left.kind is right.kind is Quantity and node.function in _AMOUNTS:
            return _Code(f"({self._nano(left)} {_AMOUNTS[node.function]} {self._nano(right)})", bool)
        return self._applied(node.function, (left, right), method=True)

    def _function(self, node: syntax.Call, scope: _Scope) -> _Code:
        nodes = node.args if node.target is None else (node.target, *node.args)
        codes = tuple(self.any(argument, scope) for argument in nodes)
        return self._applied(node.function, codes, method=node.target is not None)

    def _applied(self, name: str, codes: tuple[_Code, ...], *, method: bool) -> _Code:
        """A call of the one implementation that these arguments can have."""
        fitting = [
            overload
            for overload in self._functions.of(name, method=method)
            if len(overload.params) == len(codes) and all(map(_may_be, codes, overload.params))
        ]
        runs = {overload.run for overload in fitting}
        if len(runs) != 1:
            raise UnknownShapeError
        arguments = [
            self._argument(code, [overload.params[place] for overload in fitting])
            for place, code in enumerate(codes)
        ]
        results = {_CLASSES.get(overload.result.name, object) for overload in fitting}
        kind = results.pop() if len(results) == 1 else object
        return _Code(f"{self._name(runs.pop())}({', '.join(arguments)})", kind)

    def _argument(self, code: _Code, params: Sequence[Kind]) -> str:
        """An argument that surely is of a type that the implementation takes there."""
        self._count(code.items if code.kind in {object, tuple} else 0)
        if code.kind is _Optional:
            raise UnknownShapeError
        if code.kind is not object or any(param.is_dyn or param.is_param for param in params):
            return code.text
        return self._of(code, *(_CLASSES[param.name] for param in params if param.name in _CLASSES))

    def _parsed(self, node: syntax.Call, _: _Scope) -> _Code:
        """`quantity("1Gi")`, `semver("1.0.0")`: good constants only."""
        (text,) = node.args
        if not isinstance(text, syntax.Literal) or type(text.value) is not str:
            raise UnknownShapeError
        try:
            return self._constant(self._functions.of(node.function, method=False)[0].run(text.value))
        except CelError as error:
            raise UnknownShapeError from error

    def _dyn(self, node: syntax.Call, scope: _Scope) -> _Code:
        return self.any(node.args[0], scope)

    # ------------------------------------------------------------------ optionals

    def _or_value(self, node: syntax.Call, scope: _Scope) -> _Code:
        assert node.target is not None
        optional = self._optional(node.target, scope)
        other = self.any(node.args[0], scope)
        if other.kind is _Optional:
            raise UnknownShapeError
        if other.constant and optional.endswith(", MISSING)"):
            return _Code(f"{optional.removesuffix('MISSING)')}{other.text})")
        return _Code(self._else(optional, other.text))

    def _or(self, node: syntax.Call, scope: _Scope) -> _Code:
        assert node.target is not None
        first, second = (self._optional(part, scope) for part in (node.target, node.args[0]))
        return _Code(self._else(first, second), _Optional)

    def _value(self, node: syntax.Call, scope: _Scope) -> _Code:
        assert node.target is not None
        return _Code(self._else(self._optional(node.target, scope), "elsewhere()"))

    def _has_value(self, node: syntax.Call, scope: _Scope) -> _Code:
        assert node.target is not None
        return _Code(f"({self._optional(node.target, scope)} is not MISSING)", bool)

    def _optional(self, node: Node, scope: _Scope) -> str:
        code = self.any(node, scope)
        if code.kind is not _Optional:
            raise UnknownShapeError
        return code.text

    def _else(self, optional: str, other: str) -> str:
        variable = self._variable()
        return f"({variable} if ({variable} := {optional}) is not MISSING else {other})"

    def _optional_map(self, node: syntax.OptionalMap, scope: _Scope) -> _Code:
        variable = self._variable()
        optional = self._optional(node.operand, scope)
        body = self.any(node.body, {**scope, node.variable: _Code(variable)})
        if (body.kind is _Optional) is not node.flat:
            raise UnknownShapeError
        return _Code(f"({body.text} if ({variable} := {optional}) is not MISSING else MISSING)", _Optional)

    # ------------------------------------------------------------------ lists and variables

    def _list(self, node: syntax.ListLiteral, scope: _Scope) -> _Code:
        if node.optional:
            raise UnknownShapeError
        items = [self.any(item, scope) for item in node.items]
        if all(item.constant for item in items):
            made = self._constant(tuple(item.value for item in items))
            return replace(made, items=len(items))
        self._flat_only(items)
        return _Code(f"({', '.join(item.text for item in items)},)", tuple, items=len(items))

    def _flat_only(self, items: Sequence[_Code]) -> None:
        """Lists of lists may be far larger than the text that makes them, and comparing them takes as long."""
        if not all(item.kind in _SCALARS for item in items):
            raise UnknownShapeError

    def _fold(self, node: syntax.Fold, scope: _Scope) -> _Code:
        if node.second:
            raise UnknownShapeError
        code, name = self.any(node.range, scope), self._variable()
        range_ = self._members(code)
        # Python refuses to bind a name in what a comprehension walks through: it is bound outside.
        held = self._variable() if ":=" in range_ else range_
        before, self._times = self._times, self._times * code.items
        made = self._folded(node, f"for {name} in {held}", name, {**scope, node.variable: _Code(name)})
        self._times = before
        made = replace(made, items=code.items)
        return made if held == range_ else replace(made, text=f"(({held} := {range_}), {made.text})[1]")

    def _folded(self, node: syntax.Fold, loop: str, name: str, scope: _Scope) -> _Code:
        if node.macro == "map":
            body = self.any(node.body, scope)
            self._flat_only([body])
            where = "" if node.where is None else f" if {self.truth(node.where, scope)}"
            return _Code(f"tuple([{body.text} {loop}{where}])", tuple)
        test = self.truth(node.body, scope)
        match node.macro:
            case "all" | "exists":
                return _Code(f"{'all' if node.macro == 'all' else 'any'}([{test} {loop}])", bool)
            case "exists_one":
                return _Code(f"(sum([{test} {loop}]) == 1)", bool)
            case "filter":
                return _Code(f"tuple([{name} {loop} if {test}])", tuple)
        raise UnknownShapeError

    def _bind(self, node: syntax.Bind, scope: _Scope) -> _Code:
        path = device_path(node.value, scope)
        if path is not None and not isinstance(path, Entry):
            return self.any(node.body, {**scope, node.variable: path})
        value, variable = self.any(node.value, scope), self._variable()
        bound = _Code(variable, value.kind, items=value.items)
        body = self.any(node.body, {**scope, node.variable: bound})
        return _Code(f"(({variable} := {value.text}), {body.text})[1]", body.kind, items=body.items)
