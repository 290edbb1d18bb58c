"""What `kubectl dra lint` takes, the API server takes; what lint calls an error, it refuses.

The embedded server measures expressions without compiling them: for these cases, and for unknown fields, only the real one counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dra_operator.lint import CODES, ERROR, documents
from tests.contract.client import REAL
from tests.mistakes import CASES

if TYPE_CHECKING:
    from tests.contract.client import Client

PLURALS = {
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "DeviceTaintRule": "/apis/resource.k8s.io/v1/devicetaintrules",
    "ResourceClaim": "/apis/resource.k8s.io/v1/namespaces/{ns}/resourceclaims",
    "ResourceClaimTemplate": "/apis/resource.k8s.io/v1/namespaces/{ns}/resourceclaimtemplates",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
    "Pod": "/api/v1/namespaces/{ns}/pods",
}
ONLY_REAL = frozenset({"CelInvalid", "CelTooCostly"})


async def test_what_lint_calls_an_error_is_refused_and_the_rest_is_taken(api: Client) -> None:
    wrong = []
    for case in CASES:
        if not case.served or (not REAL and ONLY_REAL & set(case.codes)):
            continue
        (document,) = documents("made.yaml", case.text)
        refused = await refusal(api, document.value)
        expected = any(CODES[code].severity == ERROR for code in case.codes)
        if bool(refused) != expected:
            wrong.append(f"{case.name}: {refused or 'accepted'}")
    assert not wrong, "\n".join(wrong)


async def refusal(api: Client, obj: dict[str, Any]) -> str:
    answer = await api.create(PLURALS[obj["kind"]], obj, dryRun="All", fieldValidation="Strict")
    return "" if answer.code == 201 else str(answer.body["message"])
