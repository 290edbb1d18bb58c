"""Semantic versions, as the library has them that upstream uses: strict or lenient when read, compared without build metadata.

Its words for what is no version are here as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import semver

from dra_operator.errors import CelRuntimeError, CelUnsupported

from .quoting import go_quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

_LARGEST: Final = 2**64 - 1


@dataclass(frozen=True, slots=True, order=False, eq=False)
class Semver:
    """A semantic version; build metadata does not count when comparing (as in upstream's library)."""

    version: semver.Version

    @classmethod
    def parse(cls, text: str) -> Semver:
        """Parse a strict version.

        Raises:
            CelRuntimeError: in upstream's words where they are simple.
        """
        return _parse_semver(text)

    @classmethod
    def normalized(cls, text: str) -> Semver:
        """Parse leniently: a leading v, leading zeros and a missing minor or patch number are mended.

        Raises:
            CelRuntimeError: it still is no version.
        """
        parts = [_without_zeros(part) for part in text.removeprefix("v").split(".", 2)]
        if len(parts) < _ELEMENTS and any(char in parts[-1] for char in "+-"):
            raise CelRuntimeError("short version cannot contain PreRelease/Build meta data")
        return _parse_semver(".".join([*parts, "0", "0"][: max(_ELEMENTS, len(parts))]))

    def compare(self, other: Semver) -> int:
        """-1, 0 or 1."""
        return self.version.compare(other.version)


_ELEMENTS: Final = 3


def _without_zeros(part: str) -> str:
    if len(part) <= 1:
        return part
    stripped = part.lstrip("0")
    return stripped if stripped[:1].isdigit() else f"0{stripped}"


_KEPT: Final = 1024
"""Characters of a version that is kept; attributes have 64 at most (alloc X-1)."""

_LONGEST_NUMBER: Final = 20


LONGEST: Final = 10_240
"""Characters of a version: those of an expression. It is read in one go, and compared in one."""


def _parse_semver(text: str) -> Semver:
    if len(text) > LONGEST:
        raise CelUnsupported("CEL: so long a version is not supported")
    return _kept_semver(text) if len(text) <= _KEPT else _read_semver(text)


def _read_semver(text: str) -> Semver:
    try:
        found = semver.Version.parse(text) if text.isascii() else None
    except ValueError:
        found = None
    if found is None or any(map(_is_too_large, _numbers(found))):
        raise CelRuntimeError(_semver_fault(text))
    return Semver(found)


_kept_semver: Final = lru_cache(maxsize=4096)(_read_semver)


def _numbers(version: semver.Version) -> Iterator[str]:
    yield from map(str, (version.major, version.minor, version.patch))
    yield from (part for part in (version.prerelease or "").split(".") if part.isdigit())


def _is_too_large(digits: str) -> bool:
    return len(digits) > _LONGEST_NUMBER or int(digits) > _LARGEST


_IDENTIFIER = re.compile(r"[0-9A-Za-z-]*")


def _semver_fault(text: str) -> str:
    """What upstream's parser of versions finds first."""
    if not text:
        return "Version string empty"
    parts = text.split(".", 2)
    if len(parts) < _ELEMENTS:
        return "No Major.Minor.Patch elements found"
    rest, plus, build = parts[2].partition("+")
    patch, minus, prerelease = rest.partition("-")
    faults = [
        *(
            _number_fault(part, name)
            for name, part in zip(("major", "minor", "patch"), (*parts[:2], patch), strict=True)
        ),
        *(map(_prerelease_fault, prerelease.split(".")) if minus else ()),
        *(map(_build_fault, build.split(".")) if plus else ()),
    ]
    return next(filter(None, faults), "")


def _number_fault(part: str, name: str) -> str:
    if not (part.isascii() and (part.isdigit() or not part)):
        return f"Invalid character(s) found in {name} number {go_quoted(part)}"
    if len(part) > 1 and part[0] == "0":
        return f"{name.capitalize()} number must not contain leading zeroes {go_quoted(part)}"
    return _range_fault(part)


def _range_fault(digits: str) -> str:
    if not digits:
        return 'strconv.ParseUint: parsing "": invalid syntax'
    return f'strconv.ParseUint: parsing "{digits}": value out of range' if _is_too_large(digits) else ""


def _prerelease_fault(part: str) -> str:
    if not part:
        return "Prerelease is empty"
    if part.isascii() and part.isdigit():
        if len(part) > 1 and part[0] == "0":
            return f"Numeric PreRelease version must not contain leading zeroes {go_quoted(part)}"
        return _range_fault(part)
    return (
        "" if _IDENTIFIER.fullmatch(part) else f"Invalid character(s) found in prerelease {go_quoted(part)}"
    )


def _build_fault(part: str) -> str:
    if not part:
        return "Build meta data is empty"
    return (
        ""
        if _IDENTIFIER.fullmatch(part)
        else f"Invalid character(s) found in build meta data {go_quoted(part)}"
    )
