"""URLs as Go's `net/url` reads and writes them, with its words for what it refuses. Python's `urllib` takes nearly everything.

Go works on bytes. So does this module: each byte is a character below 256 (Latin-1), from `_bytes` to `_text`.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass
from typing import Final

from dra_operator.cel.types.values import IP_V4, URL

from .addresses import Malformed, parse_address, quoted


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a URL: the characters that stand for themselves in it, and whether others are refused when it is read."""

    plain: frozenset[str]
    is_host: bool = False
    is_zone: bool = False


_UNRESERVED: Final = frozenset(string.ascii_letters + string.digits + "-_.~")
_PATH: Final = _Part(_UNRESERVED | frozenset("$&+,/:;=@"))
_HOST: Final = _Part(_UNRESERVED | frozenset("!\"$&'()*+,:;<=>[]"), is_host=True)
_ZONE: Final = _Part(_HOST.plain, is_host=True, is_zone=True)
_USER: Final = _Part(_UNRESERVED | frozenset("$&+,;="))
_QUERY: Final = _Part(_UNRESERVED)
_FRAGMENT: Final = _Part(_UNRESERVED | frozenset("!$&()*+,/:;=?@"))

_ENCODED: Final = frozenset("!$&'()*+,;=:@[]%")
"""Characters that are left alone in paths and fragments that came escaped."""

_ASCII: Final = 0x80
_MAX_PARAMETERS: Final = 10_000


def _bytes(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("latin-1")


def _text(data: str) -> str:
    return data.encode("latin-1").decode("utf-8", "surrogateescape")


def _quoted(data: str) -> str:
    return quoted(_text(data))


# ------------------------------------------------------------------ escapes


_ESCAPE: Final = re.compile("%([0-9A-Fa-f]{2})")


def _unescape(data: str, part: _Part) -> str:
    position = 0
    for found in re.finditer("%" if not part.is_host else r"[\x00-\x7f]", data):
        if found.start() < position:
            continue
        if found[0] == "%":
            _check_escape(data[found.start() : found.start() + 3], part)
            position = found.start() + 3
        elif found[0] not in part.plain:
            raise Malformed(f"invalid character {_quoted(found[0])} in host name")
    if part is _QUERY:
        data = data.replace("+", " ")
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), data)


def _check_escape(escape: str, part: _Part) -> None:
    fine = _ESCAPE.fullmatch(escape) is not None
    if fine and part.is_host and escape != "%25":
        code = int(escape[1:], 16)
        # Hosts may escape what is not ASCII, and zones what they may hold unescaped, or a space.
        fine = chr(code) in part.plain | {" "} if part.is_zone else code >= _ASCII
    if not fine:
        raise Malformed(f"invalid URL escape {_quoted(escape)}")


def _escape(data: str, part: _Part) -> str:
    return "".join(char if char in part.plain else f"%{ord(char):02X}" for char in data)


def _canonical(raw: str, part: _Part) -> str:
    """A path or fragment in the escaped form that Go prints: as it came if that is valid, else escaped anew."""
    if all(char in part.plain or char in _ENCODED for char in raw):
        return raw
    return _escape(_unescape(raw, part), part)


# ------------------------------------------------------------------ reading


def parse_request(text: str) -> URL:
    """An absolute URL or an absolute path; what looks like a fragment belongs to the path or query (`url.ParseRequestURI`).

    Raises:
        Malformed: it is none.
    """
    try:
        return _parse(_bytes(text), via_request=True)
    except Malformed as error:
        raise _no_url(text, error) from error


def parse_url(text: str) -> URL:
    """An absolute URL or an absolute path, with a fragment maybe.

    Raises:
        Malformed: it is none.
    """
    parse_request(text)
    before, _, fragment = text.partition("#")
    try:
        url = _parse(_bytes(before), via_request=False)
    except Malformed as error:
        raise _no_url(before, error) from error
    if not fragment:
        return url
    try:
        _unescape(_bytes(fragment), _FRAGMENT)
    except Malformed as error:
        raise _no_url(text, error) from error
    shown = _text(_canonical(_bytes(fragment), _FRAGMENT))
    return URL(f"{url.text}#{shown}", url.scheme, url.host, url.path, url.query)


def _no_url(text: str, error: Malformed) -> Malformed:
    return Malformed(f"parse {quoted(text)}: {error}")


_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")


def _parse(data: str, *, via_request: bool) -> URL:
    if re.search(r"[\x00-\x1f\x7f]", data):
        raise Malformed("net/url: invalid control character in URL")
    if not data and via_request:
        raise Malformed("empty url")
    if data.startswith(":"):
        raise Malformed("missing protocol scheme")
    found = _SCHEME.match(data)
    scheme = found[1].lower() if found else ""
    rest, mark, query = data[found.end() if found else 0 :].partition("?")
    shown_query = mark + query
    if not rest.startswith("/") and data != "*":
        if scheme:
            return _url(f"{scheme}:{rest}{shown_query}", scheme, "", "", query)
        _refuse_relative(rest, via_request=via_request)
    authority, rest = _split(rest, scheme=scheme, via_request=via_request)
    user, host = _authority(scheme, authority) if authority is not None else ("", "")
    _unescape(rest, _PATH)
    path = _canonical(rest, _PATH)
    return _url(_joined(scheme, authority, user, host, path) + shown_query, scheme, host, path, query)


def _url(*parts: str) -> URL:
    return URL(*map(_text, parts))


def _refuse_relative(rest: str, *, via_request: bool) -> None:
    if via_request:
        raise Malformed("invalid URI for request")
    if ":" in rest.partition("/")[0]:
        raise Malformed("first path segment in URL cannot contain colon")


def _split(rest: str, *, scheme: str, via_request: bool) -> tuple[str | None, str]:
    """What stands between `//` and the path, if the URL has that, and the path."""
    may = bool(scheme) or (not via_request and not rest.startswith("///"))
    if not may or not rest.startswith("//"):
        return None, rest
    authority, slash, path = rest[2:].partition("/")
    return authority, slash + path


def _joined(scheme: str, authority: str | None, user: str, host: str, path: str) -> str:
    text = f"{scheme}:" if scheme else ""
    if authority is not None:
        marks = "//" if host or path or user else ""
        text += f"{marks}{user}{_escape(host, _HOST)}"
    return text + path


def _authority(scheme: str, authority: str) -> tuple[str, str]:
    """User information as Go prints it, with its `@`, and the host with its port."""
    info, at, host = authority.rpartition("@")
    host = _host(scheme, host)
    if not at:
        return "", host
    if not all(char in _UNRESERVED or char in "!$&'()*+,;=:%@" for char in info):
        raise Malformed("net/url: invalid userinfo")
    parts = [_escape(_unescape(part, _USER), _USER) for part in info.split(":", 1)]
    return ":".join(parts) + "@", host


def _host(scheme: str, host: str) -> str:
    bracket = host.rfind("[")
    if bracket > 0:
        raise Malformed("invalid IP-literal")
    if bracket == 0:
        return _literal(host)
    first, last = host.find(":"), host.rfind(":")
    if first >= 0:
        # Several hosts with ports are let through, for the URLs of databases.
        _check_port(host[first if scheme in {"http", "https"} else last :])
    return _unescape(host, _HOST)


_PORT: Final = re.compile(r"(?::[0-9]*)?")


def _check_port(port: str) -> None:
    if not _PORT.fullmatch(port):
        raise Malformed(f"invalid port {_quoted(port)} after host")


def _literal(host: str) -> str:
    """An IPv6 address in brackets, with a zone and a port maybe."""
    inside, bracket, port = host[1:].rpartition("]")
    if not bracket:
        raise Malformed("missing ']' in host")
    _check_port(port)
    zone = inside.find("%25")
    name = (
        _unescape(inside, _HOST)
        if zone < 0
        else _unescape(inside[:zone], _HOST) + _unescape(inside[zone:], _ZONE)
    )
    try:
        address, _ = parse_address(_text(name))
    except Malformed as error:
        raise Malformed(f"invalid host: {error}") from error
    if address.family == IP_V4:
        raise Malformed("invalid IP-literal")
    return f"[{name}]{port}"


# ------------------------------------------------------------------ parts


def split_port(host: str) -> tuple[str, str]:
    """The name of a host without brackets, and its port."""
    name, colon, port = host.rpartition(":")
    if not colon or not _PORT.fullmatch(colon + port):
        name, port = host, ""
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    return name, port


def parameters(query: str) -> dict[str, tuple[str, ...]]:
    """The values of a query by name; what cannot be read is left out, and all if there are too many."""
    found: dict[str, list[str]] = {}
    pairs = _bytes(query).split("&")
    for pair in pairs if len(pairs) <= _MAX_PARAMETERS else ():
        name, _, value = pair.partition("=")
        if not pair or ";" in pair:
            continue
        try:
            key, item = (_text(_unescape(part, _QUERY)) for part in (name, value))
        except Malformed:
            continue
        found.setdefault(key, []).append(item)
    return {name: tuple(values) for name, values in found.items()}
