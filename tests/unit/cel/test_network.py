"""Addresses, networks and URLs (Kubernetes' CEL libraries; Go's `net/netip` and `net/url`)."""

from __future__ import annotations

import pytest

from dra_operator.cel.functions.addresses import Malformed, parse_address, parse_network, quoted
from dra_operator.cel.functions.urls import parameters, parse_request, parse_url
from dra_operator.errors import CelCompileError, CelRuntimeError, CelUnsupported

from .build import matches

ADDRESSES = {
    "127.0.0.1": "127.0.0.1",
    "0.0.0.0": "0.0.0.0",  # noqa: S104 -- an address, no socket
    "::": "::",
    "::1": "::1",
    "2001:DB8::ABCD": "2001:db8::abcd",
    "2001:db8:0:0:0:0:0:1": "2001:db8::1",
    "1:2:3:4:5:6:7::": "1:2:3:4:5:6:7:0",
    "::2:3:4:5:6:7:8": "0:2:3:4:5:6:7:8",
    "1:0:0:2:0:0:0:3": "1:0:0:2::3",
    "64:ff9b::1.2.3.4": "64:ff9b::102:304",
    "1:2:3:4:5:6:1.2.3.4": "1:2:3:4:5:6:102:304",
}


@pytest.mark.parametrize(("text", "canonical"), ADDRESSES.items())
def test_address(text: str, canonical: str) -> None:
    address, zone = parse_address(text)
    assert (str(address), zone) == (canonical, "")


NO_ADDRESSES = {
    "": "unable to parse IP",
    "12": "unable to parse IP",
    "%eth0": "missing IPv6 address",
    "1.2.3": "IPv4 address too short",
    "1.2.3.4.5": "IPv4 address too long",
    "1.2.3.256": "IPv4 field has value >255",
    "1.2.3.04": "IPv4 field has octet with leading zero",
    "1..3.4": 'IPv4 field must have at least one digit (at ".3.4")',
    "1.2.3.4.": 'IPv4 field must have at least one digit (at ".")',
    "1.2.3.4 ": 'unexpected character (at " ")',
    "1.2.3.4/8": 'unexpected character (at "/8")',
    ":1": 'each colon-separated field must have at least one digit (at ":1")',
    ":::1": 'each colon-separated field must have at least one digit (at ":1")',
    "1:2": "address string too short",
    "1:2:3:4:5:6:7:8:9": 'trailing garbage after address (at "9")',
    "1:2:3:4:5:6:7:8::": "the :: must expand to at least one field of zeros",
    "1::2:3:4:5:6:7:8": "the :: must expand to at least one field of zeros",
    "1::2::3": 'multiple :: in address (at ":3")',
    "12345::": 'each group must have 4 or less digits (at "12345::")',
    "1:g::": 'each colon-separated field must have at least one digit (at "g::")',
    "1g::": 'unexpected character, want colon (at "g::")',
    "1:2:": 'colon must be followed by more characters (at ":")',
    "1:1.2.3.4": 'embedded IPv4 address must replace the final 2 fields of the address (at "1.2.3.4")',
    "::1:2:3:4:5:6:7:1.2.3.4": 'too many hex fields to fit an embedded IPv4 at the end of the address (at "1.2.3.4")',
    "::1%": "zone must be a non-empty string",
}


@pytest.mark.parametrize(("text", "reason"), NO_ADDRESSES.items())
def test_no_address(text: str, reason: str) -> None:
    with pytest.raises(Malformed) as caught:
        parse_address(text)
    assert str(caught.value) == f'ParseAddr("{text}"): {reason}'


NO_NETWORKS = {
    "10.0.0.0": "no '/'",
    "10.0.0.0/": 'bad bits after slash: ""',
    "10.0.0.0/08": 'bad bits after slash: "08"',
    "10.0.0.0/-1": 'bad bits after slash: "-1"',
    "10.0.0.0/+8": 'bad bits after slash: "+8"',
    "10.0.0.0/9223372036854775808": 'bad bits after slash: "9223372036854775808"',
    "10.0.0.0/9223372036854775807": "prefix length out of range",
    "10.0.0.0/33": "prefix length out of range",
    "::/129": "prefix length out of range",
    "fe80::%eth0/64": "IPv6 zones cannot be present in a prefix",
    "10/8": 'ParseAddr("10"): unable to parse IP',
}


@pytest.mark.parametrize(("text", "reason"), NO_NETWORKS.items())
def test_no_network(text: str, reason: str) -> None:
    with pytest.raises(Malformed) as caught:
        parse_network(text)
    assert str(caught.value) == f'netip.ParsePrefix("{text}"): {reason}'


def test_texts_in_messages_are_quoted_as_go_does() -> None:
    assert quoted('a"\\\n\x01\x85é😀\udcff') == r'"a\"\\\n\x01\u0085é😀\xff"'


URLS = {
    "https://user:pass@example.com:80/path?query=val#fragment": (
        "https",
        "example.com:80",
        "/path",
        "query=val",
    ),
    "/absolute": ("", "", "/absolute", ""),
    "//host/path": ("", "host", "/path", ""),
    "///path": ("", "", "///path", ""),
    "HTTP://Example.COM": ("http", "Example.COM", "", ""),
    "https://[::1]:80/": ("https", "[::1]:80", "/", ""),
    "https://[fe80::1%25en0]/": ("https", "[fe80::1%en0]", "/", ""),
    "mailto:someone@example.com?subject=x": ("mailto", "", "", "subject=x"),
    "http:/path": ("http", "", "/path", ""),
    "postgres://a:1,b:2/db": ("postgres", "a:1,b:2", "/db", ""),
    "http://a%c3%a9/": ("http", "aé", "/", ""),
    "/with space": ("", "", "/with%20space", ""),
    "/%7euser": ("", "", "/%7euser", ""),
    "/%7euser é": ("", "", "/~user%20%C3%A9", ""),
    "/a%2fb": ("", "", "/a%2fb", ""),
    "/[x]:*": ("", "", "/[x]:*", ""),
    "*": ("", "", "*", ""),
    "/?": ("", "", "/", ""),
    "/a#b?c": ("", "", "/a", ""),
}


@pytest.mark.parametrize(("text", "parts"), URLS.items())
def test_url(text: str, parts: tuple[str, str, str, str]) -> None:
    found = parse_url(text)
    assert (found.scheme, found.host, found.path, found.query) == parts


NO_URLS = {
    "": "empty url",
    "../relative": "invalid URI for request",
    ":80": "missing protocol scheme",
    "/a\x01": "net/url: invalid control character in URL",
    "/%zz": 'invalid URL escape "%zz"',
    "/%é": 'invalid URL escape "%é"',
    "/%a": 'invalid URL escape "%a"',
    "https://a:b:c/": 'invalid port ":b:c" after host',
    "postgres://a:1,b:x/": 'invalid port ":x" after host',
    "http://a b/": 'invalid character " " in host name',
    "http://a%20b/": 'invalid URL escape "%20"',
    "http://a\\b/": r'invalid character "\\" in host name',
    "http://x[::1]/": "invalid IP-literal",
    "http://[1.2.3.4]/": "invalid IP-literal",
    "http://[::1/": "missing ']' in host",
    "http://[::1]x/": 'invalid port "x" after host',
    "http://[x]/": 'invalid host: ParseAddr("x"): unable to parse IP',
    "http://[fe80::1%25%2f]/": 'invalid URL escape "%2f"',
    "http://u p@h/": "net/url: invalid userinfo",
    "http://%zz@h/": 'invalid URL escape "%zz"',
}


@pytest.mark.parametrize(("text", "reason"), NO_URLS.items())
def test_no_url(text: str, reason: str) -> None:
    with pytest.raises(Malformed) as caught:
        parse_request(text)
    assert str(caught.value) == f"parse {quoted(text)}: {reason}"


def test_a_fragment_is_looked_at_only_when_the_url_is_made() -> None:
    assert parse_request("/a?b#%zz").query == "b#%zz"
    with pytest.raises(Malformed, match='invalid URL escape "%zz"'):
        parse_url("/a?b#%zz")


def test_a_query_gives_what_can_be_read() -> None:
    assert parameters("a=1&b=x+y%21&a=2&c&=d&%zz=1&e;f=2&&g=h=i") == {
        "a": ("1", "2"),
        "b": ("x y!",),
        "c": ("",),
        "": ("d",),
        "g": ("h=i",),
    }
    assert parameters("&".join(["a"] * 10_000)) == {"a": ("",) * 10_000}
    assert parameters("&".join(["a"] * 10_001)) == {}


TRUE = [
    'ip("127.0.0.1").family() == 4 && ip("::1").family() == 6 && isIP("::1") && !isIP("127.0.0.256")',
    '!isIP("::ffff:1.2.3.4") && !isIP("fe80::1%eth0") && isIP("::1.2.3.4")',
    'ip.isCanonical("2001:db8::abcd") && !ip.isCanonical("2001:DB8::ABCD") && !ip.isCanonical("2001:db8::0:0:0:abcd")',
    'ip("::0:1") == ip("::1") && ip("1.2.3.4") != ip("::1.2.3.4") && string(ip("::0:1")) == "::1"',
    'ip("0.0.0.0").isUnspecified() && ip("::").isUnspecified() && !ip("::1").isUnspecified()',
    'ip("127.9.9.9").isLoopback() && ip("::1").isLoopback() && !ip("128.0.0.1").isLoopback() && !ip("::2").isLoopback()',
    'ip("224.0.0.255").isLinkLocalMulticast() && !ip("224.0.1.1").isLinkLocalMulticast()',
    'ip("ff02::1").isLinkLocalMulticast() && ip("ff12::1").isLinkLocalMulticast() && !ip("ff05::1").isLinkLocalMulticast()',
    'ip("169.254.1.1").isLinkLocalUnicast() && ip("febf::1").isLinkLocalUnicast() && !ip("fec0::1").isLinkLocalUnicast()',
    'ip("10.0.0.1").isGlobalUnicast() && ip("2001:db8::1").isGlobalUnicast() && ip("fec0::1").isGlobalUnicast()',
    '["0.0.0.0", "255.255.255.255", "127.0.0.1", "239.1.1.1", "169.254.0.1", "::", "ff00::1", "fe80::1"].all(a, !ip(a).isGlobalUnicast())',
    'cidr("10.1.2.3/8").ip() == ip("10.1.2.3") && cidr("10.1.2.3/8").masked() == cidr("10.0.0.0/8") && cidr("10.1.2.3/8") != cidr("10.0.0.0/8")',
    'cidr("10.1.2.3/8").prefixLength() == 8 && string(cidr("2001:DB8::/32")) == "2001:db8::/32"',
    'isCIDR("::1/128") && !isCIDR("::1/129") && !isCIDR("1.2.3.4") && !isCIDR("::ffff:1.2.3.4/100")',
    'cidr("10.0.0.0/8").containsIP("10.9.9.9") && cidr("10.0.0.0/8").containsIP(ip("10.9.9.9")) && !cidr("10.0.0.0/8").containsIP("11.0.0.0")',
    '!cidr("0.0.0.0/0").containsIP("::1") && cidr("0.0.0.0/0").containsIP("1.2.3.4") && cidr("::/0").containsIP("::1")',
    'cidr("10.0.0.0/8").containsCIDR("10.1.0.0/16") && cidr("10.0.0.0/8").containsCIDR(cidr("10.0.0.0/8"))',
    '!cidr("10.1.0.0/16").containsCIDR("10.0.0.0/8") && !cidr("10.0.0.0/8").containsCIDR("::/8")',
    'url("https://[::1]:80/a b?x=1&x=2#f").getHostname() == "::1" && url("https://[::1]:80/").getPort() == "80"',
    'url("https://h:80/a b").getEscapedPath() == "/a%20b" && url("https://h:80/").getHost() == "h:80" && url("HTTPS://h").getScheme() == "https"',
    'url("https://h/").getPort() == "" && url("/a").getHostname() == "" && url("postgres://a:x,b:2/").getPort() == "2"',
    'url("/?x=1&x=2&y").getQuery() == {"x": ["1", "2"], "y": [""]} && url("/").getQuery() == {}',
    'url("/?x=%FF").getQuery()["x"][0].size() == 1 && bytes(url("/?x=%FF").getQuery()["x"][0]) == b"\\xff"',
    'isURL("https://a/") && !isURL("https://a:b:c/") && !isURL("../a") && isURL("/a?b#%zz")',
    'url("HTTP://u%3a:p@h:1/%41 b?q#f g") == url("http://u%3A:p@h:1/A%20b?q#f%20g") && url("/a?") != url("/a")',
    'dyn("1.1.1.1") != ip("1.1.1.1") && "/a" != dyn(url("/a")) && [ip("1.1.1.1")] == dyn(["x"])',
    'ip("1.1.1.1") in [ip("1.1.1.1")] && !(dyn(ip("1.1.1.1")) in [dyn("1.1.1.1")]) && dyn(ip("::")) != null',
    'type(ip("::")) == net.IP && type(cidr("::/0")) == net.CIDR && .net.IP != net.CIDR',
    '[1].all(ip, ip.isCanonical("::1"))',
]  # fmt: skip


@pytest.mark.parametrize("expression", TRUE)
def test_holds(expression: str) -> None:
    assert matches(expression) is True


FAILS = {
    'ip("x").family() == 4': 'IP Address "x" parse error during conversion from string: ParseAddr("x"): unable to parse IP',
    'ip("fe80::1%eth0").family() == 6': 'IP address "fe80::1%eth0" with zone value is not allowed',
    'ip.isCanonical("::ffff:1.2.3.4")': 'IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed',
    'cidr("x").prefixLength() == 1': "network address parse error during conversion from string: network address parse error "
    "during conversion from string: netip.ParsePrefix(\"x\"): no '/'",
    'cidr("10.0.0.0/8").containsIP("x")': "no such overload",
    'cidr("10.0.0.0/8").containsCIDR("x")': "netip.ParsePrefix(\"x\"): no '/'",
    'url("x").getHost() == ""': 'URL parse error during conversion from string: parse "x": invalid URI for request',
    'dyn(ip("1.1.1.1")) == "1.1.1.1"': "no such overload",
    'dyn(url("/a")) == "/a"': "no such overload",
    'string(dyn(url("/a"))) == "/a"': "no such overload: string(kubernetes.URL)",
    "dyn(1).family() == 4": "no such overload: family(int)",
    'url("/a").getQuery()["x"] == []': "no such key: x",
    'dyn(ip("::")).map(x, x) == []': "got 'cel.IP', expected iterable type",
    'dyn(ip("::"))': "CEL result of type net.IP could not be converted to bool: type conversion error from 'IP' to 'bool'",
}


@pytest.mark.parametrize(("expression", "message"), FAILS.items())
def test_fails_on_this_device(expression: str, message: str) -> None:
    with pytest.raises(CelRuntimeError) as caught:
        matches(expression)
    assert message in str(caught.value)


REFUSED = {
    'ip("::") == "::"': "found no matching overload for '_==_' applied to '(net.IP, string)'",
    'string(url("/a")) == "/a"': "found no matching overload for 'string' applied to '(kubernetes.URL)'",
    'ip("::") > ip("::")': "found no matching overload for '_>_' applied to '(net.IP, net.IP)'",
    'size(ip("::")) == 16': "found no matching overload for 'size' applied to '(net.IP)'",
    'ip("::")': "must evaluate to bool or the unknown type, not net.IP",
    "ip == 1": "<input>:1:1: undeclared reference to 'ip'",
    "net == 1": "<input>:1:1: undeclared reference to 'net'",
    'kubernetes.URL == type(url("/a"))': "<input>:1:1: undeclared reference to 'kubernetes'",
}


@pytest.mark.parametrize(("expression", "message"), REFUSED.items())
def test_does_not_compile(expression: str, message: str) -> None:
    with pytest.raises(CelCompileError) as caught:
        matches(expression)
    assert message in str(caught.value)


def test_text_that_is_no_utf_8_is_no_crash() -> None:
    """Regular expressions take UTF-8 alone, and so do those who read our messages."""
    with pytest.raises(CelUnsupported, match="no UTF-8"):
        matches('url("/?x=%FF").getQuery()["x"][0].matches("a")')
    with pytest.raises(CelRuntimeError, match="no such key: \ufffd"):
        matches('{"a": true}[url("/?x=%FF").getQuery()["x"][0]]')
