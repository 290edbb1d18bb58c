"""Whatever is written as a selector, the engine answers with a bool or with an error of its own, and always the same."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from dra_operator.cel import default_compiler
from dra_operator.errors import CelError
from dra_operator.features import DEFAULT_1_37
from dra_operator.model import ResourceSlice, from_object

SLICE = from_object(
    ResourceSlice,
    {
        "metadata": {"name": "s"},
        "spec": {
            "driver": "d",
            "devices": [
                {
                    "name": "x",
                    "attributes": {
                        "s": {"string": "a1"},
                        "i": {"int": 3},
                        "b": {"bool": True},
                        "v": {"version": "1.2.3"},
                        "l": {"ints": [1, 2]},
                    },
                    "capacity": {"m": {"value": "1Gi"}},
                }
            ],
        },
    },
)

LEAVES = [
    "1", "0", "-3", "2u", "1.5", '"a1"', "'x'", "true", "false", "null", 'b"a"', "[]", "{}", "x", "int",
    "device", "device.driver", *(f"device.attributes.d.{name}" for name in ("s", "i", "b", "v", "l", "nope")),
    "device.capacity.d.m", 'quantity("1Gi")', 'semver("1.2.3")', "optional.of(1)", "optional.none()",
]  # fmt: skip
SHAPES = [
    "{0} == {1}", "{0} != {1}", "{0} < {1}", "{0} >= {1}", "{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / {1}", "{0} % {1}",
    "({0} && {1})", "({0} || {1})", "!{0}", "-{0}", "({0} ? {1} : {2})", "{0} in {1}", "{0}[{1}]", "{0}[?{1}]",
    "{0}.?s", "has({0}.s)", "{0}.orValue({1})", "[{0}, {1}]", "{{{0}: {1}}}", "[?{0}]", "{0}.exists(x, {1})",
    "{0}.all(x, {1})", "{0}.map(x, {1})", "{0}.filter(x, {1})", "{0}.exists_one(x, {1})", "cel.bind(x, {0}, {1})",
    "{0}.optMap(x, {1})", "size({0})", "{0}.size()", "string({0})", "int({0})", "type({0})", "dyn({0})",
    "{0}.matches({1})", "{0}.split({1})", "{0}.includes({1})", "{0}.compareTo({1})", "{0}.add({1})", "{0}.indexOf({1})",
    "{0}.substring({1}, {2})", "{0}.lowerAscii()", "{0}.isGreaterThan({1})", "{0}.major()", "quantity({0})", "semver({0})",
]  # fmt: skip

leaves = st.sampled_from(LEAVES)
expressions = st.recursive(
    leaves,
    lambda inner: st.builds(
        lambda shape, one, two, three: shape.format(one, two, three),
        st.sampled_from(SHAPES),
        inner,
        inner,
        inner,
    ),
    max_leaves=8,
)


def answer(text: str) -> str:
    """The answer of a fresh compiler."""
    try:
        return str(default_compiler().compile(text, DEFAULT_1_37).matches(SLICE, SLICE.spec.devices[0]))
    except CelError as error:
        return f"{type(error).__name__}: {error}"


@settings(deadline=None, max_examples=300)
@given(expressions)
def test_well_formed_text_has_one_answer(text: str) -> None:
    assert answer(text) == answer(text)


@settings(deadline=None, max_examples=300)
@given(expressions)
def test_a_value_of_unknown_type_only_adds_or_moves_errors(text: str) -> None:
    """What compiles to a bool gives the same bool when its static type is forgotten."""
    plain = answer(text)
    if plain in {"True", "False"}:
        assert answer(f"dyn({text})") == plain


@settings(deadline=None, max_examples=300)
@given(
    st.lists(
        st.sampled_from(
            [*LEAVES, *"()[]{}?:.,!-+<", "&&", "||", "==", "in", "`a`", '"', "r'", "\n", "//", "é", "has("]
        )
    )
)
def test_any_other_text_has_one_too(parts: list[str]) -> None:
    assert answer("".join(parts)) == answer("".join(parts))
