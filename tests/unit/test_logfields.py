"""Which fields a log line gets, and what it never shows."""

from __future__ import annotations

import asyncio
import logging

import pytest

from dra_operator.logfields import (
    FIELDS,
    HIDDEN,
    News,
    fields,
    fields_of,
    fit_to_tell,
    hide,
    note,
    scope,
    without_secrets,
)


def record(**extra: object) -> logging.LogRecord:
    return logging.getLogger("dra_operator.x").makeRecord(
        "dra_operator.x", logging.INFO, "file", 1, "message", (), None, extra=extra
    )


def test_empty_fields_are_left_out_and_zero_is_not_empty() -> None:
    assert fields(pod="a/b", node="", claim=None, devices=0) == {"pod": "a/b", "devices": 0}


def test_a_field_that_is_not_in_the_table_is_a_bug() -> None:
    with pytest.raises(KeyError, match="podd"):
        fields(podd="a/b")


def test_no_field_is_an_attribute_of_every_record() -> None:
    """`logging` would refuse it in `extra`."""
    assert not FIELDS.keys() & {*vars(record()), "message", "asctime"}


def test_a_line_has_the_fields_of_its_call_and_of_the_pass_in_the_order_of_the_table() -> None:
    with scope(controller="allocation"):
        note(decision="u-1", pod="a/outer")
        assert list(fields_of(record(node="n1", pod="a/b")).items()) == [
            ("controller", "allocation"),
            ("pod", "a/b"),
            ("node", "n1"),
            ("decision", "u-1"),
        ]
    assert fields_of(record(node="n1")) == {"node": "n1"}


def test_what_libraries_attach_is_no_field() -> None:
    assert fields_of(record(settings=object(), k8s_skip=True)) == {}


def test_a_scope_inside_a_scope_adds_to_it_and_takes_nothing_along() -> None:
    with scope(pod="a/b"):
        with scope(claim="a/c"):
            note(node="n1")
            assert fields_of(record()) == {"pod": "a/b", "claim": "a/c", "node": "n1"}
        assert fields_of(record()) == {"pod": "a/b"}


def test_a_note_outside_of_any_scope_is_lost() -> None:
    note(pod="a/b")
    assert fields_of(record()) == {}


async def test_passes_that_run_at_the_same_time_do_not_mix() -> None:
    async def one(name: str) -> dict[str, str | int | float]:
        with scope(pod=name):
            await asyncio.sleep(0)
            note(decision=f"{name}-1")
            await asyncio.sleep(0)
            return fields_of(record())

    found = await asyncio.gather(*(one(name) for name in "abc"))
    assert found == [{"pod": name, "decision": f"{name}-1"} for name in "abc"]


def test_secrets_are_replaced_wherever_they_stand() -> None:
    hide("s3cr3t-t0ken")
    assert without_secrets("a s3cr3t-t0ken, 's3cr3t-t0ken'") == f"a {HIDDEN}, '{HIDDEN}'"


def test_what_is_too_short_to_be_a_secret_hides_nothing() -> None:
    hide("")
    hide("pod")
    assert without_secrets("a pod") == "a pod"


def test_a_word_is_new_once_whatever_its_figures() -> None:
    news = News()
    words = [
        ("a", "version 1 is stale"),
        ("a", "version 23 is stale"),
        ("b", "version 1 is stale"),
        ("a", "gone"),
    ]
    assert [news.is_new(*word) for word in words] == [True, False, True, True]


def test_what_is_well_again_is_told_of_anew() -> None:
    news = News()
    assert [news.forget("a"), news.is_new("a", "bad"), news.forget("a"), news.is_new("a", "bad")] == [
        False,
        True,
        True,
        True,
    ]


def test_what_was_told_longest_ago_is_forgotten_first() -> None:
    news = News(size=2)
    for key in ("a", "b", "a", "c"):
        news.is_new(key, "bad")
    assert [news.forget(key) for key in "abc"] == [True, False, True]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            'config[0].opaque.parameters: Invalid value: {"a":{"b":"c"}}: no',
            "config[0].opaque.parameters: Invalid value: (hidden): no",
        ),
        ('parameters: Invalid value: "a \\"b\\"": no', "parameters: Invalid value: (hidden): no"),
        ('webhook: parameters "cut off in the', "webhook: parameters (hidden)"),
        (
            "parameters: Too long: may not be more than 10240 bytes",
            "parameters: Too long: may not be more than 10240 bytes",
        ),
        ('pods "web" is forbidden: {}', 'pods "web" is forbidden: {}'),
        ("Bearer opaque-token-of-somebody", "Bearer (hidden)"),
    ],
)
def test_the_words_of_others_are_told_without_what_they_quote_of_parameters(text: str, told: str) -> None:
    assert fit_to_tell(text) == told
