"""Events that stand-ins write, each once.

Called by the stand-ins. Nothing is counted or aggregated.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from dra_operator.testing.fakeapi.objects import Obj, meta, timestamp
from dra_operator.testing.fakeapi.options import WriteOptions

if TYPE_CHECKING:
    from dra_operator.testing.fakeapi.machinery import Machinery

EVENTS = ("", "events")


def warn(machinery: Machinery, about: Obj, reason: str, message: str, component: str) -> None:
    """A Warning event about an object, unless the same one is there."""
    metadata = meta(about)
    digest = hashlib.sha256(f"{metadata['uid']}{reason}{message}".encode()).hexdigest()[:16]
    namespace, name = metadata.get("namespace") or "default", f"{metadata['name']}.{digest}"
    if machinery.store.get(EVENTS, (namespace, name)) is not None:
        return
    now = timestamp(machinery.clock())
    event: Obj = {
        "metadata": {"name": name},
        "involvedObject": {
            "apiVersion": about["apiVersion"],
            "kind": about["kind"],
            "name": metadata["name"],
            "namespace": metadata.get("namespace"),
            "uid": metadata["uid"],
        },
        "reason": reason,
        "message": message,
        "type": "Warning",
        "count": 1,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": {"component": component},
        "reportingComponent": component,
    }
    machinery.create(machinery.kinds.stored(EVENTS), namespace, event, WriteOptions(component))
