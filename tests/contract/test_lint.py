"""What `kubectl dra lint` takes, the API server takes; what lint calls an error, it refuses.

The embedded server measures expressions without compiling them: for these cases, and for unknown fields, only the real one counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.lint import CODES, ERROR, documents, look
from tests.contract.client import REAL
from tests.mistakes import CASES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.contract.client import Client
    from tests.contract.kubectl import Kubectl

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


CLASS = (
    "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {{name: made, {0}: {{{1}}}}}\nspec: {{}}\n"
)
COUNT = (
    "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {{name: made}}\n"
    "spec: {{devices: {{requests: [{{name: a, exactly: {{deviceClassName: a, count: {0}}}}}]}}}}\n"
)


@pytest.mark.parametrize(
    "text",
    [
        CLASS.format("labels", "a: y"),
        CLASS.format("labels", "a: off"),
        CLASS.format("annotations", "a: 2024-01-01, b: 12:30:45, y: c, 1: d"),
        CLASS.format("annotations", "a: 1, b: 1"),
        CLASS.format("annotations", "a: b, a: c"),
        COUNT.format("010"),
        COUNT.format("1_0"),
        COUNT.format("1e1"),
        COUNT.format("0o7"),
        COUNT.format("1.5"),
        COUNT.format(".inf"),
        CLASS.format("annotations", "a: &x b, c: &x d, e: *x"),
        CLASS.format("annotations", "a: 'b\u2028c\x85d'"),
        "\ufeff" + COUNT.format("1") + "---\n\ufeff" + COUNT.format("1"),
        "--- " + COUNT.format("1"),
        "--- # first\n" + COUNT.format("1"),
    ],
)
async def test_kubectl_reads_yaml_as_lint_does(kubectl: Kubectl, tmp_path: Path, text: str) -> None:
    file = tmp_path / "made.yaml"
    file.write_text(text, encoding="utf-8")
    refused = any(finding.severity == ERROR for finding in look(documents(str(file), text)))

    await kubectl("apply", "--dry-run=server", f"--filename={file}", code=int(refused))
