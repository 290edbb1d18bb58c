"""What devices of a claim have in common, or must not (alloc sections 6 and 11)."""

from __future__ import annotations

from typing import Any

import pytest

from dra_operator.allocator import Collector, Rejection, RequestRef, Why
from dra_operator.errors import CelCompileError, CelRuntimeError, InvalidClaim, NoSolution
from dra_operator.features import DEFAULT_1_37, Features
from dra_operator.model import DeviceId
from dra_operator.testing import builders as make

from .worlds import DRIVER, allocate, alternative, claim, gpus, inputs, request

LISTS = Features(list_type_attributes=True)
DERIVED = Features(derived_attributes=True, list_type_attributes=True, prioritized_list=True)
NUMA = f"{DRIVER}/numa"


def valued(name: str, field: str, value: Any) -> dict[str, Any]:
    return {"name": name, "attributes": {"numa": {field: value}}}


def solved(features: Features, wanted: Any, *devices: Any) -> str:
    """Names of the devices that the claim gets, or `none`."""
    try:
        return " ".join(allocate(inputs([gpus(*devices)], features=features), wanted)[0])
    except NoSolution:
        return "none"


def distinct(*requests: Any, names: tuple[str, ...] = ()) -> Any:
    constraint = {"distinctAttribute": NUMA} | ({"requests": list(names)} if names else {})
    return claim(*requests, constraints=[constraint])


def same(*requests: Any) -> Any:
    return claim(*requests, constraints=[{"matchAttribute": NUMA}])


@pytest.mark.parametrize("features", [DEFAULT_1_37, LISTS], ids=["scalars", "lists"])
@pytest.mark.parametrize(
    ("field", "one", "other"),
    [("int", 0, 1), ("bool", True, False), ("string", "x", "y"), ("version", "1.0.0", "1.0.0+b")],
)
def test_every_two_devices_are_distinct(features: Features, field: str, one: Any, other: Any) -> None:
    """By alloc C-13: also those of one request, the first and the third; versions are text."""
    devices = (valued("a", field, one), valued("b", field, one), valued("c", field, other))
    assert solved(features, distinct(request("r", count=2)), *devices) == "a c"
    assert solved(features, distinct(request("r"), request("q")), *devices) == "a c"
    assert solved(features, distinct(request("r", count=3)), *devices) == "none"


def test_values_of_different_types_are_distinct_and_not_the_same() -> None:
    """By alloc C-14, C-12: all that are taken are compared, whatever their types."""
    devices = (valued("a", "int", 1), valued("b", "string", "1"), valued("c", "int", 1))
    assert solved(DEFAULT_1_37, distinct(request("r", count=2)), *devices) == "a b"
    assert solved(DEFAULT_1_37, distinct(request("r", count=3)), *devices) == "none"
    assert solved(LISTS, same(request("r", count=2)), *devices) == "a c"


def test_devices_without_the_attribute_meet_no_constraint() -> None:
    """By alloc C-5, also alone; the reason says so."""
    collector = Collector()
    with pytest.raises(NoSolution):
        allocate(inputs([gpus(make.device("a"))]), distinct(request("r")), reporter=collector)
    assert list(collector.devices[RequestRef("default/c", "r")].values()) == [
        Rejection(
            Why.CONSTRAINT,
            f"spec.devices.constraints[0].distinctAttribute {NUMA}: the device does not have it",
        )
    ]


@pytest.mark.parametrize("features", [DEFAULT_1_37, LISTS], ids=["scalars", "lists"])
def test_who_is_refused_by_a_constraint_is_told_with_whom_it_does_not_go(features: Features) -> None:
    zero, one, again = valued("a", "int", 0), valued("b", "int", 1), valued("c", "int", 0)
    for wanted, devices, refused in (
        (same(request("r", count=2)), (zero, one), "b"),
        (distinct(request("r", count=2)), (zero, again), "c"),
    ):
        collector = Collector()
        with pytest.raises(NoSolution):
            allocate(inputs([gpus(*devices)], features=features), wanted, reporter=collector)
        found = collector.devices[RequestRef("default/c", "r")][DeviceId(DRIVER, "n1", refused)]
        assert (found.why, found.partner) == (Why.CONSTRAINT, DeviceId(DRIVER, "n1", "a"))


def test_a_constraint_is_for_the_requests_that_it_names() -> None:
    devices = (valued("a", "int", 0), valued("b", "int", 0), valued("c", "int", 1))
    wanted = distinct(request("r"), request("q"), request("x"), names=("r", "x"))
    assert solved(DEFAULT_1_37, wanted, *devices) == "a b c"


def test_what_is_given_back_is_forgotten() -> None:
    """The first choice leads nowhere: the second request must have the value of the first device."""
    devices = (valued("a", "int", 0), valued("b", "int", 1), valued("c", "int", 0))
    zero = f'device.attributes["{DRIVER}"].numa == 0'
    assert solved(DEFAULT_1_37, distinct(request("r"), request("q", "gpu", zero)), *devices) == "b a"


def test_lists_have_a_value_in_common_with_all_others() -> None:
    """By alloc C-10: each two of a, b, c have one, all three none."""
    devices = (valued("a", "ints", [0, 1]), valued("b", "ints", [1, 2]), valued("c", "ints", [0, 2]))
    assert solved(LISTS, same(request("r", count=2)), *devices) == "a b"
    assert solved(LISTS, same(request("r", count=3)), *devices) == "none"
    assert solved(LISTS, same(request("r", count=2)), valued("x", "int", 2), *devices) == "x b"


def test_going_back_restores_what_all_have_in_common() -> None:
    """By alloc C-11: a and b leave 1 alone, without b there is 2 again."""
    devices = (
        valued("a", "ints", [1, 2]),
        valued("b", "ints", [1]),
        valued("c", "ints", [2]),
        valued("d", "ints", [2]),
    )
    assert solved(LISTS, same(request("r", count=3)), *devices) == "a c d"


def test_lists_are_distinct_if_they_share_nothing() -> None:
    """By alloc C-16."""
    devices = (
        valued("a", "strings", ["x", "y"]),
        valued("b", "strings", ["y", "z"]),
        valued("c", "string", "z"),
    )
    assert solved(LISTS, distinct(request("r", count=2)), *devices) == "a c"


@pytest.mark.parametrize("wanted", [same, distinct])
def test_lists_without_the_feature_do_for_one_device(wanted: Any) -> None:
    """By oracle 7 no. 8."""
    devices = (valued("a", "ints", [0]), valued("b", "ints", [0]))
    assert solved(DEFAULT_1_37, wanted(request("r")), *devices) == "a"
    assert solved(DEFAULT_1_37, wanted(request("r", count=2)), *devices) == "none"


# --- derived attributes


def derived(name: str, expression: str, **more: Any) -> Any:
    return request(name, derivedAttributes=[{"name": NUMA, "expression": expression}], **more)


ROOT = f'device.attributes["{DRIVER}"].root.substring(0, 2)'


def rooted(name: str, root: str) -> dict[str, Any]:
    return {"name": name, "attributes": {"root": {"string": root}, "numa": {"string": name}}}


def test_a_derived_attribute_shadows_the_one_that_is_published() -> None:
    """By alloc D-5: by what is published, no two are the same."""
    devices = (rooted("a", "x0-1"), rooted("b", "y0-1"), rooted("c", "x0-2"))
    assert solved(DERIVED, same(derived("r", ROOT, count=2)), *devices) == "a c"
    assert solved(DERIVED, distinct(derived("r", ROOT, count=2)), *devices) == "a b"


def test_a_request_without_the_derived_attribute_has_the_published_one() -> None:
    devices = (rooted("a", "b--"), rooted("b", "a--"))
    first = f'device.attributes["{DRIVER}"].root.substring(0, 1)'
    assert solved(DERIVED, same(derived("r", first), request("q")), *devices) == "a b"
    assert solved(DERIVED, distinct(derived("r", first), request("q")), *devices) == "none"
    assert solved(DERIVED, same(derived("r", '"b"'), request("q")), *devices) == "a b"


def test_alternatives_have_their_own() -> None:
    expression = [{"name": NUMA, "expression": ROOT}]
    wanted = make.first_available(
        "r", alternative("one", count=3, derivedAttributes=expression), alternative("two", count=2)
    )
    assert solved(DERIVED, same(wanted), rooted("a", "x0"), rooted("b", "x0"), rooted("c", "x0")) == "a b c"


@pytest.mark.parametrize(
    ("expression", "error", "text"),
    [
        ("device.nosuch", CelCompileError, f"compile derived attribute {NUMA} failed"),
        (
            f'device.attributes["{DRIVER}"].nosuch',
            CelRuntimeError,
            f"evaluate derived attribute {NUMA} on device {DRIVER}/n1/a failed: .*no such key: nosuch",
        ),
    ],
)
def test_an_expression_that_fails_is_told_with_its_place(
    expression: str, error: type[Exception], text: str
) -> None:
    """By alloc D-4."""
    with pytest.raises(error, match=text) as caught:
        solved(DERIVED, same(derived("r", expression)), rooted("a", "x"))
    spot = getattr(caught.value, "spot", None)
    assert spot is not None
    assert spot.path == "spec.devices.requests[0].exactly.derivedAttributes[0].expression"


def test_expressions_are_for_devices_that_the_selectors_leave() -> None:
    """By alloc D-3: b would fail."""
    only = f'device.attributes["{DRIVER}"].numa == "a"'
    broken = {"name": "b", "attributes": {"numa": {"string": "b"}}}
    wanted = same(request("r", "gpu", only, derivedAttributes=[{"name": NUMA, "expression": ROOT}]))
    assert solved(DERIVED, wanted, broken, rooted("a", "x0")) == "a"


def test_without_the_feature_they_are_refused() -> None:
    """What they restrict would be allocated all the same."""
    with pytest.raises(
        InvalidClaim, match="cannot handle request with derived attributes, the feature is disabled"
    ):
        solved(DEFAULT_1_37, same(derived("r", ROOT)), rooted("a", "x"))
