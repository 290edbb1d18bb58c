"""The demo promises to be quick, and says so when it was not."""

from __future__ import annotations

import pytest

from dra_operator.testing.demo.__main__ import check_time
from dra_operator.testing.demo.errors import DemoFailed


def test_a_minute_is_quick_enough() -> None:
    check_time(60.0)


def test_more_than_a_minute_is_a_failure_that_names_both() -> None:
    with pytest.raises(DemoFailed, match=r"it took 75 s and shall take 60 s at most"):
        check_time(75.0)
