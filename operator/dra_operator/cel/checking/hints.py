"""What is likely meant where an expression does not compile: hints in our own words, beside upstream's messages.

Called by the checker with what it complains of. A hint is one line without a full stop, empty where nothing is known; it never decides anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dra_operator.cel.types.kinds import (
    BOOL,
    DEVICE,
    DOUBLE,
    DYN,
    ERROR,
    INT,
    QUANTITY,
    SEMVER,
    STRING,
    UINT,
    Kind,
)
from dra_operator.words import nearest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from dra_operator.cel.parsing.syntax import Call

    from .checks import Checked
    from .environment import Environment

_FIELDS: Final = {
    "name": "expressions do not see the name of a device; select by an attribute",
    "pool": "expressions do not see the pool of a device; select by an attribute",
    "node": "expressions do not see the node of a device; ask for nodes in the pod",
    "nodeName": "expressions do not see the node of a device; ask for nodes in the pod",
    "attribute": "did you mean attributes?",
    "capacities": "did you mean capacity?",
    "basic": "attributes and capacity have been fields of the device itself since resource.k8s.io/v1beta2",
    "allowMultipleAllocations": "it is there with the feature gate DRAConsumableCapacity",
}
_NAMES: Final = {
    "True": "did you mean true?",
    "False": "did you mean false?",
    "nil": "did you mean null? A key that may be missing is asked for with has() or .?",
    "None": "did you mean null? A key that may be missing is asked for with has() or .?",
    "attributes": "did you mean device.attributes?",
    "capacity": "did you mean device.capacity?",
    "driver": "did you mean device.driver?",
    "self": "the device is called device",
    "object": "the device is called device",
}
_FUNCTIONS: Final = {
    "length": "did you mean size()?",
    "len": "did you mean size()?",
    "toLower": "did you mean lowerAscii()?",
    "toUpper": "did you mean upperAscii()?",
    "lower": "did you mean lowerAscii()?",
    "upper": "did you mean upperAscii()?",
    "equals": "compare with ==",
    "match": "did you mean matches()?",
    "any": "did you mean exists()?",
    "some": "did you mean exists()?",
    "includes": "it is there with the feature gate DRAListTypeAttributes",
    "isLessThanOrEqual": "write !x.isGreaterThan(y), or x.compareTo(y) <= 0",
    "isGreaterThanOrEqual": "write !x.isLessThan(y), or x.compareTo(y) >= 0",
}
_MACROS: Final = {
    "has": "has(value.field) tells whether a field is there",
    "all": "all(variable, condition) is a macro of a list or map",
    "exists": "exists(variable, condition) is a macro of a list or map",
    "exists_one": "exists_one(variable, condition) is a macro of a list or map",
    "existsOne": "write exists_one(variable, condition), or existsOne with two variables",
    "map": "map(variable, value) is a macro of a list or map",
    "filter": "filter(variable, condition) is a macro of a list or map",
    "bind": "cel.bind(variable, value, expression) is the macro",
    "optMap": "optMap(variable, value) is a macro of an optional value",
    "optFlatMap": "optFlatMap(variable, optional value) is a macro of an optional value",
    "sortBy": "sortBy(variable, key) is a macro of a list",
    "transformList": "transformList(index, variable, value) is a macro of a list or map",
    "transformMap": "transformMap(key, variable, value) is a macro of a list or map",
    "transformMapEntry": "transformMapEntry(key, variable, {key: value}) is a macro of a list or map",
}
_SIGNS: Final = {"_==_": "==", "_!=_": "!=", "_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">="}
_ORDERS: Final = frozenset({"compareTo", "isLessThan", "isGreaterThan"})
_NUMBERS: Final = frozenset({INT, UINT, DOUBLE})


class Hints:
    """Hints for expressions of an environment."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def for_field(self, field: str) -> str:
        """A field that `device` does not have."""
        known = self._environment.fields
        return _FIELDS.get(field) or _similar(field, known) or f"there are: {', '.join(sorted(known))}"

    def for_name(self, name: str, scope: Collection[str]) -> str:
        """A name that nobody has declared."""
        return _NAMES.get(name) or _similar(name, ("device", *scope)) or "text stands in quotes"

    def for_function(self, call: Call, kinds: Sequence[Kind]) -> str:
        """A function that does not exist; `kinds` are the types of its target and arguments."""
        name = call.function
        if name in _MACROS:
            return _MACROS[name]
        if call.target is not None and kinds[0] == QUANTITY and name in {"value", "quantity"}:
            return "a capacity is a quantity itself"
        known = {overload.name for overload in self._environment.functions if overload.name[0].isalpha()}
        return _FUNCTIONS.get(name) or _similar(name, (*sorted(known), *_MACROS))

    def for_selection(self, kind: Kind) -> str:
        """A field of what has none."""
        if kind == QUANTITY:
            return 'a capacity is a quantity, which is compared with .compareTo(quantity("1Gi"))'
        return ""

    def for_range(self, kind: Kind) -> str:
        """A macro of what is neither list nor map."""
        if kind.is_dyn:
            return "attributes can be lists with the feature gate DRAListTypeAttributes"
        return 'the characters of a text are text.split("")' if kind == STRING else ""

    def for_overload(self, name: str, kinds: Sequence[Kind]) -> str:
        """A function or operator that does not take values of these types."""
        if ERROR in kinds or not kinds:
            return ""
        if name in _SIGNS and len(kinds) > 1:
            return _for_comparison(_SIGNS[name], kinds[0], kinds[1])
        if any(kind.name == "optional_type" for kind in kinds):
            return "an optional value may be missing: .orValue(other) gives the value or the other one"
        return _for_function(name, kinds)

    def for_result(self, checked: Checked) -> str:
        """A selector that gives no bool, to be appended to the message."""
        kind = checked.kind
        hint = "a selector is a condition: compare the value with something"
        if kind.name == "optional_type":
            hint = "an optional value may be missing: .orValue(other) gives the value or the other one"
        elif kind.name in {"list", "map"}:
            hint = "a selector is a condition: ask with exists(), all() or in"
        return f"\nhint: {hint}"


def _for_comparison(sign: str, left: Kind, right: Kind) -> str:
    both = {left, right}
    if QUANTITY in both:
        shown = "text or a number" if both & {STRING, *_NUMBERS} else "anything"
        return f'quantities are not compared with {shown} by {sign}, but with each other: x.compareTo(quantity("1Gi")) {sign} 0'
    if SEMVER in both:
        return f'versions are compared with each other: x.compareTo(semver("1.0.0")) {sign} 0'
    if any(kind.name == "optional_type" for kind in both):
        return "an optional value may be missing: .orValue(other) gives the value or the other one"
    if any(kind.name == "map" for kind in both) and left.name != right.name:
        return 'attributes and capacities stand below their domain: device.attributes["domain"].name'
    if both <= _NUMBERS:
        return "numbers of different types are compared after a conversion: int(x), uint(x), double(x)"
    if STRING in both and both & _NUMBERS:
        return "text and numbers are compared after a conversion: string(x), int(x)"
    if BOOL in both and sign not in {"==", "!="}:
        return "comparisons are joined by &&: a < b && b < c"
    return "both sides have to be of one type"


def _for_function(name: str, kinds: Sequence[Kind]) -> str:
    first = kinds[0]
    if name in {"_[_]", "_[?_]"} and first == DEVICE:
        return "fields of the device are selected with a point: device.driver"
    if name == "@in" and kinds[1] == STRING:
        return "whether a text contains another is text.contains(other)"
    if name == "@in":
        return "what is looked for, and the list's elements or the map's keys, have to be of one type"
    if name == "_?_:_":
        condition = "the condition has to be a bool" if kinds[0] not in {BOOL, DYN} else ""
        return condition or "both branches have to be of one type"
    if name == "_+_" and STRING in kinds:
        return "texts are joined with texts: string(x)"
    if name in {"_+_", "_-_"} and QUANTITY in kinds:
        return "quantities are added with x.add(y) and subtracted with x.sub(y)"
    return _for_order(kinds) if name in _ORDERS else ""


def _for_order(kinds: Sequence[Kind]) -> str:
    if kinds[0] in {QUANTITY, SEMVER}:
        return f"the argument has to be one, too: {'quantity' if kinds[0] == QUANTITY else 'semver'}(…)"
    if STRING in kinds[1:]:
        return "versions and quantities are compared with each other: semver(…), quantity(…)"
    return ""


def _similar(name: str, names: Iterable[str]) -> str:
    found = nearest(name, names)
    return f"did you mean {found}?" if found else ""
