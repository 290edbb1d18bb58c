"""What depends on the feature gates of the API server."""

from __future__ import annotations

import pytest

from dra_operator.features import DEFAULT_1_37
from dra_operator.lint import Known, documents, look
from dra_operator.lint.gates import DEFAULT, FIELDS, KNOWN, features, read
from dra_operator.validation.fields import table

CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: made}
spec:
  devices:
    requests:
    - name: gpu
      exactly: {deviceClassName: gpu.test, REQUEST}
"""
SLICE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: made}
spec:
  driver: gpu.test
  nodeName: worker
  pool: {name: worker, generation: 1, resourceSliceCount: 1}
  devices: [{name: a, DEVICE}]
"""


def codes(text: str, *gates: str) -> list[str]:
    return [one.code for one in look(documents("made.yaml", text), Known(gates=read(gates)))]


@pytest.mark.parametrize(
    ("text", "gate", "value"),
    [
        (SLICE.replace("DEVICE", "attributes: {a: {strings: [b]}}"), "DRAListTypeAttributes", True),
        (SLICE.replace("DEVICE", "nodeAllocatableResources: []"), "DRANodeAllocatableResources", True),
        (SLICE.replace("DEVICE", "taints: [{key: a, effect: NoSchedule}]"), "DRADeviceTaints", False),
        (SLICE.replace("DEVICE", "allowMultipleAllocations: true"), "DRAConsumableCapacity", False),
        (SLICE.replace("DEVICE", "bindsToNode: true"), "DRADeviceBindingConditions", False),
        (CLAIM.replace("REQUEST", "adminAccess: true"), "DRAAdminAccess", False),
        (CLAIM.replace("REQUEST", "tolerations: [{operator: Exists}]"), "DRADeviceTaints", False),
        (CLAIM.replace("REQUEST", "capacity: {requests: {a: 1}}"), "DRAConsumableCapacity", False),
    ],
)
def test_fields_are_there_with_their_gate(text: str, gate: str, value: bool) -> None:  # noqa: FBT001 -- of a gate
    assert ("FeatureOff" in codes(text)) is value
    assert "FeatureOff" not in codes(text, f"{gate}=true")
    assert "FeatureOff" in codes(text, f"{gate}=false")


@pytest.mark.parametrize(
    ("expression", "gate", "by_default"),
    [
        ('device.attributes["gpu.test"].a.includes("b")', "DRAListTypeAttributes", False),
        ("device.allowMultipleAllocations == true", "DRAConsumableCapacity", True),
    ],
)
def test_names_in_expressions_are_there_with_their_gate(
    expression: str,
    gate: str,
    by_default: bool,  # noqa: FBT001 -- of a gate
) -> None:
    text = CLAIM.replace("REQUEST", f"selectors: [{{cel: {{expression: {expression!r}}}}}]")

    assert ("CelInvalid" not in codes(text)) is by_default
    assert "CelInvalid" not in codes(text, f"{gate}=true")
    assert "CelInvalid" in codes(text, f"{gate}=false")


def test_devices_with_several_values_are_compared_with_care() -> None:
    text = SLICE.replace("DEVICE", "attributes: {a: {strings: [b]}}")
    wanted = CLAIM.replace(
        "REQUEST",
        'selectors: [{cel: {expression: \'device.driver == "gpu.test" && device.attributes["gpu.test"].a == "b"\'}}]',
    )
    (finding,) = look(
        documents("made.yaml", f"{text}---\n{wanted}"), Known(gates=read(["DRAListTypeAttributes=true"]))
    )

    assert (finding.code, "None" in finding.remedy) == ("MatchesNothing", False)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("strings: [b, c]", []),
        ("ints: [1]", []),
        ("versions: [1.0.0]", []),
        ("versions: [1.0.0, '1.0']", ["InvalidValue"]),
        (f"strings: [{'b' * 65}]", ["TooLong"]),
        ("strings: [b], string: c", ["InvalidValue"]),
        ("strings: []", ["InvalidValue"]),
    ],
)
def test_several_values_are_checked_where_they_may_be(value: str, expected: list[str]) -> None:
    text = SLICE.replace("DEVICE", f"attributes: {{a: {{{value}}}}}")

    assert codes(text, "DRAListTypeAttributes=true") == expected


def test_the_gates_are_those_of_1_37_by_default() -> None:
    assert (read([]), features(DEFAULT)) == (DEFAULT, DEFAULT_1_37)


@pytest.mark.parametrize(
    ("texts", "on", "off"),
    [
        (["DRAListTypeAttributes=true"], {"DRAListTypeAttributes"}, set()),
        (
            ["DRAListTypeAttributes=true,DRADeviceTaints=false"],
            {"DRAListTypeAttributes"},
            {"DRADeviceTaints"},
        ),
        (
            ["DRAListTypeAttributes=1", " DRADeviceTaints = F "],
            {"DRAListTypeAttributes"},
            {"DRADeviceTaints"},
        ),
        (["DRADeviceTaints=false", "DRADeviceTaints=true"], set(), set()),
        ([""], set(), set()),
    ],
)
def test_gates_are_read_as_kubernetes_reads_them(texts: list[str], on: set[str], off: set[str]) -> None:
    assert read(texts) == (DEFAULT | on) - off


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("DRADeviceTaint=true", "did you mean DRADeviceTaints"),
        ("Other=true", "there are: DRAAdminAccess"),
        ("DRADeviceTaints", "true or false"),
        ("DRADeviceTaints=yes", "true or false"),
    ],
)
def test_what_is_no_gate_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read([text])


def test_each_field_is_one_and_each_gate_is_known() -> None:
    structs = {name.rpartition(".")[2]: fields for name, fields in table().structs.items()}

    assert [
        field for field in FIELDS if field.partition(".")[2] not in structs[field.partition(".")[0]]
    ] == []
    assert set(FIELDS.values()) <= KNOWN


def test_the_form_of_1_36_is_told_with_todays() -> None:
    text = SLICE.replace("DEVICE", "nodeAllocatableResourceMappings: {cpu: {allocationMultiplier: 2}}")
    [found] = look(documents("made.yaml", text))

    assert found.code == "UnknownField"
    assert "1.37 has `nodeAllocatableResources`" in found.remedy
