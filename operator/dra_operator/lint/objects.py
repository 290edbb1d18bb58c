"""The objects in documents, each with its place: items of Lists, and pods in whatever makes pods.

An `Item` is what the other modules look at. It must not judge anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from dra_operator.validation.objects import Obj, dig

from .findings import CODES, ERROR, WARNING, Finding
from .gates import DEFAULT
from .places import Place, Span
from .texts import inner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .places import Path
    from .texts import Document

GROUP: Final = "resource.k8s.io"
KINDS: Final = ("DeviceClass", "DeviceTaintRule", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice")
_LISTS: Final = ("List", *(f"{kind}List" for kind in KINDS))

_STEP = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")


@dataclass(slots=True)
class Item:
    """One object, or the pod that another makes.

    Attributes:
        document: that it stands in.
        prefix: where in the document.
        raw: as it stands there.
        obj: in its v1 form, without what is unknown or of another type than it should be, and with defaults.
        told: v1 paths of which something is told already, so that what follows from it is not told again.
        found: findings so far.
        gates: feature gates that are on.
    """

    document: Document
    prefix: Path
    raw: Obj
    obj: Obj = field(default_factory=dict)
    told: list[Path] = field(default_factory=list)
    found: list[Finding] = field(default_factory=list)
    gates: frozenset[str] = DEFAULT

    @property
    def kind(self) -> str:
        """As the object says it."""
        return str(self.raw.get("kind") or "")

    @property
    def api_version(self) -> str:
        """As the object says it."""
        return str(self.raw.get("apiVersion") or "")

    @property
    def version(self) -> str:
        """The version without the group."""
        return self.api_version.rpartition("/")[2]

    @property
    def is_dra(self) -> bool:
        """Whether it is of a kind of `resource.k8s.io` that is looked at."""
        return self.api_version.partition("/")[0] == GROUP and self.kind in KINDS

    @property
    def is_inner_list(self) -> bool:
        """Whether it is a List among the items of another. Its items are looked at for themselves."""
        return bool(self.prefix) and self.kind.endswith("List") and isinstance(self.raw.get("items"), list)

    @property
    def is_broken_list(self) -> bool:
        """Whether it is a List of which nobody can tell what is in it."""
        is_list = self.kind in _LISTS
        return is_list and self.raw.get("items") is not None and not isinstance(self.raw["items"], list)

    @property
    def namespace(self) -> str:
        """As the object says it; empty if it says none."""
        return str(dig(self.raw, "metadata", "namespace") or "")

    @property
    def name(self) -> str:
        """Its name, or what its name is made of."""
        metadata = dig(self.raw, "metadata") or {}
        return str(dig(metadata, "name") or dig(metadata, "generateName") or "")

    def tell(
        self,
        code: str,
        path: Path,
        message: str,
        *,
        remedy: str = "",
        at_key: bool = False,
        part: tuple[int, int] | None = None,
    ) -> None:
        """Note a finding; no warning about a value as a whole that is refused, as both tell of one fault.

        Args:
            code: of it.
            path: in the v1 form of the object.
            message: what is wrong.
            remedy: what to do; that of the code by default.
            at_key: whether the key is wrong, not the value.
            part: of the value, a string: first character and number of characters.
        """
        real = self._real(path)
        if part is None and CODES[code].severity == WARNING and self._is_refused(written(real)):
            return
        span = self._span(real, at_key=at_key, part=part)
        lines = self.document.lines
        source = lines[span.line] if span.line < len(lines) else ""
        end = span.end_column if span.end_line == span.line else len(source)
        self.found.append(
            Finding(
                code,
                self.document.file,
                span.line + 1,
                span.column + 1,
                max(end, span.column + 1) + 1,
                self.kind,
                self.namespace,
                self.name,
                written(real),
                message,
                remedy or CODES[code].remedy,
                source,
            )
        )

    def _is_refused(self, place: str) -> bool:
        return any(one.path == place and one.severity == ERROR for one in self.found)

    def place(self, path: Path) -> str:
        """The path as a finding there has it."""
        return written(self._real(path))

    def _real(self, path: Path) -> Path:
        """The path in the object as it stands there: other versions have no `exactly`, or a `basic` of devices."""
        real: Path = ()
        for number, step in enumerate(path):
            here = (*self.prefix, *real)
            if (*here, step) in self.document.places:
                real = (*real, step)
            elif (*here, "basic", step) in self.document.places:
                real = (*real, "basic", step)
            elif step != "exactly" or number + 1 == len(path):
                return (*real, *path[number:])
        return real

    def _span(self, path: Path, *, at_key: bool, part: tuple[int, int] | None) -> Span:
        places = self.document.places
        full = (*self.prefix, *path)
        value = self._value(path)
        if part is None and isinstance(value, str) and not at_key and self._is_block(full):
            part = (0, len(value))  # the first line of the text, not what introduces it
        if part is not None:
            found = inner(self.document, full, value, *part) if isinstance(value, str) else None
            if found is not None:
                return found
        here = full
        while here and here not in places:
            here = here[:-1]
        place = places.get(here) or Place(Span(0, 0, 0, 1), Span(0, 0, 0, 1), scalar=True)
        exact = here == full
        return place.value if exact and place.scalar and not at_key else place.key

    def _is_block(self, full: Path) -> bool:
        place = self.document.places.get(full)
        return place is not None and place.scalar and place.value.line != place.value.end_line

    def _value(self, path: Path) -> Any:
        value: Any = self.raw
        for step in path:
            if isinstance(value, dict) and step in value:
                value = value[str(step)]
            elif isinstance(value, list) and isinstance(step, int) and step < len(value):
                value = value[step]
            else:
                return None
        return value

    def is_told(self, path: Path) -> bool:
        """Whether something at or above that place is told already."""
        return any(path[: len(told)] == told for told in self.told)

    def is_told_below(self, path: Path) -> bool:
        """Whether something of a member of that place is told already."""
        return any(told[:-1] == path for told in self.told)


def items(document: Document) -> Iterator[Item]:
    """The objects of a document: itself, or the items of a List, in which further Lists are objects, too."""
    yield from _items(document, document.value, ())


def _items(document: Document, value: Any, prefix: Path) -> Iterator[Item]:
    if not isinstance(value, dict):
        yield Item(document, prefix, {})
        return
    listed = value.get("items")
    if str(value.get("kind") or "").endswith("List") and isinstance(listed, list):
        if prefix:
            yield Item(document, prefix, value)
        for number, item in enumerate(listed):
            yield from _items(document, _with_type(item, value), (*prefix, "items", number))
        return
    yield Item(document, prefix, value)


def _with_type(item: Any, whole: Obj) -> Any:
    """An item of a typed List may leave its type to the List."""
    if not isinstance(item, dict) or "kind" in item or whole.get("kind") == "List":
        return item
    kind = str(whole["kind"]).removesuffix("List")
    return {"apiVersion": whole.get("apiVersion"), "kind": kind, **item}


def pod_specs(obj: Any, path: Path = ()) -> Iterator[tuple[Path, Obj]]:
    """The specs of pods in an object, wherever they are: what has `containers` and speaks of claims."""
    if isinstance(obj, dict):
        if isinstance(obj.get("containers"), list) and _speaks_of_claims(obj):
            yield path, obj
            return
        for name, value in obj.items():
            yield from pod_specs(value, (*path, name))
    elif isinstance(obj, list):
        for number, value in enumerate(obj):
            yield from pod_specs(value, (*path, number))


def _speaks_of_claims(spec: Obj) -> bool:
    lists = [spec.get(field) for field in ("containers", "initContainers")]
    containers = [one for found in lists if isinstance(found, list) for one in found]
    return bool(spec.get("resourceClaims")) or any(dig(one, "resources", "claims") for one in containers)


def written(path: Path) -> str:
    """A path as the API server writes it: numbers, and keys with dots or slashes, in brackets."""
    text = ""
    for step in path:
        if isinstance(step, int) or not re.fullmatch(r"[A-Za-z_]\w*", step):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text


def steps(path: str) -> Path:
    """The path that `written` wrote."""
    return tuple(
        int(found[1]) if found[1] and found[1].isdigit() else found[1] or found[2]
        for found in _STEP.finditer(path)
    )
