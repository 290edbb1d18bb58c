"""Constants that are read on each device, and fail there."""

from __future__ import annotations

import pytest

from dra_operator.lint import Finding, documents, look
from tests.unit.lint.test_warnings import CLASS, GPU, SLICE, claim

MEMORY = 'device.capacity["gpu.test"].memory'


def found(expression: str, *others: str) -> list[Finding]:
    return look(documents("made.yaml", "---\n".join([*others, claim(expression)])))


@pytest.mark.parametrize(
    ("call", "part", "remedy"),
    [
        ('quantity("10Gib")', '"10Gib"', 'write `quantity("10Gi")`'),
        ('quantity("40GB")', '"40GB"', 'write `quantity("40G")` or `quantity("40Gi")`'),
        ("quantity('40 gb')", "'40 gb'", 'write `quantity("40G")` or `quantity("40Gi")`'),
        ('quantity("16KB")', '"16KB"', 'write `quantity("16k")` or `quantity("16Ki")`'),
        ('quantity("16K")', '"16K"', 'write `quantity("16k")` or `quantity("16Ki")`'),
        ('quantity("1,5 GiB")', '"1,5 GiB"', 'write `quantity("1.5Gi")`'),
        ('quantity("10gi")', '"10gi"', 'write `quantity("10Gi")`'),
        ('quantity("2 Gibibytes")', '"2 Gibibytes"', 'write `quantity("2Gi")`'),
        ('quantity("512B")', '"512B"', 'write `quantity("512")`'),
        ('quantity("lots")', '"lots"', "a quantity is a number with"),
        ('quantity("")', '""', "a quantity is a number with"),
        ('semver("550")', '"550"', 'write `semver("550.0.0")` or `semver("550", true)`'),
        ('semver("12.4")', '"12.4"', 'write `semver("12.4.0")` or `semver("12.4", true)`'),
        ('semver("v12.4.0")', '"v12.4.0"', 'write `semver("v12.4.0", true)`'),
        ('semver("v12.4")', '"v12.4"', 'write `semver("12.4.0")` or `semver("v12.4", true)`'),
        ('semver("12.04.1")', '"12.04.1"', 'write `semver("12.04.1", true)`'),
        ('semver("12.4-rc1", true)', '"12.4-rc1"', 'write `semver("12.4.0-rc1")`'),
        ('semver("1.2.3.4")', '"1.2.3.4"', "a version is three numbers"),
        ('semver("r550", true)', '"r550"', "a version is three numbers"),
    ],
)
def test_a_constant_that_cannot_be_read_is_told_with_what_is_meant(call: str, part: str, remedy: str) -> None:
    method = "isInteger()" if "quantity" in call else "major() > 1"
    (finding,) = found(f"{call}.{method}")

    assert (finding.code, finding.severity) == ("BadConstant", "warning")
    assert finding.source[finding.column - 1 : finding.end_column - 1].replace("''", "'").strip("\\") == part
    assert finding.remedy.startswith(remedy)
    assert part.strip("\"'") in finding.message


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (f'{MEMORY}.compareTo(quantity("40GB")) >= 0', 1),
        (f'device.driver == "gpu.test" && {GPU}.version.isLessThan(semver("12.4"))', 1),
        (f'[quantity("1GB"), quantity("2GB"), quantity("3Gi")].exists(x, x.isLessThan({MEMORY}))', 2),
        ('cidr("10.0.0.0").prefixLength() == 8', 1),
        ('cidr("10.0.0.0/8").containsIP("10.0.0.256")', 1),
        ('ip("localhost").family() == 4 || url("a b").getHost() == ""', 2),
        ('isQuantity("40GB") || isSemver("12.4")', 0),
        ('quantity("40" + "GB").isInteger()', 0),
        ('semver("12.4", true).major() == 12 && quantity("1e3").isInteger()', 0),
        ('foo == quantity("40GB")', 0),
    ],
)
def test_each_constant_is_told_wherever_it_stands(expression: str, expected: int) -> None:
    assert [one.code for one in found(expression) if one.code != "CelInvalid"] == ["BadConstant"] * expected


def test_what_is_proposed_is_told_no_more() -> None:
    for good in (
        'semver("12.4.0")',
        'semver("12.4", true)',
        'semver("v12.4.0", true)',
        'semver("550", true)',
    ):
        assert found(f"{good}.major() > 1") == []
    for good in ("40G", "40Gi", "10Gi", "16k", "1.5Gi"):
        assert found(f'quantity("{good}").isInteger() || true') == []


def test_with_slices_it_is_told_once() -> None:
    expression = f'{MEMORY}.compareTo(quantity("40GB")) >= 0'

    (finding,) = found(expression, SLICE, CLASS)

    assert (finding.code, finding.remedy) == (
        "BadConstant",
        'write `quantity("40G")` or `quantity("40Gi")`',
    )


def test_a_constant_with_escapes_is_shown_as_wide_as_it_is_written() -> None:
    expression = 'quantity("40\\x47B").isInteger()'

    (finding,) = look(documents("made.json", _json(expression)))

    assert finding.source[finding.column - 1 : finding.end_column - 1] == r"\"40\\x47B\""


def _json(expression: str) -> str:
    written = expression.replace("\\", "\\\\").replace('"', '\\"')
    return (
        '{"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "made"}, '
        f'"spec": {{"selectors": [{{"cel": {{"expression": "{written}"}}}}]}}}}'
    )
