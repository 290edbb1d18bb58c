"""What expressions cost at worst: the numbers are upstream's answers to expressions of ours (V-26)."""

from __future__ import annotations

import pytest

from dra_operator.cel.checking.checks import check
from dra_operator.cel.checking.environment import stored_expressions
from dra_operator.cel.costs.estimate import estimate, is_too_complex
from dra_operator.cel.costs.units import MOST, Cost

KNOWN = {
    'cel.bind(a, device.attributes["d"], a.exists(k, a.foo == 1 && k == "x"))': 303,
    'cel.bind(a, device.attributes["d"], a.exists(k, k == "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" && a.foo == 1 ))': 399,
    'device.attributes.exists(d, device.attributes[d].exists(k, k == "a" || d == k))': 12_579,
    'device.attributes.d.x.exists(y, y == "abc")': 18_446_744_073_709_551_615,
    'device.attributes["d"].x.map(y, y + "a").size() > 0': 18_446_744_073_709_551_615,
    'device.attributes["d"].filter(k, k.startsWith("abc")).size() > 0': 496,
    "[1,2,3].map(x, [x, x]).exists(y, y.exists(z, z == 3))": 148,
    '["a","bb"].map(x, x + "ccc").join(",") == "x"': 1_844_674_407_370_955_314,
    '["a","bb"].exists_one(x, x == "ccc")': 20,
    '{"a": 1, "bb": 2}.exists(k, k == "a")': 43,
    '{"a": "x", "bb": "y"}.transformMap(k, v, v + k)["a"] == "z"': 75,
    '{"a": "x", "bb": "y"}.transformList(k, v, v + k).size() == 3': 73,
    '{"a": "x", "bb": "y"}.transformMapEntry(k, v, {v: k}).size() == 2': 131,
    '["a", "b"].all(i, v, i > 0 && v == "a")': 25,
    '["a", "b"].exists(i, v, i > 0 && v == "a")': 27,
    '["a", "b"].existsOne(i, v, i > 0 && v == "a")': 24,
    'device.attributes["d"].transformList(k, v, k).size() > 0': 432,
    "device.attributes.transformMap(k, v, v.size()).size() > 0": 195,
    '["z", "b"].sortBy(x, x.size())[0] == "b"': 82,
    'device.attributes["d"].x.sortBy(x, x)[0] == "b"': 9_474,
    'device.attributes["d"].?x.optMap(v, v + 1).orValue(3) == 3': 25,
    'device.attributes["d"].?x.optFlatMap(v, optional.of(v)).orValue(3) == 3': 24,
    'optional.of("abc").optMap(v, v + "a").orValue("x") == "y"': 1_844_674_407_370_955_282,
    'device.driver.contains("abc")': 9,
    'device.driver.replace("a", "bcd").replace("b", "") == "x"': 54,
    'device.driver.split(",")[0] == "a"': 17,
    'device.driver.split(",", 2)[0] == "a"': 17,
    'device.driver.split("", -1).size() == 1': 17,
    'device.driver.matches("^a.*b$")': 16,
    'matches(device.driver, "^a.*b$")': 16,
    'device.driver.find("^a.*b$") == "x"': 17,
    'device.driver.findAll("^a.*b$", 2).size() == 1': 18,
    'device.driver.indexOf("a") == 1': 10,
    "[1, 2].indexOf(1) == 2": 13,
    '["aaa", device.driver].indexOf("x") == 2': 3_689_348_814_741_910_543,
    'device.attributes["d"].x.indexOf("x") == 2': 12,
    'device.attributes["d"].x.includes("x")': 68,
    'device.driver.lowerAscii().upperAscii().trim().substring(1,2) == "x"': 31,
    "bytes(device.driver).size() == 2": 11,
    "string(bytes(device.driver)) == device.driver": 44,
    'device.driver < "abc"': 3,
    'device.attributes["d"].x < "abc"': 5,
    'device.attributes["d"].x < 1': 5,
    'device.attributes["d"].x + "abc" == "d"': 12,
    'device.attributes["d"].x + device.attributes["d"].y == "d"': 22,
    'device.driver + device.driver + "abc" == "d"': 31,
    'device.driver in ["a", "b"]': 14,
    "device.driver in device.attributes": 5,
    '"a" in device.attributes["d"].x': 68,
    'device.capacity["d"]["mem"] == quantity("1Gi")': 6,
    'device.capacity["d"].mem.compareTo(quantity("1Gi")) >= 0': 7,
    'device.capacity.d.mem.isGreaterThan(quantity("1Gi"))': 6,
    'device.attributes["d"].v.isGreaterThan(semver("1.2.3"))': 6,
    'device.attributes["d"].v == semver("1.2.3")': 12,
    'semver("1.2.3") == semver("1.2.3")': 3,
    'semver("v1.2.3", true).major() == 1': 3,
    "isSemver(device.driver)": 9,
    'has(device.attributes.x) && has(device.attributes["d"].x)': 5,
    'device.driver == "a" ? device.attributes["d"].b : false': 7,
    '(device.driver == "a" ? "abc" : "defgh") == device.driver': 6,
    '(device.driver == "a" ? ["abc"] : ["defgh"]).exists(x, x == device.driver)': 22,
    "device.allowMultipleAllocations": 2,
    "!device.allowMultipleAllocations": 3,
    'device.attributes["d"]["x"] == "abc"': 5,
    'device.attributes["d"][?"x"].orValue("a") == "b"': 6,
    'device.attributes[?"d"]["x"].orValue("a") == "b"': 6,
    'device.attributes[?"d"].?x.or(optional.of(3)).value() == 3': 8,
    '{"device": {"driver": "x"}}.device.driver == "x"': 63,
    'cel.bind(device, {"driver": "x"}, device.driver == "x")': 43,
    '[device].exists(d, d.driver == "x")': 19,
    'dyn(device).driver == "x"': 3,
    "dyn([1,2,3]).exists(x, x == 1)": 30,
    'dyn("abc") == device.driver': 4,
    'size(device.attributes["d"].x) == 1': 6,
    'device.attributes["d"].x.size() == 1': 6,
    'string(device.attributes["d"].x) == "a"': 12,
    'bytes(device.attributes["d"].x) == b"a"': 12,
    'int(device.attributes["d"].x) == 1': 6,
    "[[1],[2,3]][1][0] == 2": 33,
    '{"a": {"b": "ccc"}}["a"]["b"] == device.driver': 71,
    "[1, 2] + [3] == [1,2,3]": 32,
    "([1, 2] + [3]).exists(x, x == 3)": 40,
    "[1,2,3].filter(x, x > 1).map(x, x * 2).size() == 2": 121,
    'device.attributes["d"].x.all(a, device.attributes["d"].y.all(b, device.attributes["d"].z.all(c, a == b && b == c)))': 18_446_744_073_709_551_615,
    'device.attributes["d"].x.all(a, device.attributes["d"].y.all(b, a == b))': 18_446_744_073_709_551_615,
    "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, a == b && b == c)))": 694_467,
    'true || false && true || device.driver == "a"': 3,
    "[].all(x, true)": 11,
    '[?device.attributes["d"].?x].exists(x, x == "a")': 21,
    '{?"a": device.attributes["d"].?x}.size() == 1': 36,
    '[?optional.of("a"), "b"].join() == "a"': 1_844_674_407_370_955_276,
    'device.driver.startsWith("a") && device.driver.endsWith("b")': 6,
    '[device.driver].join("::") == "a"': 1_844_674_407_370_955_277,
    '["a", "b"].map(x, device.driver).join("::") == "a"': 1_844_674_407_370_955_314,
    'device.driver.charAt(1) == "a"': 4,
    'device.driver.lastIndexOf("a", 3) == 1': 10,
    "type(device.driver) == string": 1_844_674_407_370_955_268,
    '["abc", device.driver][0] == device.driver': 22,
    "cel.bind(__result__, [1,2], __result__.size() == 2)": 23,
    'cel.bind(a, "xyz", a) == device.driver': 20,
    "cel.bind(a, [1,2], a).exists(x, x == 1)": 18_446_744_073_709_551_615,
    'optional.of(device.driver).value() == "abc"': 5,
    "optional.none().orValue(1) == 1": 3,
    "[1,2].first().value() == 1": 13,
    'device.attributes["d"].x == device.attributes["d"].y': 15,
    "device.attributes == device.attributes": 8,
    "device.capacity == device.capacity": 8,
    '[device.driver] == ["abc"]': 23,
    '{"a": device.driver} == {"a": "abc"}': 63,
    "1 + 2 == 3": 2,
    '"abc" + "def" == "abcdef"': 2,
    'b"abc" + b"def" == b"abcdef"': 2,
    '.device.driver == "a"': 3,
    'cel.bind(device, 1, .device.driver == "a")': 13,
    "1.0 < 2.0": 1,
    'quantity("1Gi").add(quantity("2Gi")).sub(1).asInteger() == 1': 6,
    'device.attributes["d"].?a.?b.?c.orValue(1) == 1': 8,
    'device.attributes["d"].a.b.c.d == 1': 5,
    'device.attributes["d"].x[0] == "a"': 6,
    'device.attributes["d"].x[0][1] == "a"': 7,
    'device.attributes["d"].x.map(i, i)[0] == "a"': 849,
    'device.attributes["d"].map(i, i)[0] == "a"': 432,
    'device.attributes.map(i, i)[0] == "a"': 431,
    'device.attributes.map(i, i).exists(j, j == "a")': 622,
    'device.attributes.map(i, device.attributes[i].map(k, k + i)).exists(j, j.exists(l, l == "aaa"))': 31_790,
    '"é😀" == device.driver': 3,
    "google.protobuf.NullValue.NULL_VALUE == 1": 2,
    "dyn(1) == google.protobuf.Duration": 3,
    "net.IP == net.CIDR": 1844674407370955266,
    'cidr("10.0.0.0/8").containsIP({}["a"])': 36,  # an open type is taken for text
    'cidr("10.0.0.0/8").containsCIDR(optional.none().value())': 1_844_674_407_370_955_274,
}


def estimated(expression: str) -> Cost:
    return estimate(check(expression, stored_expressions()))


@pytest.mark.parametrize("expression", KNOWN)
def test_the_worst_case_is_upstreams(expression: str) -> None:
    assert estimated(expression).max == KNOWN[expression]


@pytest.mark.parametrize(
    ("expression", "cost"),
    [
        ("true", Cost(0, 0)),
        ('device.driver == "a" && device.driver == "b"', Cost(3, 6)),
        ('device.driver == "a" ? device.attributes["d"].x : true', Cost(3, 7)),
        ("device.attributes.all(d, true)", Cost(3, 99)),
    ],
)
def test_the_best_case_is_what_short_circuits_leave(expression: str, cost: Cost) -> None:
    assert estimated(expression) == cost


def nested(depth: int) -> str:
    made = "true"
    for variable in "abcdefgh"[:depth]:
        made = f"device.attributes.all({variable}, {made})"
    return made


@pytest.mark.parametrize(("depth", "too_complex"), [(1, False), (2, False), (3, False), (4, True), (8, True)])
def test_loops_in_loops_go_over_the_limit(depth: int, *, too_complex: bool) -> None:
    assert is_too_complex(estimated(nested(depth))) == too_complex


def test_derived_attributes_of_a_claim_share_one_limit() -> None:
    half = Cost(0, 500_000)
    assert not is_too_complex(half, half)
    assert is_too_complex(half, half, Cost(1, 1))


def test_numbers_end_at_64_bits() -> None:
    unbounded = estimated('device.attributes["d"].x.y.all(a, a.b.c.all(d, d == a))')
    assert unbounded.max == MOST
