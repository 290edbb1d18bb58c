"""Bodies in protobuf, as kubectl sends them for `create namespace`, `create configmap`, `auth can-i` and their like.

Called by `requests`. The wire format is read in full, the messages only as far as the table goes; a field that is not in it refuses the
body, since dropping it silently would store something else than was sent. Answers are always JSON, which these clients accept.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from dra_operator.testing.fakeapi.failures import bad_request, no_protobuf

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dra_operator.testing.fakeapi.objects import Obj

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"

_MAGIC = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

Message = dict[int, tuple[str, str]]
"""Name and type of each field by number: `string`, `bytes`, `bool`, `int`, a message, `[]type`, `{}string` or `{}bytes`."""

_WITH_METADATA: Message = {1: ("metadata", "ObjectMeta")}
_ROLE: Message = {**_WITH_METADATA, 2: ("rules", "[]PolicyRule")}
_BINDING: Message = {**_WITH_METADATA, 2: ("subjects", "[]Subject"), 3: ("roleRef", "RoleRef")}
_MESSAGES: Mapping[str, Message] = {
    "ObjectMeta": {
        1: ("name", "string"),
        2: ("generateName", "string"),
        3: ("namespace", "string"),
        4: ("selfLink", "string"),
        5: ("uid", "string"),
        6: ("resourceVersion", "string"),
        7: ("generation", "int"),
        8: ("creationTimestamp", "Nothing"),
        11: ("labels", "{}string"),
        12: ("annotations", "{}string"),
        14: ("finalizers", "[]string"),
    },
    "Nothing": {},
    "Namespace": {**_WITH_METADATA, 2: ("spec", "NamespaceSpec"), 3: ("status", "NamespaceStatus")},
    "NamespaceSpec": {1: ("finalizers", "[]string")},
    "NamespaceStatus": {1: ("phase", "string")},
    "ServiceAccount": {**_WITH_METADATA, 4: ("automountServiceAccountToken", "bool")},
    "ConfigMap": {
        **_WITH_METADATA,
        2: ("data", "{}string"),
        3: ("binaryData", "{}bytes"),
        4: ("immutable", "bool"),
    },
    "Secret": {
        **_WITH_METADATA,
        2: ("data", "{}bytes"),
        3: ("type", "string"),
        4: ("stringData", "{}string"),
        5: ("immutable", "bool"),
    },
    "Role": _ROLE,
    "ClusterRole": {**_ROLE, 3: ("aggregationRule", "AggregationRule")},
    "AggregationRule": {1: ("clusterRoleSelectors", "[]LabelSelector")},
    "LabelSelector": {1: ("matchLabels", "{}string")},
    "PolicyRule": {
        1: ("verbs", "[]string"),
        2: ("apiGroups", "[]string"),
        3: ("resources", "[]string"),
        4: ("resourceNames", "[]string"),
        5: ("nonResourceURLs", "[]string"),
    },
    "RoleBinding": _BINDING,
    "ClusterRoleBinding": _BINDING,
    "Subject": {1: ("kind", "string"), 2: ("apiGroup", "string"), 3: ("name", "string"), 4: ("namespace", "string")},
    "RoleRef": {1: ("apiGroup", "string"), 2: ("kind", "string"), 3: ("name", "string")},
    "PriorityClass": {
        **_WITH_METADATA,
        2: ("value", "int"),
        3: ("globalDefault", "bool"),
        4: ("description", "string"),
        5: ("preemptionPolicy", "string"),
    },
    "SelfSubjectAccessReview": {
        **_WITH_METADATA,
        2: ("spec", "SelfSubjectAccessReviewSpec"),
        3: ("status", "SubjectAccessReviewStatus"),
    },
    "SelfSubjectAccessReviewSpec": {
        1: ("resourceAttributes", "ResourceAttributes"),
        2: ("nonResourceAttributes", "NonResourceAttributes"),
    },
    "ResourceAttributes": {
        1: ("namespace", "string"),
        2: ("verb", "string"),
        3: ("group", "string"),
        4: ("version", "string"),
        5: ("resource", "string"),
        6: ("subresource", "string"),
        7: ("name", "string"),
    },
    "NonResourceAttributes": {1: ("path", "string"), 2: ("verb", "string")},
    "SubjectAccessReviewStatus": {1: ("allowed", "bool"), 2: ("reason", "string"), 3: ("evaluationError", "string")},
    "SelfSubjectRulesReview": {
        **_WITH_METADATA,
        2: ("spec", "SelfSubjectRulesReviewSpec"),
        3: ("status", "SubjectRulesReviewStatus"),
    },
    "SelfSubjectRulesReviewSpec": {1: ("namespace", "string")},
    "SubjectRulesReviewStatus": {3: ("incomplete", "bool"), 4: ("evaluationError", "string")},
    "SelfSubjectReview": {**_WITH_METADATA, 2: ("status", "SelfSubjectReviewStatus")},
    "SelfSubjectReviewStatus": {1: ("userInfo", "Nothing")},
    "TokenRequest": {**_WITH_METADATA, 2: ("spec", "TokenRequestSpec"), 3: ("status", "TokenRequestStatus")},
    "TokenRequestSpec": {1: ("audiences", "[]string"), 4: ("expirationSeconds", "int")},
    "TokenRequestStatus": {1: ("token", "string"), 2: ("expirationTimestamp", "Nothing")},
    "TypeMeta": {1: ("apiVersion", "string"), 2: ("kind", "string")},
    "Unknown": {
        1: ("typeMeta", "TypeMeta"),
        2: ("raw", "binary"),
        3: ("contentEncoding", "string"),
        4: ("contentType", "string"),
    },
}  # fmt: skip


def decoded_protobuf(raw: bytes) -> Obj:
    """The object in a body.

    Raises:
        StatusError: 400 (no protobuf of Kubernetes), 415 (a kind or field that is not known here).
    """
    if not raw.startswith(_MAGIC):
        raise bad_request("the body is no Kubernetes object in protobuf")
    try:
        envelope = _message("Unknown", raw[len(_MAGIC) :])
        head = envelope.get("typeMeta") or {}
        if head.get("kind") not in _MESSAGES:
            raise no_protobuf()
        return {**head, **_message(head["kind"], envelope.get("raw", b""))}
    except (IndexError, UnicodeDecodeError) as error:
        raise bad_request(f"error decoding the body: {error}") from error


def _message(name: str, raw: bytes) -> Obj:
    """One message; zero values, which these encoders always write, are left out."""
    fields = _MESSAGES[name]
    found: Obj = {}
    for number, value in _wire(raw):
        if number not in fields:
            if value:
                raise no_protobuf()
            continue
        field, kind = fields[number]
        if kind.startswith("[]"):
            found.setdefault(field, []).append(_value(kind[2:], value))
        elif kind.startswith("{}"):
            found.setdefault(field, {}).update(_entry(kind[2:], value))
        elif read := _value(kind, value):
            found[field] = read
    return found


def _value(kind: str, value: Any) -> Any:
    match kind:
        case "string":
            return value.decode()
        case "bytes":
            return base64.b64encode(value).decode()
        case "binary":
            return value
        case "bool":
            return bool(value)
        case "int":
            return value - (1 << 64) if value >= 1 << 63 else value
    return _message(kind, value)


def _entry(kind: str, raw: bytes) -> Obj:
    pair = dict(_wire(raw))
    return {pair.get(1, b"").decode(): _value(kind, pair.get(2, b""))}


def _wire(raw: bytes) -> Iterator[tuple[int, Any]]:
    """Field numbers and values: whole numbers or bytes."""
    at = 0
    while at < len(raw):
        tag, at = _varint(raw, at)
        if tag & 7 == _VARINT:
            value, at = _varint(raw, at)
            yield tag >> 3, value
            continue
        if tag & 7 == _BYTES:
            size, at = _varint(raw, at)
        else:
            size = {_FIXED64: 8, _FIXED32: 4}.get(tag & 7, len(raw))
        if at + size > len(raw):
            raise IndexError("the message ends too early")
        yield tag >> 3, raw[at : at + size]
        at += size


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = raw[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
        shift += 7
