"""Texts become objects that know where they stand."""

from __future__ import annotations

import json

import pytest

from dra_operator.lint import look
from dra_operator.lint.texts import documents, inner


def values(text: str) -> list[object]:
    return [document.value for document in documents("made.yaml", text)]


def test_documents_are_told_apart_and_empty_ones_left_out() -> None:
    assert values("---\na: 1\n---\n# nothing\n---\nb: 2\n...\n") == [{"a": 1}, {"b": 2}]


def test_a_broken_document_does_not_stop_the_others() -> None:
    first, broken, last = documents("made.yaml", "a: 1\n---\nb: [\n---\nc: 3\n")

    assert (first.value, last.value) == ({"a": 1}, {"c": 3})
    assert broken.value is None
    assert [fault.code for fault in broken.faults] == ["BadYaml"]


def test_a_template_is_told_from_what_it_makes() -> None:
    (document,) = documents("made.yaml", "a: {{ .Values.a }}\n")

    assert "helm template" in document.faults[0].remedy


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", True), ("n", False), ("no", False), ("Off", False), ("~", None), ("", None), ("0x1F", 31), ("010", 8), ("0o10", 8),
        ("1_000", 1000), ("1e3", 1000), ("2.0", 2), ("1e30", 1e30), ("2024-01-01", "2024-01-01"), ("12:30:45", "12:30:45"), ("'no'", "no"), ("+5", 5), ("-3", -3), (".5", 0.5),
    ],
)  # fmt: skip
def test_scalars_are_read_as_kubectl_reads_them(text: str, value: object) -> None:
    assert values(f"a: {text}\n") == [{"a": value}]


def test_json_is_read_with_its_tabs() -> None:
    assert values('{\n\t"a":\t[1, "b"]\n}\n') == [{"a": [1, "b"]}]


def test_aliases_and_merges_are_followed() -> None:
    assert values("a: &x {b: 1, c: 2}\nd: *x\ne:\n  <<: *x\n  c: 3\n")[0] == {
        "a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 2}, "e": {"c": 3, "b": 1},
    }  # fmt: skip


def test_a_bomb_of_aliases_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 8)]
    (document,) = documents("made.yaml", "\n".join(lines))

    assert document.value is None
    assert "aliases" in document.faults[0].message


def test_nesting_without_end_is_refused() -> None:
    (document,) = documents("made.yaml", "[" * 100_000)

    assert document.value is None
    assert document.faults[0].code == "BadYaml"


def test_a_key_that_stands_twice_is_told_at_the_second() -> None:
    (document,) = documents("made.yaml", "a: 1\nb: 2\na: 3\n")

    (fault,) = document.faults
    assert (fault.code, fault.span.line, fault.span.column) == ("DuplicateKey", 2, 0)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("a: x == wrong\n", 0, 8),
        ('a: "x == wrong"\n', 0, 9),
        ("a: 'it''s == wrong'\n", 0, 13),
        ("a: |-\n  x ==\n    wrong\n", 2, 4),
        ("a: >-\n  x ==\n  wrong\n", 2, 2),
        ("a: x ==\n  wrong\n", 1, 2),
        ('a: "\\"x\\" == wrong"\n', 0, 13),
        ("---\n{a: x == wrong}\n", 1, 9),
        ("--- {a: x == wrong}\n", 0, 13),
        ("é: é == wrong\n", 0, 8),
    ],
)
def test_a_part_of_a_string_is_found_however_it_is_written(text: str, line: int, column: int) -> None:
    (document,) = documents("made.yaml", text)
    ((key, value),) = document.value.items()

    span = inner(document, (key,), value, value.index("wrong"), 5)

    assert span is not None
    assert (span.line, span.column, span.end_line, span.end_column) == (line, column, line, column + 5)


@pytest.mark.parametrize(
    ("written", "part"),
    [
        (r'"a \u0026\u0026 wrong"', "wrong"),
        (r'"a \u0026\u0026 wrong"', r"\u0026\u0026"),
        (r'"\u003e\u003d wrong > 1"', r"\u003e\u003d"),
        (r'"a \x26\x26 wr\x6fng"', r"wr\x6fng"),
        (r'"a \U00000026 \"wrong\" u0026"', "wrong"),
        (r'"\ud83d\ude00\u0026 wrong"', "wrong"),
        (r'"\ud83d\ude00 wrong"', r"\ud83d\ude00"),
        (r'"\\u0026 \/\t\n\"wrong"', "wrong"),
        (r'"\\u0026 \/\t\n\"wrong"', r"\\"),
        ("'''''u0026'' wrong'", "wrong"),
        ("'''''u0026'' wrong'", "''u"),
        ('&wrong "wrong"', "wrong"),
        ("!!str 'wrong'", "wrong"),
    ],
)
def test_a_part_is_as_wide_as_it_is_written(written: str, part: str) -> None:
    text = f'{{"b": 1, "a": {written}}}\n'
    quote = written[-1]
    (document,) = documents("made.json", text)
    (alone,) = documents("made.json", f'{{"a": {quote}{part}{quote}}}')
    value, meant = document.value["a"], alone.value["a"]

    span = inner(document, ("a",), value, value.rindex(meant), len(meant))

    assert span is not None
    assert (span.line, document.lines[0][span.column : span.end_column]) == (0, part)
    assert span.column == text.rindex(part)


@pytest.mark.parametrize(
    "text",
    [
        'a: "x \\u0026\n\n\n    y\n  \\x26 wrong"\n',
        'a: "x \\\n    \\u0026  \n  wrong"\n',
        'a: "x \\\r\n    \\u0026  \r\n  wrong"\r\n',
        "a: 'x ''\n\n   '' y \n\n  wrong'\n",
        "a: \n  'wr'' wrong'\n",
    ],
)
def test_a_part_of_what_is_quoted_over_several_lines_is_found(text: str) -> None:
    (document,) = documents("made.yaml", text)
    value = document.value["a"]

    span = inner(document, ("a",), value, value.index("wrong"), 5)

    assert span is not None
    assert document.lines[span.line][span.column : span.end_column] == "wrong"


def test_what_is_written_as_escapes_is_found_at_each_character() -> None:
    characters = "a&\u00e9\U0001f600 \t\n\"\\'/<>"
    text = json.dumps({"a": characters}).replace("&", "\\u0026").replace("<", "\\u003c")
    (document,) = documents("made.json", text)

    assert document.value["a"] == characters
    for start, character in enumerate(characters):
        span = inner(document, ("a",), characters, start, 1)
        assert span is not None
        assert json.loads(f'"{text[span.column : span.end_column]}"') == character


@pytest.mark.parametrize(
    "text",
    [
        "a:\n^\tb: 1\n",
        "a:\n  b: 1\n^\tc: 1\n",
        "a:\n  b:\n  ^\t\tc: 1\n",
        "a:\n  - b\n  ^\t- c\n",
        "a:\n  b: |\n^\ttext\n  c: 1\n",
        "a:\n-^\tb: 1\n \tc: 1\n",
        'a: "x\n\ty"\n^\tb: 1\n',
        "a: {{ b }}\nc:\n^\td: 1\n",
    ],
)
def test_a_tab_that_indents_is_called_so(text: str) -> None:
    before, _, after = text.partition("^")
    if "{{" in text:
        before = before.replace("{{ b }}", "'{{ b }}'")
    (document,) = documents("made.yaml", before + after)

    (fault,) = document.faults
    assert (fault.code, "tab" in fault.message, "spaces" in fault.remedy) == ("BadYaml", True, True)
    assert (fault.span.line, fault.span.column) == (before.count("\n"), len(before.rpartition("\n")[2]))
    tabs = document.lines[fault.span.line][fault.span.column : fault.span.end_column]
    assert tabs == after[: len(tabs)] == "\t" * len(tabs)
    assert not after[len(tabs) :].startswith("\t")


@pytest.mark.parametrize(
    "text", ['a: "x\n\ty"\n', "a:\t1\n", "a: {b: 1,\n\tc: 2}\n", "a: |\n  c\n  \tb\n", "a: 1\t# c\n"]
)
def test_a_tab_where_yaml_takes_it_is_no_fault(text: str) -> None:
    assert [document.faults for document in documents("made.yaml", text)] == [[]]


def test_json_may_be_several_objects_as_jq_prints_them() -> None:
    text = '{"a": 1}\n{"b": "---"} {"c": "x"}\n{\n\t"d": {"e": 2}\n}\n'
    found = documents("made.json", text)

    assert [document.value for document in found] == [{"a": 1}, {"b": "---"}, {"c": "x"}, {"d": {"e": 2}}]
    places = [found[2].places["c",].value, found[3].places["d", "e"].value]
    assert [(place.line, place.column) for place in places] == [(1, 19), (3, 12)]


def test_json_that_is_followed_by_something_else_is_no_series_of_objects() -> None:
    first, last = documents("made.json", '{"a": 1}\nnonsense: 1\n---\nb: 2\n')

    assert [fault.code for fault in first.faults] == ["BadYaml"]
    assert last.value == {"b": 2}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (r"\ud83d\ude00", "😀"), (r"x\uD83D\uDE00y", "x😀y"), (r"\ud83d", "\ufffd"), (r"\ude00\ud83d", "\ufffd\ufffd"), (r"\\ud83d", r"\ud83d"),
        (r"\\\ud83d\ude00", "\\😀"), (r"\u00e9\/\t", "é/\t"), (r"\"\ud83d\ude00\"", '"😀"'),
    ],
)  # fmt: skip
def test_escapes_of_json_are_read_as_go_reads_them(written: str, value: str) -> None:
    (document,) = documents("made.json", f'{{"a": "{written}", "b": 1}}')

    assert document.value == {"a": value, "b": 1}
    assert document.places["b",].value.column == len(f'{{"a": "{written}", "b": ')


@pytest.mark.parametrize("text", ["&a [*a]", "&a {b: *a}", "&a {b: [{c: *a}]}"])
def test_what_contains_itself_is_refused_in_words(text: str) -> None:
    (document,) = documents("made.yaml", text)

    assert "an alias stands within what it is an alias of" in document.faults[0].message


@pytest.mark.parametrize(
    ("text", "value"), [("0x_", "0x_"), ("9" * 5000, "9" * 5000), ("1" + "0" * 30, 10**30)]
)
def test_what_only_looks_like_a_whole_number_stops_nothing(text: str, value: object) -> None:
    assert values(f"a: {text}\n") == [{"a": value}]


def test_a_character_that_yaml_does_not_allow_is_shown_where_it_stands() -> None:
    broken, last = documents("made.yaml", "a: é\nb: é\x01\n---\nc: 1\n")

    (fault,) = broken.faults
    assert (fault.span.line, fault.span.column, last.value) == (1, 4, {"c": 1})
    assert "#x0001" in fault.message


@pytest.mark.parametrize("character", ["\x85", "\u2028", "\u2029"])
@pytest.mark.parametrize("quote", ["'", '"', "# "])
def test_lines_are_counted_as_editors_count_them(character: str, quote: str) -> None:
    first, second = documents("made.yaml", f"x: {quote}a{character}b{quote}\nw: wrong\n---\nz: 1\n")

    assert first.lines == (f"x: {quote}a{character}b{quote}", "w: wrong", "---", "z: 1")
    assert (second.places["z",].value.line, second.places["z",].value.column) == (3, 3)
    if not first.faults:
        assert (first.places["w",].value.line, first.places["w",].value.column) == (1, 3)


@pytest.mark.parametrize("character", [*"\x85\u2028\u2029", "\\f", "\\v", "\\x1c", "\\x1e"])
def test_a_part_behind_what_ends_lines_elsewhere_is_found(character: str) -> None:
    (document,) = documents("made.yaml", f'b: 1\na: "x{character}y == wrong"\n')
    value = document.value["a"]

    span = inner(document, ("a",), value, value.index("wrong"), 5)

    assert span is not None
    assert document.lines[span.line][span.column : span.end_column] == "wrong"


def test_a_line_that_ends_for_yaml_alone_is_explained() -> None:
    (document,) = documents("made.yaml", "b: 1\na: x\u2028y\nc: 1\n")

    (fault,) = document.faults
    assert fault.span.line in {1, 2}
    assert "U+2028" in fault.remedy


def test_directives_move_nothing() -> None:
    (document,) = documents("made.yaml", "%YAML 1.1\n---\na: 1\n")

    assert document.places["a",].value.line == 2


def test_an_anchor_may_stand_a_second_time_as_kubectl_has_it() -> None:
    (document,) = documents("made.yaml", "a: &x 1\nb: *x\nc: &x {d: 2}\ne: *x\nf: on\n")

    assert (document.value, document.faults) == (
        {"a": 1, "b": 1, "c": {"d": 2}, "e": {"d": 2}, "f": True},
        [],
    )
    assert document.places["f",].value.line == 4


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("a: 1\nb: .inf\n", 1, ".inf"),
        ("a: 1\nb: {c: 1e400}\n", 1, "1e400"),
        ("a: 1\nb: !!float x\n", 1, "!!float x"),
        ("a: 1\n? [b]\n: c\n", 1, "[b]"),
        ("a: 1\nb: &x [*x]\n", 1, "&x [*x]"),
    ],
)
def test_what_no_object_can_hold_is_told_where_it_stands(text: str, line: int, part: str) -> None:
    (document,) = documents("made.yaml", text)

    (fault,) = document.faults
    assert fault.span.line == line
    assert document.lines[line][fault.span.column : fault.span.end_column] == part


@pytest.mark.parametrize(
    "text",
    [
        "a: " + "[" * 250 + "]" * 250,
        "a: " + "{b: " * 250 + "1" + "}" * 250,
        "a: " + "[" * 900 + "]" * 900,
        '{"a":' * 800 + "1" + "}" * 800,
        "\n".join(" " * n + "a:" for n in range(300)),
    ],
)
def test_what_is_nested_more_deeply_than_any_object_is_told(text: str) -> None:
    (document,) = documents("made.yaml", text)

    assert document.value is None
    assert "deep in each other" in document.faults[0].message


def test_what_is_nested_as_objects_are_is_looked_at() -> None:
    text = "apiVersion: v1\nkind: Made\nspec: " + "{a: [" * 90 + "1" + "]}" * 90
    (document,) = documents("made.yaml", text)

    assert (document.faults, look([document])) == ([], [])


def test_a_long_list_without_aliases_is_no_bomb() -> None:
    (document,) = documents("made.yaml", "a:\n" + "- {b: 1}\n" * 60_000)

    assert len(document.value["a"]) == 60_000


def test_what_is_merged_stands_where_it_is_written() -> None:
    text = "a: &a {x: 1, y: 2}\nb: &b {x: 3, z: 4}\nc:\n  <<: [*a, *b]\n  y: 5\nd: &d\n  <<: *d\n  x: 6\n"
    (document,) = documents("made.yaml", text.replace("y:", "w:"))

    assert document.value["c"] == {"w": 5, "x": 1, "z": 4}
    lines = {name: document.places["c", name].value.line for name in "wxz"}
    assert lines == {"w": 4, "x": 0, "z": 1}
    assert (document.value["d"], document.places["d", "x"].value.line) == ({"x": 6}, 7)


def test_a_key_that_stands_twice_has_the_place_of_the_value_that_counts() -> None:
    (document,) = documents("made.yaml", "a: 1\nb: 2\na: 3\n")

    assert (document.value["a"], document.places["a",].value.line) == (3, 2)


@pytest.mark.parametrize("path", [("a", "b"), ("a", 2), ("a", 0, "c"), ("b",), (0,), ("a", "0")])
def test_what_is_not_there_has_no_place(path: tuple[str | int, ...]) -> None:
    (document,) = documents("made.yaml", "a: [{b: 1}, 2]\n")

    assert path not in document.places
    assert document.places.get(path) is None
