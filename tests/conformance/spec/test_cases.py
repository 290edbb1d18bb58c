"""CEL's public conformance cases: all agree but those that Kubernetes itself answers in another way."""

from __future__ import annotations

import pytest

from .running import Case, cases, difference, different

KNOWN = different()


@pytest.mark.parametrize("case", [case for case in cases() if case.id not in KNOWN], ids=lambda case: case.id)
def test_the_suites_answer(case: Case) -> None:
    assert difference(case) == ""


def test_what_is_known_to_differ_does() -> None:
    found = {case.id for case in cases() if case.id in KNOWN and difference(case)}
    assert found == KNOWN.keys()
    assert len(KNOWN) < len(cases()) / 25
