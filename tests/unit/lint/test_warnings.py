"""What is legal and wrong all the same, by what else is known."""

from __future__ import annotations

import pytest

from dra_operator.lint import Known, documents, look

SLICE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: slice}
spec:
  driver: gpu.test
  nodeName: worker
  pool: {name: worker, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu-0
    attributes: {model: {string: a100}, index: {int: 0}, old: {bool: true}}
    capacity: {memory: {value: 40Gi}}
  - name: gpu-1
    attributes: {model: {string: a100}, index: {int: 1}}
    capacity: {memory: {value: 80Gi}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: nics}
spec:
  driver: nic.test
  nodeName: worker
  pool: {name: worker, generation: 1, resourceSliceCount: 1}
  devices:
  - name: nic-0
    attributes: {"bus.test/root": {string: pci0}, fast: {bool: true}}
"""
CLASS = """\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.test}
spec: {selectors: [{cel: {expression: 'device.driver == "gpu.test"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: nic.test}
spec: {selectors: [{cel: {expression: 'device.driver == "nic.test"'}}]}
"""


def claim(expression: str = "", more: str = "", class_name: str = "gpu.test") -> str:
    selectors = f"selectors: [{{cel: {{expression: {expression!r}}}}}]" if expression else "count: 1"
    return f"""\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {{name: made, namespace: team}}
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: {class_name}
        {selectors}
    - name: nic
      exactly: {{deviceClassName: nic.test}}
    {more}
"""


def pod(claims: str, wanted: str = "[{name: gpu}]") -> str:
    return f"""\
apiVersion: batch/v1
kind: Job
metadata: {{name: work, namespace: team}}
spec:
  template:
    spec:
      resourceClaims: {claims}
      containers: [{{name: main, image: test, resources: {{claims: {wanted}}}}}]
"""


def told(*texts: str, known: Known | None = None) -> list[tuple[str, str]]:
    """Codes with the parts of the lines that the carets are under."""
    found = look([document for text in texts for document in documents("made.yaml", text)], known)
    return [(one.code, one.source[one.column - 1 : one.end_column - 1]) for one in found]


GPU = 'device.attributes["gpu.test"]'


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (f'{GPU}.model == "a100"', []),
        (f'{GPU}.modle == "a100"', [("UnknownAttribute", "modle")]),
        (f'{GPU}.Model == "a100"', [("UnknownAttribute", "Model")]),
        (f'{GPU}.?modle.orValue("") == "a100"', [("UnknownAttribute", "modle")]),
        (f'{GPU}.?vendor.orValue("a") == "a"', []),
        (f'{GPU}.vendor == "a"', [("UnknownAttribute", "vendor")]),
        ('device.attributes["gpu.tets"].?model.orValue("a100") == "a100"', [("UnknownDomain", "gpu.tets")]),
        ('device.capacity["gpu.test"].memry.isInteger()', [("UnknownCapacity", "memry")]),
        (f'{GPU}.memory == "40Gi"', [("WrongMap", "memory")]),
        ('device.capacity["gpu.test"].index.isInteger()', [("WrongMap", "index")]),
        (f'{GPU}.model == "h100"', [("MatchesNothing", "")]),
        (f"{GPU}.old", [("FailsOnDevices", "")]),
        (f"has({GPU}.old) && {GPU}.old", []),
        ('device.attributes.gpu.test.model == "a100"', [("MisplacedName", "gpu.test.model")]),
        ("has(device.attributes.gpu.test.model)", [("MisplacedName", "gpu.test.model")]),
        ('device.attributes.gpu.test.?model.orValue("") == "a100"', [("MisplacedName", "gpu.test.?model")]),
        ('device.attributes["gpu"].test.model == "a100"', [("MisplacedName", '"gpu"].test.model')]),
        ('device.attributes["gpu.test/model"].string == "a100"', [("MisplacedName", '"gpu.test/model"].string')]),
        (f'{GPU}.model.string == "a100"', [("MisplacedName", '"gpu.test"].model.string')]),
        ("device.capacity.gpu.test.memory.isInteger()", [("CelInvalid", ".memory")]),
        ('device.driver == "gpu.tset"', [("UnknownDriver", '"gpu.tset"')]),
        ('device.driver in ["gpu.test", "nci.test"]', [("UnknownDriver", '"nci.test"')]),
        ('device.driver == "nic.tset" || device.driver == "gpu.test"', [("UnknownDriver", '"nic.tset"')]),
        (f'device.driver == "gpu.tset" && {GPU}.modle == "a100"', [("UnknownDriver", '"gpu.tset"'), ("UnknownAttribute", "modle")]),
        (f'{GPU}.?model.orValue("").matches("a")', [("CelTooCostly", "")]),
        (f'{GPU}.?model.orValue("").matches("h")', [("CelTooCostly", "")]),
        (f'{GPU}.model == "a100" && {GPU}.model == "h100"', [("NeverTrue", '"h100"')]),
        ('device.driver == "nic.test"', [("NeverTrue", '"nic.test"')]),
        ("false", [("NeverTrue", "")]),
    ],
)  # fmt: skip
def test_selectors_are_held_against_the_devices(expression: str, expected: list[tuple[str, str]]) -> None:
    found = told(SLICE, CLASS, claim(expression))

    assert [(code, part if dict(expected).get(code) else "") for code, part in found] == expected


@pytest.mark.parametrize(
    ("expression", "remedy"),
    [
        (f"{GPU}.old", "guard the look-up"),
        (f"!{GPU}.model", "another type"),
        (f"{GPU}.index.lowerAscii() in [device.driver]", "another type"),
        (f"quantity({GPU}.model).isInteger()", "what the message names"),
        (f'{GPU}.model.matches("(" + "a")', "what the message names"),
    ],
)
def test_what_helps_depends_on_why_an_expression_fails(expression: str, remedy: str) -> None:
    (finding,) = look(documents("made.yaml", "---\n".join([SLICE, CLASS, claim(expression)])))

    assert finding.code == "FailsOnDevices"
    assert remedy in finding.remedy


@pytest.mark.parametrize(
    ("expression", "remedy"),
    [
        (f'{GPU}.model == "h100"', 'gpu.test/model is "a100" there'),
        (f"{GPU}.index == 7", "gpu.test/index is 0, 1 there"),
        (f'{GPU}.model.startsWith("h")', "loosen the selector"),
        (f"{GPU}.numa == 1", "there are: index, model, old"),
        (f"{GPU}.mod == 1", "did you mean `model`?"),
        (f'{GPU}.memory == "40Gi"', 'write `device.capacity["gpu.test"].memory`'),
        ('device.driver == "gpu-test"', "did you mean `gpu.test`?"),
        ('device.driver == "nic.test"', "drop one of them"),
        ('device.attributes.gpu.test.model == "a"', 'write `device.attributes["gpu.test"].model`'),
        ('device.attributes.gpu.test.model.string == "a"', 'write `device.attributes["gpu.test"].model`'),
        ('device.attributes["gpu.test/model"] == "a"', 'write `device.attributes["gpu.test"].model`'),
        ('"a" == device.attributes["gpu.test/model"]', 'write `device.attributes["gpu.test"].model`'),
        ('device.attributes["gpu.test/model"].string == "a"', 'write `device.attributes["gpu.test"].model`'),
        (f'{GPU}.model.string == "a"', 'write `device.attributes["gpu.test"].model`'),
        ("device.capacity.gpu.test.memory.isInteger()", 'write `device.capacity["gpu.test"].memory`'),
        ('device.attributes.model == "a"', "stand below their domain"),
    ],
)  # fmt: skip
def test_what_is_told_of_a_selector_says_what_to_write(expression: str, remedy: str) -> None:
    (finding,) = look(documents("made.yaml", "---\n".join([SLICE, CLASS, claim(expression)])))

    assert remedy in finding.remedy


@pytest.mark.parametrize(
    ("expression", "code", "part", "remedy"),
    [
        ('device.attributes[device.driver].modle.contains("a")', "FailsOnDevices", "modle", "did you mean `model`?"),
        (f'[{GPU}].all(a, a.modle == "x")', "FailsOnDevices", "modle", "did you mean `model`?"),
        (f'[{GPU}].all(a, a["modle"] == "x")', "FailsOnDevices", "modle", "did you mean `model`?"),
        ("device.capacity[device.driver].memry.isInteger()", "FailsOnDevices", "memry", "did you mean `memory`?"),
        ("device.attributes[device.driver].old", "FailsOnDevices", "old", "guard the look-up"),
        ('device.attributes[device.driver].flavour == "x"', "FailsOnDevices", "flavour", "guard the look-up"),
        (f'"10" in {GPU}.model', "FailsOnDevices", None, f'write `{GPU}.model.contains("10")`'),
        (f'{GPU}.index == 0 && !("10" in {GPU}.model)', "FailsOnDevices", None, f'write `{GPU}.model.contains("10")`'),
        (f'"10" in {GPU}.index', "FailsOnDevices", None, "another type"),
        ("false", "NeverTrue", "false", "leave `false` out"),
        (f'{GPU}.model == "a100" && false', "NeverTrue", "false", "leave `false` out"),
        ("device.foo", "CelInvalid", ".foo", "there are: allowMultipleAllocations, attributes, capacity, driver"),
        ('device.driver == "x")', "CelInvalid", ")", "closes nothing"),
        ('device.driver.matches("(?!small)")', "CelInvalid", '"(?!small)"', "RE2 has no look-ahead"),
        ('duration("1day") < duration("2h")', "CelInvalid", '"1day"', 'did you mean "24h"?'),
    ],
)  # fmt: skip
def test_the_remedy_is_for_what_was_meant(expression: str, code: str, part: str | None, remedy: str) -> None:
    (finding,) = look(documents("made.yaml", "---\n".join([SLICE, CLASS, claim(expression)])))

    assert (finding.code, remedy in finding.remedy) == (code, True), finding.remedy
    if part is not None:
        assert finding.source[finding.column - 1 : finding.end_column - 1] == part


@pytest.mark.parametrize(
    ("expression", "remedy"),
    [
        (f'{GPU}.product-name == "x"', 'written `["product-name"]`; but names of attributes and capacities have none, only letters, digits and `_`: is it `productName`?'),
        (f'[{GPU}].all(a, a.?product-name.orValue("") == "x")', "is it `productName`?"),
        ('device.attributes.my-driver.example.com.model == "x"', 'write `device.attributes["my-driver.example.com"].model`'),
    ],
)  # fmt: skip
def test_a_dash_in_a_name_is_told_from_minus(expression: str, remedy: str) -> None:
    found = look(documents("made.yaml", "---\n".join([SLICE, CLASS, claim(expression)])))

    assert {one.code for one in found} == {"CelInvalid"}
    assert all(remedy in one.remedy for one in found)


def test_minus_is_no_dash() -> None:
    assert told(SLICE, CLASS, claim(f"[1, 2].exists(x, {GPU}.index-x == -1)")) == []
    assert told(SLICE, CLASS, claim(f"[1, 2].exists(x, {GPU}.indx-x == -1)")) == [
        ("UnknownAttribute", "indx")
    ]


def alternatives(*expressions: str, version: str = "v1") -> str:
    listed = [
        f"{{name: a{number}, deviceClassName: gpu.test, selectors: [{{cel: {{expression: {one!r}}}}}]}}"
        for number, one in enumerate(expressions)
    ]
    request = f"{{name: gpu, firstAvailable: [{', '.join(listed)}]}}"
    return (
        f"apiVersion: resource.k8s.io/{version}\nkind: ResourceClaim\nmetadata: {{name: made}}\n"
        f"spec: {{devices: {{requests: [{request}]}}}}\n"
    )


HERE, ELSEWHERE = f'{GPU}.model == "a100"', f'{GPU}.model == "h100"'


@pytest.mark.parametrize(
    ("expressions", "expected"),
    [
        ((ELSEWHERE, HERE), []),
        ((HERE, ELSEWHERE), []),
        ((ELSEWHERE, ELSEWHERE, HERE), []),
        ((ELSEWHERE, ELSEWHERE), ["MatchesNothing", "MatchesNothing"]),
        ((ELSEWHERE,), ["MatchesNothing"]),
        ((ELSEWHERE, "false"), ["MatchesNothing", "NeverTrue"]),
        ((ELSEWHERE, f"{GPU}.index"), ["FailsOnDevices", "MatchesNothing"]),
        ((f'{GPU}.modle == "a"', HERE), ["UnknownAttribute"]),
        ((f"{GPU}.index", HERE), ["FailsOnDevices"]),
    ],
)
@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_an_alternative_that_nothing_meets_is_told_only_if_none_can_be_met(
    expressions: tuple[str, ...], expected: list[str], version: str
) -> None:
    codes = sorted(code for code, _ in told(SLICE, CLASS, alternatives(*expressions, version=version)))

    assert [code for code in codes if code != "VersionNotServed"] == expected


def test_an_alternative_whose_driver_publishes_nothing_may_be_fallen_back_from() -> None:
    everything = Known(whole=frozenset({"ResourceSlice"}))
    made = alternatives('device.driver == "fpga.test"', HERE).replace("gpu.test, sel", "none, sel", 1)
    both = alternatives('device.driver == "fpga.test"').replace("gpu.test, sel", "none, sel", 1)

    assert told(SLICE, CLASS, made, known=everything) == []
    assert told(SLICE, CLASS, both, known=Known(whole=frozenset({"ResourceSlice"}))) == [
        ("MatchesNothing", '"fpga.test"')
    ]


def test_a_fault_beside_a_misplaced_name_keeps_its_hint() -> None:
    found = look(
        documents("made.yaml", claim('device.attributes.gpu.test.model == "a" && devise.driver == "b"'))
    )

    assert [(one.code, one.remedy) for one in found] == [("CelInvalid", "did you mean device?")]


def test_a_driver_that_is_nearly_that_of_the_class_is_corrected_without_slices() -> None:
    found = look(documents("made.yaml", CLASS + "---\n" + claim('device.driver == "gpu.tset"')))

    assert [(one.code, one.remedy) for one in found] == [("NeverTrue", "did you mean `gpu.test`?")]


def test_a_misplaced_name_is_wrong_whatever_is_published() -> None:
    assert told(claim('device.attributes.gpu.example.com.x == "a"')) == [
        ("MisplacedName", "gpu.example.com.x")
    ]


def test_a_failure_is_shown_at_the_name_that_is_missing() -> None:
    expression = f"device.driver == 'gpu.test' && {GPU}.index == 0 && {GPU}.old"
    text = claim("X").replace(
        "'X'", f">-\n              {expression.replace(' && ', ' &&' + chr(10) + ' ' * 14)}"
    )
    text = text.replace("[{cel: {expression:", "\n        - cel:\n            expression:").replace(
        "}}]", "", 1
    )

    assert told(SLICE.replace("{int: 1}", "{int: 0}"), CLASS, text) == [("FailsOnDevices", "old")]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("constraints: [{matchAttribute: gpu.test/bad name}]", ["InvalidValue"]),
        ("constraints: [{matchAttribute: none.test/model}]", ["ConstraintUnmet"]),
        ("constraints: [{matchAttribute: gpu.test/modle, requests: [gpus]}]", ["UnknownAttribute", "UnknownRequest"]),
        ("config: [{requests: [gpus], opaque: {driver: nic.test, parameters: {}}}]", ["UnknownRequest"]),
    ],
)  # fmt: skip
def test_one_fault_is_told_once(more: str, expected: list[str]) -> None:
    assert [code for code, _ in told(SLICE, CLASS, claim(more=more))] == expected


def test_a_selector_that_is_no_condition_has_a_remedy() -> None:
    (finding,) = look(documents("made.yaml", claim("device.driver")))

    assert (finding.code, finding.remedy[:26]) == ("CelInvalid", "a selector is a condition:")
    assert "hint" not in finding.message


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [("ResourceClass", "DeviceClass"), ("DeviceClas", "did you mean `DeviceClass`?"), ("Foo", "there are: DeviceClass,"), ("PodSchedulingContext", "leave it out")],
)  # fmt: skip
def test_what_to_do_about_a_kind_that_is_none(kind: str, remedy: str) -> None:
    text = f"apiVersion: resource.k8s.io/v1\nkind: {kind}\nmetadata: {{name: made}}\n"
    (finding,) = look(documents("made.yaml", text))

    assert finding.code == "UnknownVersion"
    assert remedy in finding.remedy


def test_nothing_at_all_is_called_so() -> None:
    text = "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: made}\nspec: {selectors: [null]}\n"
    (finding,) = look(documents("made.yaml", text))

    assert finding.message == "must be an object, and is empty (null)"


def test_nothing_is_said_of_devices_that_nobody_has_told_of() -> None:
    assert told(claim(f'{GPU}.modle == "a100"'), CLASS) == []


def test_attributes_of_a_driver_whose_slices_are_not_given_are_left_alone() -> None:
    text = claim(
        'device.driver == "fpga.test" && device.attributes["bus.test"].slot == 1', class_name="fpga.test"
    )

    everything = Known(whole=frozenset({"ResourceSlice"}))

    assert told(SLICE, text) == []
    assert {code for code, _ in told(SLICE, text, known=everything)} == {"MatchesNothing", "UnknownAttribute"}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("constraints: [{matchAttribute: gpu.test/model, requests: [gpu]}]", []),
        ("constraints: [{matchAttribute: gpu.test/modle, requests: [gpu]}]", ["ConstraintUnmet"]),
        ("constraints: [{matchAttribute: bus.test/root}]", ["ConstraintUnmet"]),
        ("constraints: [{matchAttribute: bus.test/root, requests: [nic]}]", []),
        ("config: [{requests: [gpu], opaque: {driver: gpu.test, parameters: {}}}]", []),
        ("config: [{requests: [gpu], opaque: {driver: nic.test, parameters: {}}}]", ["ConfigNotUsed"]),
        ("config: [{opaque: {driver: gpu.tset, parameters: {}}}]", ["ConfigNotUsed"]),
    ],
)
def test_constraints_and_config_are_held_against_what_requests_can_get(
    more: str, expected: list[str]
) -> None:
    assert [code for code, _ in told(SLICE, CLASS, claim(more=more))] == expected


def test_drivers_are_not_alike_by_the_end_of_their_names() -> None:
    made = CLASS.replace("gpu.test", "gaudi.vendor.example")

    assert told(SLICE.replace("gpu.test", "gpu.vendor.example"), made) == []
    assert told(SLICE, CLASS.replace('== "gpu.test"', '== "gpu.tset"')) == [("UnknownDriver", '"gpu.tset"')]


def test_a_class_that_is_not_there_is_told_if_it_is_nearly_one_that_is() -> None:
    assert told(CLASS, claim(class_name="gpu.tset")) == [("UnknownClass", "gpu.tset")]
    assert told(CLASS, claim(class_name="other.class")) == []


def test_with_a_cluster_every_class_that_is_not_there_is_told() -> None:
    known = Known(whole=frozenset({"DeviceClass"}))

    assert told(CLASS, claim(class_name="other.class"), known=known) == [("UnknownClass", "other.class")]


@pytest.mark.parametrize(
    ("claims", "wanted", "expected"),
    [
        ("[{name: gpu, resourceClaimName: made}]", "[{name: gpu, request: gpu}]", []),
        ("[{name: gpu, resourceClaimName: made}]", "[{name: gpu, request: gpus}]", [("UnknownContainerRequest", "gpus")]),
        ("[{name: gpu, resourceClaimName: mades}]", "[{name: gpu}]", [("UnknownClaim", "mades")]),
        ("[{name: gpu, resourceClaimName: elsewhere}]", "[{name: gpu}]", []),
    ],
)  # fmt: skip
def test_claims_of_pods_are_looked_for(claims: str, wanted: str, expected: list[tuple[str, str]]) -> None:
    assert told(claim(), pod(claims, wanted)) == expected


def test_with_a_cluster_a_template_of_another_namespace_is_no_template() -> None:
    template = (
        claim().replace("ResourceClaim\n", "ResourceClaimTemplate\n").replace("spec:\n", "spec:\n spec:\n", 1)
    )
    known = Known(whole=frozenset({"ResourceClaimTemplate"}))
    elsewhere = template.replace("namespace: team", "namespace: other")

    found = told(elsewhere, pod("[{name: gpu, resourceClaimTemplateName: made}]"), known=known)

    assert ("UnknownTemplate", "made") in found


def test_admin_access_needs_the_label_where_the_namespace_is_known() -> None:
    text = claim().replace("count: 1", "adminAccess: true")
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n"
    label = namespace.replace("team", "team, labels: {resource.kubernetes.io/admin-access: 'true'}")

    assert told(text) == []
    assert told(namespace, text) == [("AdminAccessNotAllowed", "true")]
    assert told(label, text) == []


def test_counters_are_looked_for_in_a_pool_that_is_whole() -> None:
    drawing = "consumesCounters: [{counterSet: set, counters: {slot: {value: 1}}}, {counterSet: sett, counters: {slots: {value: 1}}}]"
    sets = """\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: counters}
spec:
  driver: gpu.test
  nodeName: worker
  pool: {name: worker, generation: 1, resourceSliceCount: 2}
  sharedCounters: [{name: set, counters: {slots: {value: 1}}}]
"""
    devices = SLICE.partition("---")[0].replace("resourceSliceCount: 1", "resourceSliceCount: 2")
    devices = devices.replace("- name: gpu-1\n", f"- name: gpu-1\n    {drawing}\n")

    assert told(devices, sets) == [("UnknownCounter", "slot"), ("UnknownCounter", "sett")]
    assert told(devices) == []


def test_a_rule_for_devices_that_are_not_there_is_told_if_they_are_nearly_there() -> None:
    rule = """\
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: made}
spec:
  deviceSelector: {driver: gpu.test, device: gpu-11}
  taint: {key: a, effect: NoSchedule}
"""
    everything = Known(whole=frozenset({"ResourceSlice"}))

    assert told(SLICE, rule) == []
    assert told(SLICE, rule, known=everything) == [("SelectsNothing", "gpu-11")]
    assert told(SLICE, rule.replace("gpu-11", "gpus-1")) == [("SelectsNothing", "gpus-1")]
    assert told(SLICE, rule.replace("gpu-11", "gpu-1")) == []


def test_items_of_a_list_are_looked_at_where_they_stand() -> None:
    text = """\
apiVersion: v1
kind: List
items:
- apiVersion: resource.k8s.io/v1
  kind: DeviceClass
  metadata: {name: a}
  spec: {selectors: [{cel: {expression: 'dev.driver == "a"'}}]}
"""
    typed = text.replace("v1\nkind: List", "resource.k8s.io/v1\nkind: DeviceClassList", 1).replace(
        "- apiVersion: resource.k8s.io/v1\n  kind: DeviceClass\n  metadata", "- metadata"
    )

    assert told(text) == [("CelInvalid", "dev")]
    assert told(typed) == [("CelInvalid", "dev")]
