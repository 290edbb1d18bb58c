"""Manifests with mistakes in them, and manifests without: what lint says of each, and thereby what a real API server must do with it.

`tests/unit/lint` holds the linter to the codes, `tests/contract/test_lint.py` holds the codes to a server: what has an error is refused, what has none is
accepted. The manifests are the project's own.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """One manifest.

    Attributes:
        name: of the case.
        text: of the manifest.
        codes: of lint, in the order of the lines.
        served: whether a 1.37 server has the version.
    """

    name: str
    text: str
    codes: tuple[str, ...] = ()
    served: bool = True


def claim(body: str, version: str = "v1") -> str:
    return f"""\
apiVersion: resource.k8s.io/{version}
kind: ResourceClaim
metadata:
  name: made
spec:
  devices:
{body}
"""


def selecting(expression: str) -> str:
    return claim(f"""\
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.test
        selectors:
        - cel:
            expression: {expression}
""")


def request(body: str) -> str:
    return claim(f"""\
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.test
        {body}
""")


def beside(body: str) -> str:
    return claim(f"""\
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.test
    - name: nic
      firstAvailable:
      - name: fast
        deviceClassName: nic.test
    {body}
""")


def device_class(body: str) -> str:
    return f"""\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata:
  name: gpu.test
spec:
  {body}
"""


def slice_(devices: str, spec: str = "nodeName: worker", version: str = "v1") -> str:
    return f"""\
apiVersion: resource.k8s.io/{version}
kind: ResourceSlice
metadata:
  name: made
spec:
  driver: gpu.test
  {spec}
  pool: {{name: worker, generation: 1, resourceSliceCount: 2}}
  {devices}
"""


def device(body: str) -> str:
    return slice_(f"devices:\n  - name: gpu-0\n    {body}")


def shared(policy: str) -> str:
    return device(f"""\
allowMultipleAllocations: true
    capacity:
      memory:
        value: 40Gi
        requestPolicy: {policy}""")


def rule(selector: str, taint: str = "{key: test/bad, effect: NoSchedule}") -> str:
    return f"""\
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata:
  name: made
spec:
  {selector}
  taint: {taint}
"""


def pod(claims: str, wanted: str = "[{name: gpu}]") -> str:
    return f"""\
apiVersion: v1
kind: Pod
metadata:
  name: made
spec:
  containers:
  - name: main
    image: registry.k8s.io/pause:3.10
    resources:
      claims: {wanted}
  resourceClaims: {claims}
"""


def many(number: int, item: str) -> str:
    return "[" + ", ".join(item.replace("#", str(index)) for index in range(number)) + "]"


TRUE = '{cel: {expression: "true"}}'

CLASSES = (
    Case("a class for all devices", device_class("{}")),
    Case(
        "a class with all there is",
        device_class("""\
extendedResourceName: gpu.test/gpu
  selectors:
  - cel: {expression: device.driver == "gpu.test"}
  config:
  - opaque: {driver: gpu.test, parameters: {kind: any}}"""),
    ),
    Case("a selector without cel", device_class("selectors: [{}]"), ("Required",)),
    Case("a selector without expression", device_class("selectors: [{cel: {}}]"), ("InvalidValue",)),
    Case("a misspelt field", device_class("selector: []"), ("UnknownField",)),
    Case("33 selectors", device_class(f"selectors: {many(33, TRUE)}"), ("TooMany",)),
    Case("an extended resource of Kubernetes", device_class("extendedResourceName: kubernetes.io/gpu"), ("InvalidValue",)),
    Case("an extended resource without domain", device_class("extendedResourceName: gpu"), ("InvalidValue",)),
    Case("config without opaque", device_class("config: [{}]"), ("Required",)),
    Case("config with a list for parameters", device_class("config: [{opaque: {driver: gpu.test, parameters: []}}]"), ("InvalidValue",)),
    Case("config without a driver", device_class("config: [{opaque: {parameters: {}}}]"), ("Required",)),
    Case("one closing parenthesis too many", device_class("selectors: [{cel: {expression: 'device.driver == \"gpu.test\")'}}]"), ("CelInvalid",)),
    Case("a name with capitals", "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: GPU}\nspec: {}\n", ("InvalidValue",)),
    Case("no name", "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {}\nspec: {}\n", ("Required",)),
    Case("a label that is a boolean", "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: a, labels: {on: 'x', b: yes}}\nspec: {}\n", ("WrongType",)),
)  # fmt: skip

EXPRESSIONS = (
    Case("an attribute", selecting('device.attributes["gpu.test"].model == "a100"')),
    Case("a name that is not declared", selecting('dev.driver == "gpu.test"'), ("CelInvalid",)),
    Case("a field that devices have not", selecting('device.name == "gpu-0"'), ("CelInvalid",)),
    Case("no bool", selecting("device.driver"), ("CelInvalid",)),
    Case("a capacity compared with a string", selecting('device.capacity["gpu.test"].memory == "40Gi"'), ("CelInvalid",)),
    Case("a capacity compared as it should be", selecting('device.capacity["gpu.test"].memory.compareTo(quantity("40Gi")) >= 0')),
    Case("a whole domain compared with a string", selecting('device.capacity["gpu.test"] == "40Gi"'), ("CelInvalid",)),
    Case("a regular expression that is none", selecting('device.driver.matches("(")'), ("CelInvalid",)),
    Case("a quantity that is none", selecting('device.capacity["gpu.test"].memory.compareTo(quantity("40GB")) >= 0'), ("BadConstant",)),
    Case("versions that are none", selecting('device.attributes["gpu.test"].driver.isLessThan(semver("12.4")) || semver("v1.0.0").major() == 1'), ("BadConstant", "BadConstant")),
    Case("a list of two types", selecting('device.driver in ["a", 1]'), ("CelInvalid",)),
    Case("shared devices", selecting("device.allowMultipleAllocations")),
    Case("a list function, whose gate is off", selecting('device.attributes["gpu.test"].models.includes("a100")'), ("CelInvalid",)),
    Case("more than 10 KiB", selecting("'device.driver == \"" + "x" * 10_240 + "\"'"), ("TooLong",)),
    Case("too costly", selecting("device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, device.attributes.all(d, a == b && c == d))))"), ("CelTooCostly",)),
    Case("a folded expression", selecting('>-\n              device.driver == "gpu.test" &&\n              device.nothing')
         , ("CelInvalid",)),
)  # fmt: skip

CLAIMS = (
    Case("no requests", claim("    requests: []")),
    Case("nothing at all", "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: made}\nspec: {devices: {}}\n"),
    Case("generateName", "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {generateName: made-}\nspec: {devices: {}}\n"),
    Case("all of a kind", request("allocationMode: All")),
    Case("several of a kind", request("count: 4")),
    Case("a count beside All", request("allocationMode: All\n        count: 2"), ("InvalidValue",)),
    Case("a negative count", request("count: -1"), ("InvalidValue",)),
    Case("a mode that there is not", request("allocationMode: Any"), ("NotSupported",)),
    Case("a count in quotes", request("count: '2'"), ("WrongType",)),
    Case("more than a claim can hold", request("count: 33"), ("TooManyDevices",)),
    Case("no class", claim("    requests: [{name: gpu, exactly: {}}]"), ("Required",)),
    Case("a class with an odd name", claim("    requests: [{name: gpu, exactly: {deviceClassName: GPU_1}}]"), ("InvalidValue",)),
    Case("neither form of a request", claim("    requests: [{name: gpu}]"), ("Required",)),
    Case("both forms of a request", claim("    requests: [{name: gpu, exactly: {deviceClassName: a}, firstAvailable: [{name: b, deviceClassName: b}]}]"), ("InvalidValue",)),
    Case("a request without name", claim("    requests: [{exactly: {deviceClassName: a}}]"), ("Required",)),
    Case("a name that is no label", claim("    requests: [{name: a.b, exactly: {deviceClassName: a}}]"), ("InvalidValue",)),
    Case("a name twice", claim(f"    requests: {many(2, '{name: a, exactly: {deviceClassName: a}}')}"), ("Duplicate",)),
    Case("33 requests", claim(f"    requests: {many(33, '{name: a#, exactly: {deviceClassName: a}}')}"), ("TooMany",)),
    Case("nine alternatives", claim(f"    requests: [{{name: a, firstAvailable: {many(9, '{name: a#, deviceClassName: a}')}}}]"), ("TooMany",)),
    Case("an alternative twice", claim(f"    requests: [{{name: a, firstAvailable: {many(2, '{name: a, deviceClassName: a}')}}}]"), ("Duplicate",)),
    Case("admin access of an alternative", claim("    requests: [{name: a, firstAvailable: [{name: a, deviceClassName: a, adminAccess: true}]}]"), ("UnknownField",)),
    Case("a capacity", request("capacity: {requests: {memory: 10Gi}}")),
    Case("a capacity with a space", request("capacity: {requests: {memory: 10 GiB}}"), ("BadQuantity",)),
    Case("a toleration", request("tolerations: [{key: test/bad, operator: Exists}]")),
    Case("a toleration of nothing", request("tolerations: [{effect: NoSchedule}]"), ("TolerationUseless",)),
    Case("a toleration with a value for Exists", request("tolerations: [{key: a, operator: Exists, value: b}]"), ("InvalidValue",)),
    Case("a toleration by an operator that there is not", request("tolerations: [{key: a, operator: In}]"), ("NotSupported",)),
    Case("a toleration of an effect that there is not", request("tolerations: [{key: a, effect: PreferNoSchedule}]"), ("NotSupported",)),
    Case("a toleration with an odd key", request("tolerations: [{key: 'a b', operator: Exists}]"), ("InvalidValue",)),
    Case("derived attributes, whose gate is off", request("derivedAttributes: [{name: test/a, expression: device.driver}]"), ("FeatureOff",)),
    Case("constraints", beside("constraints: [{matchAttribute: gpu.test/numa}, {requests: [gpu, nic/fast], distinctAttribute: gpu.test/slot}]")),
    Case("a constraint of a request that is not there", beside("constraints: [{requests: [gpuu], matchAttribute: gpu.test/numa}]"), ("UnknownRequest",)),
    Case("a constraint of an alternative that is not there", beside("constraints: [{requests: [nic/slow], matchAttribute: gpu.test/numa}]"), ("UnknownRequest",)),
    Case("a constraint that names a request twice", beside("constraints: [{requests: [gpu, gpu], matchAttribute: gpu.test/numa}]"), ("Duplicate",)),
    Case("a constraint without domain", beside("constraints: [{matchAttribute: numa}]"), ("InvalidValue",)),
    Case("a constraint by an odd name", beside("constraints: [{matchAttribute: gpu.test/numa-node}]"), ("InvalidValue",)),
    Case("a constraint by nothing", beside("constraints: [{requests: [gpu]}]"), ("Required",)),
    Case("33 constraints", beside(f"constraints: {many(33, '{matchAttribute: gpu.test/numa}')}"), ("TooMany",)),
    Case("config", beside("config: [{requests: [gpu], opaque: {driver: gpu.test, parameters: {a: 1}}}]")),
    Case("config of a request that is not there", beside("config: [{requests: [other], opaque: {driver: gpu.test, parameters: {a: 1}}}]"), ("UnknownRequest",)),
    Case("config with an odd driver", beside("config: [{opaque: {driver: gpu_test, parameters: {a: 1}}}]"), ("InvalidValue",)),
    Case("config without parameters", beside("config: [{opaque: {driver: gpu.test}}]"), ("Required",)),
    Case("v1 header, flat request", claim("    requests: [{name: gpu, deviceClassName: gpu.test, count: 2}]"), ("WrongVersionBody",)),
    Case("v1beta1 header, flat request", claim("    requests: [{name: gpu, deviceClassName: gpu.test}]", "v1beta1"), ("VersionNotServed",), served=False),
    Case("v1beta1 header, nested request", claim("    requests: [{name: gpu, exactly: {deviceClassName: gpu.test}}]", "v1beta1"), ("VersionNotServed", "WrongVersionBody"), served=False),
    Case("v1beta2 header", claim("    requests: [{name: gpu, exactly: {deviceClassName: gpu.test}}]", "v1beta2"), ("VersionNotServed",), served=False),
    Case("a version that there is not", claim("    requests: []", "v2"), ("UnknownVersion",), served=False),
    Case("a kind that there is not", "apiVersion: resource.k8s.io/v1\nkind: ResourceClass\nmetadata: {name: made}\n", ("UnknownVersion",), served=False),
    Case("no kind", "apiVersion: resource.k8s.io/v1\nmetadata: {name: made}\n", ("NotAnObject",), served=False),
)  # fmt: skip


def template(metadata: str = "{}", requests: str = "[]") -> str:
    return f"""\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata:
  name: made
spec:
  metadata: {metadata}
  spec:
    devices:
      requests: {requests}
"""


TEMPLATES = (
    Case("a template", template("{labels: {a: b}, annotations: {c: d}}", "[{name: gpu, exactly: {deviceClassName: gpu.test}}]")),
    Case("a template that names its claims", template("{name: gpu}"), ("InvalidValue",)),
    Case("a template with an odd label", template("{labels: {a b: c}}"), ("InvalidValue",)),
    Case("a template with a flat request", template("{}", "[{name: gpu, deviceClassName: gpu.test}]"), ("WrongVersionBody",)),
    Case("a template without the inner spec", "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: made}\nspec: {devices: {requests: []}}\n", ("UnknownField",)),
)  # fmt: skip

SLICES = (
    Case("no devices", slice_("devices: []")),
    Case("a device", device('attributes: {model: {string: a100}, "other.test/slot": {int: 3}}')),
    Case("no place", slice_("devices: []", ""), ("Required",)),
    Case("two places", slice_("devices: []", "nodeName: worker\n  allNodes: true"), ("InvalidValue",)),
    Case("allNodes: false", slice_("devices: []", "nodeName: worker\n  allNodes: false"), ("InvalidValue",)),
    Case("a selector of two terms", slice_("devices: []", "nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}, {matchExpressions: [{key: b, operator: Exists}]}]}"), ("InvalidValue",)),
    Case("an unquoted node name", slice_("devices: []", "nodeName: no"), ("WrongType",)),
    Case("a place for each device", slice_("devices: [{name: a, nodeName: worker}, {name: b, allNodes: true}]", "perDeviceNodeSelection: true")),
    Case("a device without its place", slice_("devices: [{name: a}]", "perDeviceNodeSelection: true"), ("Required",)),
    Case("a device with a place of its own", slice_("devices: [{name: a, nodeName: worker}]"), ("InvalidValue",)),
    Case("an upper-case driver", slice_("devices: []").replace("gpu.test", "GPU.test"), ("UpperCaseDriver",)),
    Case("129 devices", slice_(f"devices: {many(129, '{name: gpu-#}')}"), ("TooMany",)),
    Case("65 devices with taints", slice_(f"devices: {many(65, '{name: gpu-#, taints: [{key: a, effect: NoSchedule}]}')}"), ("TooMany",)),
    Case("a device twice", slice_(f"devices: {many(2, '{name: gpu}')}"), ("Duplicate",)),
    Case("a device with a dot", slice_("devices: [{name: gpu.0}]"), ("InvalidValue",)),
    Case("33 attributes", device(f"attributes: {{{', '.join(f'a{number}: {{int: 1}}' for number in range(33))}}}"), ("InvalidValue",)),
    Case("an attribute of two values", device("attributes: {a: {int: 1, string: b}}"), ("InvalidValue",)),
    Case("an attribute of no value", device("attributes: {a: {}}"), ("InvalidValue",)),
    Case("an attribute with an odd name", device("attributes: {a-b: {int: 1}}"), ("InvalidValue",)),
    Case("an attribute with a long name", device(f"attributes: {{{'a' * 33}: {{int: 1}}}}"), ("TooLong",)),
    Case("a long attribute", device(f"attributes: {{a: {{string: {'a' * 65}}}}}"), ("TooLong",)),
    Case("no semantic version", device("attributes: {a: {version: '550.1'}}"), ("InvalidValue",)),
    Case("a list of values, whose gate is off", device("attributes: {a: {strings: [b]}}"), ("InvalidValue", "FeatureOff")),
    Case("a taint without effect", device("taints: [{key: a}]"), ("Required",)),
    Case("17 taints", device(f"taints: {many(17, '{key: a#, effect: NoSchedule}')}"), ("TooMany",)),
    Case("conditions", device("bindingConditions: [test/a]\n    bindingFailureConditions: [test/b]")),
    Case("conditions without failures", device("bindingConditions: [test/a]"), ("InvalidValue",)),
    Case("a condition that is a failure, too", device("bindingConditions: [test/a]\n    bindingFailureConditions: [test/a]"), ("InvalidValue",)),
    Case("counters", slice_("sharedCounters: [{name: a, counters: {b: {value: 1}}}]")),
    Case("a counter set without counters", slice_("sharedCounters: [{name: a}]"), ("Required",)),
    Case("a counter set twice", slice_(f"sharedCounters: {many(2, '{name: a, counters: {b: {value: 1}}}')}"), ("Duplicate",)),
    Case("nine counter sets", slice_(f"sharedCounters: {many(9, '{name: a#, counters: {b: {value: 1}}}')}"), ("TooMany",)),
    Case("a counter with a dot", slice_("sharedCounters: [{name: a, counters: {b.c: {value: 1}}}]"), ("InvalidValue",)),
    Case("devices beside counters", slice_("devices: [{name: a}]\n  sharedCounters: [{name: a, counters: {b: {value: 1}}}]"), ("InvalidValue",)),
    Case("a device that draws on counters", device("consumesCounters: [{counterSet: a, counters: {b: {value: 1}}}]")),
    Case("a device that draws on a set twice", device(f"consumesCounters: {many(2, '{counterSet: a, counters: {b: {value: 1}}}')}"), ("Duplicate",)),
    Case("a device that draws on three sets", device(f"consumesCounters: {many(3, '{counterSet: a#, counters: {b: {value: 1}}}')}"), ("TooMany",)),
    Case("a capacity that is no amount", device("capacity: {memory: {value: 6 GiB}}"), ("BadQuantity",)),
    Case("shares by values", shared("{default: 10Gi, validValues: [10Gi, 20Gi]}")),
    Case("shares by steps", shared("{default: 10Gi, validRange: {min: 5Gi, max: 40Gi, step: 5Gi}}")),
    Case("shares of a device that has none", device("capacity: {memory: {value: 40Gi, requestPolicy: {default: 1Gi}}}"), ("Forbidden",)),
    Case("shares by values and steps", shared("{default: 10Gi, validValues: [10Gi], validRange: {min: 5Gi}}"), ("Forbidden",)),
    Case("shares without default", shared("{validValues: [10Gi]}"), ("Required",)),
    Case("a default that is no value", shared("{default: 5Gi, validValues: [10Gi]}"), ("InvalidValue",)),
    Case("values out of order", shared("{default: 10Gi, validValues: [20Gi, 10Gi]}"), ("InvalidValue",)),
    Case("a value beyond the capacity", shared("{default: 10Gi, validValues: [10Gi, 50Gi]}"), ("InvalidValue",)),
    Case("a range without least amount", shared("{default: 10Gi, validRange: {max: 20Gi}}"), ("Required",)),
    Case("a range beyond the capacity", shared("{default: 10Gi, validRange: {min: 5Gi, max: 50Gi}}"), ("InvalidValue",)),
    Case("a default beside the steps", shared("{default: 7Gi, validRange: {min: 5Gi, step: 5Gi}}"), ("InvalidValue",)),
    Case("v1 header, device of v1beta1", slice_("devices: [{name: a, basic: {attributes: {b: {int: 1}}}}]"), ("WrongVersionBody",)),
    Case("v1beta1 header, device of v1", slice_("devices: [{name: a, attributes: {b: {int: 1}}}]", version="v1beta1"), ("VersionNotServed", "WrongVersionBody"), served=False),
    Case("v1beta1 header, device of v1beta1", slice_("devices: [{name: a, basic: {attributes: {b: {int: 1}}}}]", version="v1beta1"), ("VersionNotServed",), served=False),
    Case("an owner of another cluster", slice_("devices: []").replace("  name: made", "  name: made\n  ownerReferences: [{apiVersion: v1, kind: Node, name: worker, uid: 8a5e}]"), ("OwnedElsewhere",)),
    Case("an owner without uid", slice_("devices: []").replace("  name: made", "  name: made\n  ownerReferences: [{apiVersion: v1, kind: Node, name: worker}]"), ("Required",)),
    Case("a pool without slices", slice_("devices: []").replace("resourceSliceCount: 2", "resourceSliceCount: 0"), ("InvalidValue",)),
    Case("a pool with an odd name", slice_("devices: []").replace("{name: worker,", "{name: a//b,"), ("InvalidValue",)),
)  # fmt: skip

RULES = (
    Case("a taint of a driver's devices", rule("deviceSelector: {driver: gpu.test}")),
    Case("a taint of all devices", rule("deviceSelector: {}"), ("SelectsAllDevices",)),
    Case("a taint of all devices, for a look", rule("deviceSelector: {}", "{key: a, effect: None}")),
    Case("a taint of nothing", rule(""), ("SelectsNothing",)),
    Case("an effect that there is not", rule("deviceSelector: {driver: gpu.test}", "{key: a, effect: Evict}"), ("NotSupported",)),
    Case("a taint without key", rule("deviceSelector: {driver: gpu.test}", "{effect: NoSchedule}"), ("InvalidValue", "InvalidValue")),
    Case("a rule by class", rule("deviceSelector: {deviceClassName: gpu.test}"), ("UnknownField",)),
    Case("a rule with an odd device", rule("deviceSelector: {device: gpu.0}"), ("InvalidValue",)),
)  # fmt: skip

PODS = (
    Case("a pod with a template", pod("[{name: gpu, resourceClaimTemplateName: made}]")),
    Case("a pod with a claim", pod("[{name: gpu, resourceClaimName: made}]", "[{name: gpu, request: one}]")),
    Case("a pod with both", pod("[{name: gpu, resourceClaimName: made, resourceClaimTemplateName: made}]"), ("InvalidValue",)),
    Case("a pod with neither", pod("[{name: gpu}]"), ("InvalidValue",)),
    Case("a pod of before 1.31", pod("[{name: gpu, source: {resourceClaimTemplateName: made}}]"), ("UnknownField",)),
    Case("a claim that the pod has not", pod("[{name: gpu, resourceClaimName: made}]", "[{name: gpuu}]"), ("UnknownPodClaim",)),
    Case("a claim twice", pod("[{name: gpu, resourceClaimName: made}, {name: gpu, resourceClaimName: made}]"), ("Duplicate",)),
    Case("a claim wanted twice", pod("[{name: gpu, resourceClaimName: made}]", "[{name: gpu}, {name: gpu, request: one}]"), ("Duplicate",)),
)  # fmt: skip

CASES = (*CLASSES, *EXPRESSIONS, *CLAIMS, *TEMPLATES, *SLICES, *RULES, *PODS)
"""Each a manifest with one mistake, or none."""
