"""Kubernetes' CEL libraries of IP addresses, networks and URLs (k8s.io/apiserver, pkg/cel/library)."""

from __future__ import annotations

from typing import Final

from dra_operator.cel.types.values import CIDR, IP, IP_V4, URL
from dra_operator.errors import CelRuntimeError

from .addresses import Malformed, covers, masked, parse_address, parse_network, quoted
from .registry import Table
from .urls import parameters, parse_request, parse_url, split_port
from .work import spelt

IPS: Final = Table()
CIDRS: Final = Table()
URLS: Final = Table()


# ------------------------------------------------------------------ addresses


@IPS.define("ip(string) -> net.IP", work=spelt)
def ip(text: str) -> IP:
    """An address without a zone; IPv4 addresses in IPv6 are refused."""
    try:
        address, zone = parse_address(text)
    except Malformed as error:
        raise CelRuntimeError(
            f"IP Address {quoted(text)} parse error during conversion from string: {error}"
        ) from error
    if zone:
        raise CelRuntimeError(f"IP address {quoted(text)} with zone value is not allowed")
    if _is_mapped(address):
        raise CelRuntimeError(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return address


def _is_mapped(address: IP) -> bool:
    return address.family != IP_V4 and address.number >> 32 == 0xFFFF  # noqa: PLR2004 -- ::ffff:0:0/96


@IPS.define("isIP(string) -> bool", work=spelt)
def is_ip(text: str) -> bool:
    """Whether `ip` takes it."""
    try:
        ip(text)
    except CelRuntimeError:
        return False
    return True


@IPS.define("ip.isCanonical(string) -> bool", work=spelt)
def is_canonical(text: str) -> bool:
    """Whether the address is written as Go prints it."""
    return str(ip(text)) == text


@IPS.define("string(net.IP) -> string")
def string_of_ip(address: IP) -> str:
    """In canonical form."""
    return str(address)


@IPS.define(".family(net.IP) -> int")
def family(address: IP) -> int:
    """4 or 6."""
    return address.family


@IPS.define(".isUnspecified(net.IP) -> bool")
def is_unspecified(address: IP) -> bool:
    """All zeros."""
    return address.number == 0


def _within(*networks: str) -> tuple[CIDR, ...]:
    return tuple(map(parse_network, networks))


_LOOPBACK: Final = _within("127.0.0.0/8", "::1/128")
_LINK_LOCAL: Final = _within("169.254.0.0/16", "fe80::/10")
_MULTICAST: Final = _within("224.0.0.0/4", "ff00::/8")
_LINK_LOCAL_MULTICAST: Final = _within("224.0.0.0/24", *(f"ff{flags:x}2::/16" for flags in range(16)))
_NOWHERE: Final = _within("0.0.0.0/32", "255.255.255.255/32", "::/128")


def _is_in(address: IP, networks: tuple[CIDR, ...]) -> bool:
    return any(covers(network, address) for network in networks)


@IPS.define(".isLoopback(net.IP) -> bool")
def is_loopback(address: IP) -> bool:
    """The machine itself."""
    return _is_in(address, _LOOPBACK)


@IPS.define(".isLinkLocalMulticast(net.IP) -> bool")
def is_link_local_multicast(address: IP) -> bool:
    """Many on the same link."""
    return _is_in(address, _LINK_LOCAL_MULTICAST)


@IPS.define(".isLinkLocalUnicast(net.IP) -> bool")
def is_link_local_unicast(address: IP) -> bool:
    """One on the same link."""
    return _is_in(address, _LINK_LOCAL)


@IPS.define(".isGlobalUnicast(net.IP) -> bool")
def is_global_unicast(address: IP) -> bool:
    """One anywhere; private addresses are such."""
    return not _is_in(address, _NOWHERE + _LOOPBACK + _MULTICAST + _LINK_LOCAL)


# ------------------------------------------------------------------ networks


@CIDRS.define("cidr(string) -> net.CIDR", work=spelt)
def cidr(text: str) -> CIDR:
    """A network, as an address in it and the length of its prefix."""
    fault = "network address parse error during conversion from string"
    try:
        network = parse_network(text)
    except Malformed as error:
        raise CelRuntimeError(f"{fault}: {fault}: {error}") from error
    if _is_mapped(network.address):
        raise CelRuntimeError(f"{fault}: IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return network


@CIDRS.define("isCIDR(string) -> bool", work=spelt)
def is_cidr(text: str) -> bool:
    """Whether `cidr` takes it."""
    try:
        cidr(text)
    except CelRuntimeError:
        return False
    return True


@CIDRS.define("string(net.CIDR) -> string")
def string_of_cidr(network: CIDR) -> str:
    """As it was given, the address in canonical form."""
    return str(network)


@CIDRS.define(".containsIP(net.CIDR, string) -> bool", work=lambda _, text: spelt(text))
def contains_ip_text(network: CIDR, text: str) -> bool:
    """Whether the address is in the network. Upstream loses the reason why a text is none."""
    try:
        address = ip(text)
    except CelRuntimeError as error:
        raise CelRuntimeError("no such overload") from error
    return covers(network, address)


@CIDRS.define(".containsIP(net.CIDR, net.IP) -> bool")
def contains_ip(network: CIDR, address: IP) -> bool:
    """Whether the address is in the network."""
    return covers(network, address)


@CIDRS.define(".containsCIDR(net.CIDR, string) -> bool", work=lambda _, text: spelt(text))
def contains_cidr_text(network: CIDR, text: str) -> bool:
    """Whether all of the other network is in this one."""
    return contains_cidr(network, cidr(text))


@CIDRS.define(".containsCIDR(net.CIDR, net.CIDR) -> bool")
def contains_cidr(network: CIDR, other: CIDR) -> bool:
    """Whether all of the other network is in this one."""
    return network.bits <= other.bits and covers(network, other.address)


@CIDRS.define(".ip(net.CIDR) -> net.IP")
def cidr_ip(network: CIDR) -> IP:
    """The address that it was given with."""
    return network.address


@CIDRS.define(".masked(net.CIDR) -> net.CIDR")
def cidr_masked(network: CIDR) -> CIDR:
    """The network in its own name: zeros behind the prefix."""
    return masked(network)


@CIDRS.define(".prefixLength(net.CIDR) -> int")
def prefix_length(network: CIDR) -> int:
    """How many bits count."""
    return network.bits


# ------------------------------------------------------------------ URLs


@URLS.define("url(string) -> kubernetes.URL", work=spelt)
def url(text: str) -> URL:
    """An absolute URL, or an absolute path."""
    try:
        return parse_url(text)
    except Malformed as error:
        raise CelRuntimeError(f"URL parse error during conversion from string: {error}") from error


@URLS.define("isURL(string) -> bool", work=spelt)
def is_url(text: str) -> bool:
    """Whether it is an absolute URL or path; upstream does not look at the fragment here."""
    try:
        parse_request(text)
    except Malformed:
        return False
    return True


@URLS.define(".getScheme(kubernetes.URL) -> string")
def get_scheme(value: URL) -> str:
    """In small letters."""
    return value.scheme


@URLS.define(".getHost(kubernetes.URL) -> string")
def get_host(value: URL) -> str:
    """With port, and brackets around IPv6 addresses."""
    return value.host


@URLS.define(".getHostname(kubernetes.URL) -> string")
def get_hostname(value: URL) -> str:
    """Without port and brackets."""
    return split_port(value.host)[0]


@URLS.define(".getPort(kubernetes.URL) -> string")
def get_port(value: URL) -> str:
    """The port, if it is named."""
    return split_port(value.host)[1]


@URLS.define(".getEscapedPath(kubernetes.URL) -> string")
def get_escaped_path(value: URL) -> str:
    """The path, escaped."""
    return value.path


@URLS.define(
    ".getQuery(kubernetes.URL) -> map(string, list(string))", work=lambda value: 8 * len(value.query)
)
def get_query(value: URL) -> dict[str, tuple[str, ...]]:
    """Values by name."""
    return parameters(value.query)
