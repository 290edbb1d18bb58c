"""Derived attributes: expressions over a device that give it one attribute more (alloc D-1…D-6).

They see the same `device` as selectors. Called by the compiler; must not know who asks, nor which constraints read the attribute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from dra_operator.errors import CelCompileError, CelRuntimeError
from dra_operator.model import DeviceAttribute

from .checking.checks import check
from .evaluation.evaluate import plan
from .parsing.source import unsupported
from .types.kinds import BOOL, INT, SEMVER, STRING
from .types.messages import RECORDS
from .types.values import Optional, TypeName, type_name
from .types.versions import Semver

if TYPE_CHECKING:
    from .checking.checks import Checked
    from .checking.environment import Environment
    from .evaluation.evaluate import Program
    from .meter import Meter
    from .types.kinds import Kind
    from .types.values import DeviceInput

_SCALARS: Final = frozenset({BOOL, INT, STRING, SEMVER})

_ONE = "a primitive scalar (string, integer, boolean, semver)"
_MANY = f"{_ONE} or a list of these scalars"

_FIELDS: Final[dict[type, tuple[str, str]]] = {
    bool: ("bool_value", "bools"),
    int: ("int_value", "ints"),
    str: ("string", "strings"),
    Semver: ("version", "versions"),
}
"""Type of a value → the fields of an attribute for one such value and for a list of them."""

_NO_VALUE: Final = DeviceAttribute()

_WANTED: Final = {bool: "bool", int: "int", str: "string", Semver: "semver"}

_GO_NAMES: Final = {
    "bool": "bool",
    "bytes": "[]uint8",
    "double": "float64",
    **dict.fromkeys(RECORDS, "*dynamicpb.Message"),
    "google.protobuf.Duration": "time.Duration",
    "google.protobuf.Timestamp": "time.Time",
    "int": "int64",
    "kubernetes.NamedFormat": "cel.Format",
    "kubernetes.Quantity": "*resource.Quantity",
    "kubernetes.Semver": "semver.Version",
    "kubernetes.URL": "*url.URL",
    "list": "[]ref.Val",
    "map": "map[ref.Val]ref.Val",
    "net.CIDR": "netip.Prefix",
    "net.IP": "netip.Addr",
    "null_type": "structpb.NullValue",
    "string": "string",
    "uint": "uint64",
}
"""Names of types in upstream's messages, where they come from Go. Of lists and maps it has several; they are all the same to users."""


def _allowed(kind: Kind) -> bool:
    return kind.plain in _SCALARS or kind.is_dyn


def check_derived(text: str, environment: Environment) -> Checked:
    """Parse and check an expression whose values must be such as attributes can have (alloc D-4).

    Raises:
        CelCompileError: it does not compile, or gives other values; lists are attributes only where devices have lists.
        CelUnsupported: it goes beyond our own bounds.
    """
    checked = check(text, environment)
    kind = checked.kind
    element = kind.params[0] if environment.lists and kind.name == "list" else kind
    if not _allowed(element):
        wanted = _MANY if environment.lists else _ONE
        raise CelCompileError(f"must evaluate to {wanted}, not {kind}")
    return checked


def compile_derived(expression: str, environment: Environment) -> Program:
    """Parse, check and plan the expression of a derived attribute.

    Raises:
        CelCompileError: it does not compile, or its result can be no attribute.
        CelUnsupported: it may be valid, but this engine cannot evaluate it.
    """
    try:
        checked = check_derived(expression, environment)
        return plan(checked, environment.functions)
    except RecursionError as error:
        raise unsupported("so deep a nesting") from error


def derive(program: Program, device: DeviceInput, meter: Meter) -> DeviceAttribute:
    """The attribute that a program gives to a device; the meter counts the work.

    Raises:
        CelRuntimeError: it fails on this device, or what it gives can be no attribute.
        CelUnsupported: the engine cannot tell.
    """
    return attribute_of(program.evaluate(device, meter))


def attribute_of(value: Any) -> DeviceAttribute:
    """A value of CEL as an attribute.

    Raises:
        CelRuntimeError: attributes cannot hold it.
    """
    if type(value) is tuple:
        return _list_of(value)
    plain = _plain(value)
    if type(plain) not in _FIELDS:
        raise CelRuntimeError(f"unsupported CEL return type: {_go_name(plain)}")
    return msgspec.structs.replace(_NO_VALUE, **{_FIELDS[type(plain)][0]: _written(plain)})


def _list_of(values: tuple[Any, ...]) -> DeviceAttribute:
    """Its first element says what it is a list of; empty lists are lists of strings."""
    if not values:
        return DeviceAttribute(strings=())
    plain = tuple(map(_plain, values))
    kind = type(plain[0])
    if kind not in _FIELDS:
        raise CelRuntimeError(f"unsupported list element type: {_go_name(plain[0])}")
    for number, value in enumerate(plain):
        if type(value) is not kind:
            wanted = _WANTED[kind]
            raise CelRuntimeError(
                f"expected list element at index {number} to be {wanted}, got {_go_name(value)}"
            )
    return msgspec.structs.replace(_NO_VALUE, **{_FIELDS[kind][1]: tuple(map(_written, plain))})


def _plain(value: Any) -> Any:
    """What is inside of an optional, and a type's name: upstream asks values for what they hold."""
    while isinstance(value, Optional) and value.present:
        value = value.value
    return value.name if isinstance(value, TypeName) else value


def _written(value: Any) -> Any:
    return str(value.version) if isinstance(value, Semver) else value


def _go_name(value: Any) -> str:
    if isinstance(value, Optional):
        return "<nil>"
    name = type_name(value)
    return _GO_NAMES.get(name, name)
