"""What the storm reads of processes: memory, and tracebacks that nobody expects."""

from __future__ import annotations

from tests.chaos.traces import resident, tracebacks

KOPF = """2026-11-30T17:37:56.070Z ERROR   task kopf has ended; so does the operator
Traceback (most recent call last):
aiohttp.client_exceptions.ClientResponseError: {code}, message='Gone'
"""
FINE = "2026-11-30T17:37:56.101Z INFO    shutting down: 410\n"
BUG = """2026-11-30T17:37:57.000Z ERROR   failed
Traceback (most recent call last):
KeyError: 'x'
"""


def test_memory_of_a_process_and_of_one_that_is_ending() -> None:
    assert resident("Name:\tpython\nVmRSS:\t  122880 kB\nThreads:\t3\n") == 120
    assert resident("Name:\tpython\nState:\tZ (zombie)\n") is None


def test_tracebacks_are_found_but_for_the_end_of_kopf_at_a_410() -> None:
    assert list(tracebacks(FINE + KOPF.format(code=410) + BUG + FINE)) == [BUG]
    assert list(tracebacks(KOPF.format(code=500) + FINE)) == [KOPF.format(code=500)]
    assert list(tracebacks(FINE)) == []
