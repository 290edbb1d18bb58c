"""Each mistake of the table has its codes, and no other."""

from __future__ import annotations

import pytest

from dra_operator.lint import documents, look
from tests.mistakes import CASES, Case


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_mistake_is_told_by_its_codes(case: Case) -> None:
    found = look(documents("made.yaml", case.text))

    assert tuple(finding.code for finding in found) == case.codes, "\n".join(
        finding.message for finding in found
    )
