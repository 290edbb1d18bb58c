"""`kubectl dra claims`: how devices of a row are folded; `tests/unit/survey` has the rows, `tests/scenarios/test_views.py` the command."""

from __future__ import annotations

import pytest

from dra_operator.cli.claims import fold_devices


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        ((), ""),
        (("n1/gpu-0",), "d/n1/gpu-0"),
        (tuple(f"n1/gpu-{at}" for at in range(8)), "d/n1/gpu-0…gpu-7"),
        (("n1/gpu-0", "n1/gpu-1"), "d/n1/gpu-0,gpu-1"),
        (tuple(f"n1/gpu-{at}" for at in (9, 10, 8, 2)), "d/n1/gpu-2,gpu-8…gpu-10"),
        (tuple(f"n1/g{at:02}" for at in range(8, 12)), "d/n1/g08…g11"),
        (("n1/gpu-0", "n1/gpu-2", "n1/gpu-4"), "d/n1/gpu-0,gpu-2,gpu-4"),
        (("n1/a", "n1/b", "n1/c"), "d/n1/a,b,c"),
        (
            ("n2/0", "n2/1", "n2/2", "n1/0"),
            "d/n2/0…2, d/n1/0",
        ),
    ],
)
def test_devices_of_one_pool_are_folded_in_the_table(names: tuple[str, ...], folded: str) -> None:
    assert fold_devices(f"d/{name}" for name in names) == folded
