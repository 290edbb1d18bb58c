"""Values of CEL while an expression runs, and the `device` that it looks at.

Python's own types stand for CEL's, with wrappers where Python would mix up what CEL keeps apart (`True == 1`, uint).

| CEL | here |
|---|---|
| bool, int, double, string, bytes, null | bool, int, float, str, bytes, None |
| uint | `UInt` |
| list | tuple |
| map | dict with keys as `to_key` gives them |
| optional, type | `Optional`, `TypeName` |
| google.protobuf.Duration, google.protobuf.Timestamp | `Duration`, `Timestamp` |
| google.protobuf.Empty, google.protobuf.Struct.FieldsEntry; other messages are one of the above | `Empty`, `Entry` |
| net.IP, net.CIDR, kubernetes.URL, kubernetes.NamedFormat | `IP`, `CIDR`, `URL`, `NamedFormat` |
| kubernetes.Quantity, kubernetes.Semver | `Quantity`, `Semver` |
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final

from dra_operator.errors import CelRuntimeError
from dra_operator.quantity import Quantity

from .versions import Semver

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dra_operator.model import Device, DeviceAttribute

INT_MAX: Final = 2**63 - 1
INT_MIN: Final = -(2**63)
UINT_MAX: Final = 2**64 - 1


class UInt(int):
    """A CEL uint; equal to the int of the same value, of another type."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class TypeName:
    """A CEL type as a value: what `type(x)` gives."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Optional:
    """A CEL optional value."""

    present: bool
    value: Any = None


NONE: Final = Optional(present=False)


def some(value: Any) -> Optional:
    """An optional value that is there."""
    return Optional(present=True, value=value)


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A span of time: nanoseconds, within an int64."""

    nanos: int


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A point in time: seconds since 1970 in UTC and nanoseconds; from year 1 to year 9999, but for those of messages.

    The offset, in seconds east of UTC, is that of the text it came from; it shows when it is made text again, and nowhere else.
    """

    seconds: int
    nanos: int = 0
    offset: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """A message of protocol buffers that is no other value of CEL.

    Attributes:
        fields: those that are set.
    """

    fields: dict[str, Any]
    DEFAULTS: ClassVar[dict[str, Any]] = {}

    def field(self, name: str) -> Any:
        """A field, or what it is when it is not set."""
        return self.fields.get(name, self.DEFAULTS[name])


class Empty(Record):
    """`google.protobuf.Empty`, which has no fields."""

    __slots__ = ()


class Entry(Record):
    """`google.protobuf.Struct.FieldsEntry`: a key and a value. Nobody builds one."""

    __slots__ = ()
    DEFAULTS: ClassVar[dict[str, Any]] = {"key": "", "value": None}


@dataclass(frozen=True, slots=True)
class IP:
    """An IP address: family 4 or 6, and its bits as a number."""

    family: int
    number: int

    def __str__(self) -> str:
        """In canonical form."""
        kind = ipaddress.IPv4Address if self.family == IP_V4 else ipaddress.IPv6Address
        return str(kind(self.number))


IP_V4: Final = 4


@dataclass(frozen=True, slots=True)
class CIDR:
    """A network: an address in it, and how many bits of it count."""

    address: IP
    bits: int

    def __str__(self) -> str:
        """As `10.0.0.0/8`."""
        return f"{self.address}/{self.bits}"


@dataclass(frozen=True, slots=True)
class URL:
    """A URL. Those with the same canonical text are equal; the path is escaped, the query as it was given."""

    text: str
    scheme: str = field(compare=False)
    host: str = field(compare=False)
    path: str = field(compare=False)
    query: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class NamedFormat:
    """A format that Kubernetes has a name for; `validate` gives what is wrong with a text."""

    name: str
    validate: Callable[[str], tuple[str, ...]] = field(compare=False)


class DomainMap(dict[str, dict[str, Any]]):
    """Domain → names. An unknown domain is an empty map when looked up, but is not in it (alloc L-6)."""

    __slots__ = ()

    def __missing__(self, domain: str) -> dict[str, Any]:
        return NO_ENTRIES


class NameMap(dict[str, Any]):
    """What a device has in a domain: a map of texts to upstream, in which nothing else is, be it such as cannot be a key of other maps."""

    __slots__ = ()


NO_ENTRIES: Final[dict[str, Any]] = {}
"""What unknown domains are: one and the same map, as upstream has it; nobody changes it."""


class Computed(Quantity):
    """What `add` and `sub` give: upstream cannot compare with it from the left, as it is a pointer there."""

    __slots__ = ()

    @classmethod
    def by(cls, amount: Quantity) -> Computed:
        """That amount as a result."""
        return cls(amount.nano, amount.notation, amount.power, small=amount.small)


@dataclass(slots=True, eq=False)
class DeviceInput:
    """What expressions see of a device (alloc L-6), built once and not changed.

    Generated code reads the flat dictionaries, keyed by domain and name: one look-up an attribute. The nested maps that everything else
    sees are made of them when they are first asked for, which for most devices is never.

    `fault` is set when an attribute cannot be converted: then every expression fails on the device (alloc L-7).
    """

    driver: str
    flat_attributes: dict[tuple[str, str], Any]
    flat_capacity: dict[tuple[str, str], Quantity]
    multiple: bool
    fault: str = ""
    _maps: dict[str, DomainMap] = field(default_factory=dict)

    @property
    def attributes(self) -> DomainMap:
        """Attributes by domain and name."""
        return self._nested("attributes", self.flat_attributes)

    @property
    def capacity(self) -> DomainMap:
        """Capacities by domain and name."""
        return self._nested("capacity", self.flat_capacity)

    def _nested(self, which: str, flat: Mapping[tuple[str, str], Any]) -> DomainMap:
        found = self._maps.get(which)
        if found is None:
            found = DomainMap()
            for (domain, name), value in flat.items():
                found.setdefault(domain, NameMap())[name] = value
            self._maps[which] = found
        return found

    def field(self, name: str) -> Any:
        """A field of `device`."""
        return getattr(self, _FIELDS[name])

    def as_map(self) -> dict[str, Any]:
        """`device` as a value: to upstream, it is a map when expressions run."""
        return {name: self.field(name) for name in _FIELDS}


_FIELDS: Final = {
    "driver": "driver",
    "attributes": "attributes",
    "capacity": "capacity",
    "allowMultipleAllocations": "multiple",
}


def device_input(driver: str, device: Device) -> DeviceInput:
    """Convert a device of a driver's slice; conversion errors are kept, not raised."""
    attributes: dict[tuple[str, str], Any] = {}
    fault = ""
    for name, attribute in device.attributes.items():
        try:
            attributes[_place(driver, name)] = attribute_value(attribute)
        except CelRuntimeError as error:
            fault = fault or f"attribute {name}: {error}"
    capacity = {_place(driver, name): entry.value for name, entry in device.capacity.items()}
    return DeviceInput(driver, attributes, capacity, bool(device.allow_multiple_allocations), fault)


@lru_cache(maxsize=4096)
def _place(driver: str, qualified: str) -> tuple[str, str]:
    """Domain and name; names without a domain belong to the driver's (alloc L-6). The same few come again, and are kept once."""
    domain, slash, name = qualified.partition("/")
    return (domain, name) if slash else (driver, domain)


def attribute_value(attribute: DeviceAttribute) -> Any:
    """The CEL value of an attribute, in the order of precedence of alloc L-7.

    Raises:
        CelRuntimeError: none is set, or a version is no semantic version.
    """
    if attribute.ints is not None:
        return attribute.ints
    if attribute.bools is not None:
        return attribute.bools
    if attribute.strings is not None:
        return attribute.strings
    if attribute.versions is not None:
        return tuple(_attribute_version(text) for text in attribute.versions)
    return _scalar(attribute)


def _scalar(attribute: DeviceAttribute) -> Any:
    if attribute.int_value is not None:
        return attribute.int_value
    if attribute.bool_value is not None:
        return attribute.bool_value
    if attribute.string is not None:
        return attribute.string
    if attribute.version is not None:
        return _attribute_version(attribute.version)
    raise CelRuntimeError("unsupported attribute value")


def _attribute_version(text: str) -> Semver:
    try:
        return Semver.parse(text)
    except CelRuntimeError as error:
        raise CelRuntimeError(f"parse semantic version: {error}") from error


TYPE_NAMES: Final[dict[type, str]] = {
    bool: "bool",
    int: "int",
    UInt: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    tuple: "list",
    dict: "map",
    DomainMap: "map",
    NameMap: "map",
    Optional: "optional_type",
    TypeName: "type",
    Duration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    Empty: "google.protobuf.Empty",
    Entry: "google.protobuf.Struct.FieldsEntry",
    IP: "net.IP",
    CIDR: "net.CIDR",
    URL: "kubernetes.URL",
    NamedFormat: "kubernetes.NamedFormat",
    Quantity: "kubernetes.Quantity",
    Computed: "kubernetes.Quantity",
    Semver: "kubernetes.Semver",
}
"""Python type of a value → name of its CEL type."""

MAPS: Final = frozenset({dict, DomainMap, NameMap})
"""Python types of maps."""

_NUMBERS: Final = frozenset({int, UInt, float})
_RECORDS: Final = frozenset({Empty, Entry})
_STRICT: Final = frozenset({Quantity, Computed, Semver, IP, CIDR, URL, NamedFormat})


def type_name(value: Any) -> str:
    """The name of a value's CEL type, as messages print it."""
    return TYPE_NAMES[type(value)]


@dataclass(frozen=True, slots=True)
class Key:
    """A map key that is neither string nor int, as dictionaries hold it: keys of different types are different keys, as in Go."""

    kind: str
    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class OwnKey:
    """A map key that is equal to itself alone: lists, maps, optionals, quantities."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OwnKey) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


_OWN_KEYS: Final = frozenset(
    {
        "google.protobuf.Empty",
        "google.protobuf.Struct.FieldsEntry",
        "kubernetes.Quantity",
        "kubernetes.URL",
        "list",
        "map",
        "optional_type",
    }
)
_NO_KEYS: Final = {
    "bytes": "types.Bytes",
    "kubernetes.NamedFormat": "cel.Format",
    "kubernetes.Semver": "cel.Semver",
}


class Crashed(Exception):
    """Upstream panics here, on a key of a map or when it counts a call: the evaluation ends, whatever would have absorbed a failure."""


def to_key(value: Any) -> Any:
    """A map key as the dictionaries hold it.

    Raises:
        Crashed: the value cannot be a key.
    """
    kind = type(value)
    if kind is str or kind is int:
        return value
    name = type_name(value)
    if name in _NO_KEYS:
        raise Crashed(f"runtime error: hash of unhashable type {_NO_KEYS[name]}")
    if name in _OWN_KEYS or value != value:  # noqa: PLR0124 - NaN, which Go never finds again
        return OwnKey(value)
    return Key(name, value)


def from_key(key: Any) -> Any:
    """The value behind a key."""
    return key.value if isinstance(key, Key | OwnKey) else key


MISSING: Final = object()
"""What `find` returns when there is nothing."""


def find(entries: dict[Any, Any], key: Any) -> Any:
    """A member of a map; numbers find keys of the same value and another type.

    Raises:
        Crashed: the value cannot be a key.
    """
    if entries and not (isinstance(entries, DomainMap | NameMap) and type(key) is not str):
        for candidate in _candidates(key):
            if candidate in entries:
                return entries[candidate]
    return MISSING


def look_up(entries: dict[Any, Any], key: Any) -> Any:
    """As `find`, but what is not in a map of domains is an empty map (alloc L-6)."""
    found = find(entries, key)
    return NO_ENTRIES if found is MISSING and isinstance(entries, DomainMap) else found


def _candidates(key: Any) -> tuple[Any, ...]:
    kind = type(key)
    if kind is str:
        return (key,)
    own = to_key(key)
    if kind is int:
        return (own, to_key(UInt(key)))
    if kind is UInt:
        return (own, int(key))
    if kind is float and key.is_integer():
        return (own, int(key), to_key(UInt(int(key))))
    return (own,)


def equal(left: Any, right: Any) -> bool:
    """CEL's `==` at run time: heterogeneous, numbers by value, everything else by type and value.

    Raises:
        CelRuntimeError: a quantity, version, address or the like on the left, something else on the right.
    """
    kind, other = type(left), type(right)
    if left is None or right is None:
        return left is right
    if kind in _NUMBERS:
        return other in _NUMBERS and _equal_numbers(left, right)
    if kind in _STRICT:
        return _strictly_equal(left, right)
    if kind is tuple:
        return other is tuple and len(left) == len(right) and all(map(_equal_members, left, right))
    if kind in MAPS:
        return (
            isinstance(right, dict)
            and len(left) == len(right)
            and all(_equal_entries(member, look_up(right, from_key(key))) for key, member in left.items())
        )
    if kind is Optional:
        return other is Optional and _equal_optionals(left, right)
    if kind in _RECORDS:
        return kind is other and equal(left.fields, right.fields)
    return kind is other and bool(left == right)


def _equal_numbers(left: Any, right: Any) -> bool:
    """By value; whole numbers are compared with doubles as doubles, as cel-go does it."""
    if isinstance(left, float) or isinstance(right, float):
        return float(left) == float(right)
    return bool(left == right)


def _equal_members(left: Any, right: Any) -> bool:
    """Equality inside of lists and maps, where cel-go takes members that cannot be compared for equal ones."""
    try:
        return equal(left, right)
    except CelRuntimeError:
        return True


def _equal_entries(left: Any, right: Any) -> bool:
    return right is not MISSING and _equal_members(left, right)


def _strictly_equal(left: Any, right: Any) -> bool:
    if isinstance(left, Semver):
        if type(right) is Semver:
            return left.compare(right) == 0
    elif type(right) is (Quantity if type(left) is Computed else type(left)):
        return bool(left == right)
    raise CelRuntimeError("no such overload")


def _equal_optionals(left: Optional, right: Optional) -> bool:
    if not left.present or not right.present:
        return left.present == right.present
    return equal(left.value, right.value)


_GO_NAMES: Final = {
    "bool": "types.Bool",
    "int": "types.Int",
    "uint": "types.Uint",
    "double": "types.Double",
    "string": "types.String",
    "bytes": "types.Bytes",
    "google.protobuf.Duration": "types.Duration",
    "google.protobuf.Timestamp": "types.Timestamp",
    "google.protobuf.Empty": "*types.protoObj",
    "google.protobuf.Struct.FieldsEntry": "*types.protoObj",
    "null_type": "types.Null",
    "optional_type": "*types.Optional",
    "type": "*types.Type",
    "list": "*types.baseList",
    "map": "*types.baseMap",
    "kubernetes.NamedFormat": "cel.Format",
    "kubernetes.Quantity": "cel.Quantity",
    "kubernetes.Semver": "cel.Semver",
    "kubernetes.URL": "cel.URL",
    "net.CIDR": "cel.CIDR",
    "net.IP": "cel.IP",
}
"""Types of CEL → types of Go that upstream's errors give away."""


def go_name(value: Any) -> str:
    """The type of a value, or of a failure, as upstream's errors print it where they let Go do so."""
    if isinstance(value, CelRuntimeError):
        return "*types.Err"
    if isinstance(value, DomainMap):
        return "cel.mapper"
    name = type_name(value)
    return _GO_NAMES.get(name, name)
