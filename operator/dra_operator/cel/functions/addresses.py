"""IP addresses and networks as Go's `net/netip` reads them: what it takes, and why it refuses the rest, in its words.

Python's `ipaddress` takes nearly the same, but says nothing that users could see from Kubernetes; it prints addresses here. Nothing of CEL
belongs here but the two values.
"""

from __future__ import annotations

import re
import string
from typing import Final, NoReturn

from dra_operator.cel.types.values import CIDR, INT_MAX, IP

_WIDTHS: Final = {4: 32, 6: 128}
_OCTETS: Final = 4
_OCTET: Final = 255
_GROUPS: Final = 8
_BEFORE_IPV4: Final = 6
_HEX_DIGITS: Final = 4


class Malformed(ValueError):
    """Text that is no address, network or URL; the message is Go's."""


_ESCAPES: Final = {
    "\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v", "\\": r"\\", '"': r"\"",
}  # fmt: skip
_ASCII: Final = 0x80
_BYTES: Final = 0xDC00
"""Where Python keeps bytes that are no UTF-8 (surrogateescape)."""
_LAST_BYTE: Final = 0xDCFF
_BASIC: Final = 0x10000


def quoted(text: str) -> str:
    """Text in quotes as Go prints it (`%q`)."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(char: str) -> str:
    code = ord(char)
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    if _BYTES <= code <= _LAST_BYTE:
        return f"\\x{code - _BYTES:02x}"
    if code < _ASCII:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < _BASIC else f"\\U{code:08x}"


def width(address: IP) -> int:
    """Bits of addresses of this family."""
    return _WIDTHS[address.family]


def parse_address(text: str) -> tuple[IP, str]:
    """An address, and the zone behind it.

    Raises:
        Malformed: it is none.
    """
    first = re.search(r"[.:%]", text)
    if first is None:
        raise _malformed(text, "unable to parse IP")
    if first[0] == "%":
        raise _malformed(text, "missing IPv6 address")
    if first[0] == ".":
        return IP(4, int.from_bytes(_octets(text, text))), ""
    return _Ipv6(text).parse()


def _malformed(text: str, reason: str, at: str = "") -> Malformed:
    place = f" (at {quoted(at)})" if at else ""
    return Malformed(f"ParseAddr({quoted(text)}): {reason}{place}")


def _octets(text: str, part: str) -> bytes:
    """The four numbers of an IPv4 address, which may be the end of the text."""
    octets, digits = bytearray(), ""
    for number, char in enumerate(part):
        if char.isascii() and char.isdigit():
            digits = _longer(text, digits, char)
        elif char != ".":
            raise _malformed(text, "unexpected character", part[number:])
        elif not digits or number == len(part) - 1:
            raise _malformed(text, "IPv4 field must have at least one digit", part[number:])
        elif len(octets) == _OCTETS - 1:
            raise _malformed(text, "IPv4 address too long")
        else:
            octets.append(int(digits))
            digits = ""
    if len(octets) < _OCTETS - 1:
        raise _malformed(text, "IPv4 address too short")
    octets.append(int(digits))
    return bytes(octets)


def _longer(text: str, digits: str, char: str) -> str:
    if digits == "0":
        raise _malformed(text, "IPv4 field has octet with leading zero")
    if int(digits + char) > _OCTET:
        raise _malformed(text, "IPv4 field has value >255")
    return digits + char


class _Ipv6:
    """Reads one IPv6 address from left to right; groups of 16 bits, with a gap where `::` was."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._rest, self._percent, self._zone = text.partition("%")
        self._groups: list[int] = []
        self._gap: int | None = None

    def parse(self) -> tuple[IP, str]:
        if self._percent and not self._zone:
            raise _malformed(self._text, "zone must be a non-empty string")
        if self._rest.startswith("::"):
            self._gap, self._rest = 0, self._rest[2:]
        more = bool(self._rest) or self._gap is None
        while more and len(self._groups) < _GROUPS:
            more = self._group()
        if self._rest:
            self._refuse("trailing garbage after address")
        self._fill()
        return IP(
            6, sum(group << 16 * place for place, group in enumerate(reversed(self._groups)))
        ), self._zone

    def _refuse(self, reason: str) -> NoReturn:
        raise _malformed(self._text, reason, self._rest)

    def _group(self) -> bool:
        """Reads one group and what separates it from the next one; whether there is a next one."""
        digits = self._rest[: len(self._rest) - len(self._rest.lstrip(string.hexdigits))]
        if len(digits) > _HEX_DIGITS:
            self._refuse("each group must have 4 or less digits")
        if not digits:
            self._refuse("each colon-separated field must have at least one digit")
        behind = self._rest[len(digits) :]
        if behind.startswith("."):
            self._embedded()
            return False
        self._groups.append(int(digits, 16))
        self._rest = behind
        return bool(behind) and self._separator()

    def _embedded(self) -> None:
        """An IPv4 address for the last two groups."""
        if self._gap is None and len(self._groups) != _BEFORE_IPV4:
            self._refuse("embedded IPv4 address must replace the final 2 fields of the address")
        if len(self._groups) > _BEFORE_IPV4:
            self._refuse("too many hex fields to fit an embedded IPv4 at the end of the address")
        number = int.from_bytes(_octets(self._text, self._rest))
        self._groups += [number >> 16, number & 0xFFFF]
        self._rest = ""

    def _separator(self) -> bool:
        if self._rest[0] != ":":
            self._refuse("unexpected character, want colon")
        if self._rest == ":":
            self._refuse("colon must be followed by more characters")
        self._rest = self._rest[1:]
        if self._rest[0] != ":":
            return True
        if self._gap is not None:
            self._refuse("multiple :: in address")
        self._gap, self._rest = len(self._groups), self._rest[1:]
        return bool(self._rest)

    def _fill(self) -> None:
        """Zeros for the gap."""
        missing = _GROUPS - len(self._groups)
        if missing and self._gap is None:
            raise _malformed(self._text, "address string too short")
        if not missing and self._gap is not None:
            raise _malformed(self._text, "the :: must expand to at least one field of zeros")
        if self._gap is not None:
            self._groups[self._gap : self._gap] = [0] * missing


def parse_network(text: str) -> CIDR:
    """A network; bits behind its prefix are kept.

    Raises:
        Malformed: it is none.
    """
    before, slash, bits = text.rpartition("/")
    if not slash:
        raise _no_network(text, "no '/'")
    try:
        address, zone = parse_address(before)
    except Malformed as error:
        raise _no_network(text, str(error)) from error
    if zone:
        raise _no_network(text, "IPv6 zones cannot be present in a prefix")
    if not re.fullmatch("[0-9]|[1-9][0-9]{1,18}", bits) or int(bits) > INT_MAX:
        raise _no_network(text, f"bad bits after slash: {quoted(bits)}")
    if int(bits) > width(address):
        raise _no_network(text, "prefix length out of range")
    return CIDR(address, int(bits))


def _no_network(text: str, reason: str) -> Malformed:
    return Malformed(f"netip.ParsePrefix({quoted(text)}): {reason}")


def masked(network: CIDR) -> CIDR:
    """The network with nothing behind its prefix."""
    rest = width(network.address) - network.bits
    return CIDR(IP(network.address.family, network.address.number >> rest << rest), network.bits)


def covers(network: CIDR, address: IP) -> bool:
    """Whether the address is in the network; those of another family are not."""
    rest = width(network.address) - network.bits
    return (
        network.address.family == address.family and network.address.number >> rest == address.number >> rest
    )
