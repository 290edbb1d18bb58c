"""What lint can find: the table of codes, and one finding.

Codes are stable: scripts and annotations hang on them. Errors are what the API server refuses; warnings are what it takes, and is wrong all the
same as far as can be seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

ERROR: Final = "error"
WARNING: Final = "warning"

UNREADABLE: Final = "Unreadable"
"""The code that is about no text: what it stands for could not be looked at."""


@dataclass(frozen=True, slots=True)
class Code:
    """A kind of finding: how grave it is, what it says, what to do about it."""

    severity: str
    text: str
    remedy: str


def _error(text: str, remedy: str) -> Code:
    return Code(ERROR, text, remedy)


def _warning(text: str, remedy: str) -> Code:
    return Code(WARNING, text, remedy)


CODES: Final[dict[str, Code]] = {
    # the text
    UNREADABLE: _error("a file or folder that cannot be read; the others are looked at all the same, and the exit status is 2", "correct its name or its rights"),
    "BadYaml": _error("a document is no YAML or JSON; the others are looked at all the same", "mend the text; of templates, lint what `helm template` or `kubectl kustomize` prints"),
    "NotAnObject": _error("a document is no Kubernetes object: `apiVersion` or `kind` is missing, or it is a List within a List, or one whose `items` are no list", "add what is missing, or leave the document out"),
    # its shape
    "UnknownVersion": _error("no Kubernetes has this kind in this version of `resource.k8s.io`", "use `resource.k8s.io/v1`"),
    "WrongVersionBody": _error("the body is of another version than the header: flat requests or `basic` of v1beta1 in v1 or v1beta2, or the other way round", "move the fields, or change `apiVersion`"),
    "UnknownField": _error("there is no such field there; kubectl refuses it, other clients have it dropped without a word", "correct its name or its place"),
    "WrongType": _error("the value is of another type than the field", "quote strings that YAML reads as something else: `no`, `on`, `y`, numbers"),
    "BadQuantity": _error("the text is no quantity", "write `6Gi`, `500m`, `2`, `1e3`; no space, no `B`"),
    # the API server's validation
    "Required": _error("something is missing", "add it"),
    "InvalidValue": _error("a value that is not allowed", ""),
    "Duplicate": _error("a name or value that may stand once only", "rename or remove one"),
    "Forbidden": _error("something that may not be there", "remove it"),
    "NotSupported": _error("none of the values that are allowed", "use one of those in the message"),
    "TooMany": _error("more entries than are allowed", "split the object or leave some out"),
    "TooLong": _error("longer than is allowed", "shorten it"),
    "UnknownRequest": _error("a constraint, config or result names a request that the claim has not", "name a request, or `request/subrequest`; leave `requests` out for all"),
    "UnknownPodClaim": _error("a container wants a claim that its pod does not list", "name an entry of `spec.resourceClaims`"),
    "CelInvalid": _error("an expression does not compile", ""),
    "CelTooCostly": _error("an expression may cost more than the API server allows", "the message says what makes it so: mostly a value of unknown length, such as one out of `.?…orValue(…)`, or loops within each other"),
    "AdminAccessNotAllowed": _error("admin access in a namespace without the label for it", "label the namespace `resource.kubernetes.io/admin-access=true`"),
    # what is legal, and wrong all the same
    "NotUtf8": _warning("bytes that are no UTF-8 text: kubectl puts U+FFFD in their place", "save the file as UTF-8"),
    "DuplicateKey": _warning("a key stands twice in one mapping: kubectl takes the last one without a word, other tools refuse it", "keep one of them"),
    "CelNotChecked": _warning("an expression may be valid, and this release cannot tell", ""),
    "VersionNotServed": _warning("Kubernetes 1.37 serves that version only where it is told to", "use `resource.k8s.io/v1`"),
    "FeatureOff": _warning("a field of a feature that is off by default: such a server drops it without a word", "have the feature gate switched on, or leave the field out"),
    "UnknownClass": _warning("a request names a class that is not there", "correct the name, or create the class first"),
    "UnknownClaim": _warning("a pod names a claim that is not there", "correct the name, or create the claim"),
    "UnknownTemplate": _warning("a pod names a template that is not there: no claim will be made", "correct the name or the namespace, or create the template"),
    "UnknownContainerRequest": _warning("a container wants the devices of a request that its claim has not: the kubelet cannot start it", "name a request of the claim or template"),
    "MisplacedName": _warning("a name that is written as no device has it: its domain as fields, domain and name in one, or fields of a value", 'write `device.attributes["domain"].name`'),
    "UnknownAttribute": _warning("no published device has that attribute; of one that is asked for with `has(…)` or `.?` it is told only if it is nearly a published name", "use a published name; optional chaining hides a wrong one"),
    "UnknownCapacity": _warning("no published device has that capacity; `has(…)` and `.?` as for attributes", "use a published name"),
    "UnknownDomain": _warning("no published device has attributes or capacities of that domain", "use the driver's name, or a published domain"),
    "WrongMap": _warning("published as a capacity and read as an attribute, or the other way round", "read it where it is published"),
    "NeverTrue": _warning("conditions that exclude each other: no device can ever meet all of them", "drop one of them, or use `||`"),
    "MatchesNothing": _warning("no published device meets the selectors; of alternatives (`firstAvailable`) it is told only where none of them can be met", "loosen the selector, or publish such a device"),
    "BadConstant": _warning('a constant that fails on every device that comes to it: `quantity("40GB")`, `semver("12.4")`', 'write `quantity("40Gi")`, `semver("12.4.0")`'),
    "FailsOnDevices": _warning("an expression fails on a device that it may come to, and with it the allocation", "guard the look-up: `has(…)`, or `.?name.orValue(…)`"),
    "ConstraintUnmet": _warning("no device that a request can get has the attribute that a constraint compares", "name an attribute that all of them have, or leave that request out"),
    "ConfigNotUsed": _warning("config for a driver of which no request can get a device", "correct the driver's name"),
    "UnknownDriver": _warning("nearly the name of a driver that publishes devices", "correct the name"),
    "TooManyDevices": _warning("more devices than one claim can hold (32)", "ask for fewer, or spread them over several claims"),
    "TolerationUseless": _warning("a toleration that tolerates nothing", "set `key`, or `operator: Exists` for all taints"),
    "SelectsAllDevices": _warning("a taint rule for all devices of the cluster", "name a driver, pool or device; `effect: None` shows first what it would hit"),
    "SelectsNothing": _warning("a taint rule that selects no device", "set `deviceSelector`, or name what is published"),
    "UpperCaseDriver": _warning("a driver's name with upper-case letters, which the API server warns of", "use lower case"),
    "OwnedElsewhere": _warning("an owner by uid in a slice: a dump of another cluster is deleted at once by the garbage collector", "take `metadata.ownerReferences` off"),
    "UnknownCounter": _warning("a device draws on a counter that its pool has not", "correct the name, or add it to `sharedCounters`"),
}  # fmt: skip
"""Code → what it means, in the order in which an object is looked at."""

REASONS: Final = {
    "FieldValueRequired": "Required",
    "FieldValueInvalid": "InvalidValue",
    "FieldValueDuplicate": "Duplicate",
    "FieldValueForbidden": "Forbidden",
    "FieldValueNotSupported": "NotSupported",
    "FieldValueTooMany": "TooMany",
    "FieldValueTooLong": "TooLong",
    "FieldValueNotFound": "UnknownPodClaim",
    "NotChecked": "CelNotChecked",
}
"""Reason of a cause of validation → code."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    Attributes:
        code: a key of `CODES`.
        file: as it was named; `-` for what came by stdin.
        line, column, end_column: from 1; the end is the first column after it, on the same line.
        kind, namespace, name: of the object; empty where it is none.
        path: in the object, as the API server writes paths; empty for the object as a whole.
        message: what is wrong.
        remedy: what to do; empty where the message says it.
        source: the line of the file.
    """

    code: str
    file: str
    line: int
    column: int
    end_column: int
    kind: str
    namespace: str
    name: str
    path: str
    message: str
    remedy: str
    source: str

    @property
    def severity(self) -> str:
        """`error` or `warning`."""
        return CODES[self.code].severity

    @property
    def about(self) -> str:
        """The object in words: `ResourceClaim team-a/gpu`."""
        name = "/".join(filter(None, (self.namespace, self.name)))
        return f"{self.kind} {name}".strip()

    def to_object(self) -> dict[str, Any]:
        """Its JSON form."""
        return {
            "severity": self.severity,
            "code": self.code,
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "endColumn": self.end_column,
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "path": self.path,
            "message": self.message,
            "remedy": self.remedy,
        }
