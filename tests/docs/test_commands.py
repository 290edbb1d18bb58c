"""The pages as text: each command has something that runs it, each file, link and name in them is there. `tests/e2e/test_docs.py` runs them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from dra_operator import __version__
from dra_operator.app.command import main
from dra_operator.cli import main as dra

from .commands import ROOT, STORY, Command, File, commands, fences, file_name, matches, pages, steps, tokens
from .coverage import (
    CI,
    MAKE_RUN_BY,
    NOT_RUN,
    PAGES_RUN_BY,
    PROGRAM,
    is_for_cluster,
    is_for_help,
    is_with_its_own_cluster,
    make_verb,
    not_run,
)
from .links import anchors, code_spans, links

ALL = {page: commands(page) for page in pages()}
TEXTS = [command.text for found in ALL.values() for command in found]
HELPS = sorted({text for text in TEXTS if is_for_help(text)})
README_LINES = 200
LIVING = [page for page in pages() if page != "CHANGELOG.md"]
"""A changelog names what is no more, too."""


# --- who runs what


@pytest.mark.parametrize(("page", "command"), [(page, one) for page in ALL for one in ALL[page]])
def test_a_command_is_run_by_something(page: str, command: Command) -> None:
    verb = make_verb(command.text)
    text = command.text
    alone = is_for_help(text) or is_with_its_own_cluster(text) or not_run(text)
    followed = page in PAGES_RUN_BY or (is_for_cluster(text) and page in STORY)
    run = verb in MAKE_RUN_BY if verb else alone or followed
    assert run, f"{page}:{command.line}: {text}"


def test_no_exception_outlives_its_command() -> None:
    assert [entry for entry in NOT_RUN if entry not in {not_run(text) for text in TEXTS}] == []
    assert [verb for verb in MAKE_RUN_BY if verb not in {make_verb(text) for text in TEXTS}] == []


@pytest.mark.parametrize("verb", [verb for verb, by in MAKE_RUN_BY.items() if by == CI])
def test_ci_runs_the_verb(verb: str) -> None:
    script = (ROOT / CI).read_text(encoding="utf-8")
    rule = re.search(rf"^{verb}:([^#\n]*)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert rule, f"the Makefile has no verb {verb}"
    # A verb without a program of its own is run with those that it is made of.
    parts = [verb] if f"make {verb}\n" in script else rule[1].split()
    assert parts
    assert [part for part in parts if f"make {part}\n" not in script] == []


@pytest.mark.parametrize(("verb", "by"), [(verb, by) for verb, by in MAKE_RUN_BY.items() if by != CI])
def test_the_test_named_runs_the_program_behind_the_verb(verb: str, by: str) -> None:
    test = (ROOT / by).read_text(encoding="utf-8")
    words = [word if word != "KEEP" else "KEEP=1" for word in verb.split()]
    recipe = made("--dry-run", *words)
    modules = [name for name in re.findall(r"python -m (\S+)", recipe) if name not in {"pip", "venv"}]
    here = by.rpartition("/")[0].replace("/", ".")
    names = {name: "from .__main__ import main" if name == here else name for name in modules or words}
    assert [name for name, mention in names.items() if mention not in test] == []


def made(*words: str) -> str:
    """What make prints, whether or not make runs the tests."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    argv = ["make", *words]
    done = subprocess.run(
        argv, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


def test_make_help_lists_every_verb_that_the_pages_name() -> None:
    listed = {line.split()[0] for line in made("help").splitlines() if line.strip()}
    spans = [span for page in LIVING for span in code_spans(page) if span.startswith("make ")]
    verbs = {(make_verb(text) or "").split()[0] for text in [*TEXTS, *spans] if make_verb(text)}
    assert verbs - listed == set()


@pytest.mark.parametrize("command", HELPS)
def test_a_program_of_the_pages_tells_its_flags(command: str) -> None:
    words = [sys.executable, "-m", *shlex.split(command.removeprefix(PROGRAM))]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage:")


def test_commands_stand_in_blocks_of_their_kind() -> None:
    """Where nothing runs them, they would go stale."""
    kinds = {"console", "yaml", "text", "json", "python", ""}
    for page in ALL:
        assert [token.content for token in tokens(page) if token.type == "code_block"] == []
        for fence in fences(page):
            assert fence.info in kinds, (page, fence.info)
            if fence.info != "console":
                assert not re.search(r"^\s*\$ ", fence.content, re.MULTILINE), (page, fence.content)


@pytest.mark.parametrize(("page", "by"), PAGES_RUN_BY.items())
def test_the_test_named_follows_the_page(page: str, by: str) -> None:
    assert page not in STORY
    assert f'"{page}"' in (ROOT / by).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [*STORY, *PAGES_RUN_BY])
def test_a_yaml_block_is_a_file_that_a_command_below_it_uses(page: str) -> None:
    blocks = [fence.content for fence in fences(page) if fence.info == "yaml"]
    assert [block for block in blocks if file_name(block) is None] == []
    found = steps(page)
    for number, step in enumerate(found):
        if isinstance(step, File):
            assert step.path.endswith(".py") or list(yaml.safe_load_all(step.text))
            folder = step.path.partition("/")[0]
            later = [one.text for one in found[number:] if isinstance(one, Command)]
            assert any(step.path in text or f" {folder}" in text for text in later), step.path


# --- names


@pytest.mark.parametrize("page", LIVING)
def test_a_link_leads_somewhere(page: str) -> None:
    for target in links(page):
        path, _, anchor = target.partition("#")
        file = (ROOT / page).parent / path if path else ROOT / page
        assert file.exists(), f"{page} links {target}"
        if anchor:
            assert anchor in anchors(str(file.resolve().relative_to(ROOT))), f"{page} links {target}"


@pytest.mark.parametrize("page", [page for page in LIVING if "decisions/" not in page])
def test_a_path_in_a_page_is_there(page: str) -> None:
    named = re.compile(r"(?:manifests|docs|tests|operator|crds|\.ci)/[\w./-]*\w/?")
    paths = [span for span in code_spans(page) if named.fullmatch(span)]
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_a_flag_of_the_program_is_there() -> None:
    helps = {verb: CliRunner().invoke(main, [verb, "--help"]).output for verb in ("run", "release")}
    for page in LIVING:
        for span in code_spans(page):
            words = span.split()
            if words[0] == "dra-operator" and len(words) > 1:
                flags = [word.partition("=")[0] for word in words if word.startswith("--")]
                assert words[1] in helps, (page, span)
                assert [flag for flag in flags if flag not in helps[words[1]] and flag != "--help"] == []


@pytest.mark.parametrize(
    "span", sorted({span for page in LIVING for span in code_spans(page) if span.startswith("kubectl ")})
)
def test_a_kubectl_command_within_a_sentence_has_a_verb_and_flags_that_exist(span: str) -> None:
    """These name what their reader has to put in, so that nothing can run them."""
    verb, *words = (word for word in span.split()[1:])
    help_text = kubectl_help(*(["dra", words.pop(0)] if verb == "dra" and words else [verb]))
    flags = [word.partition("=")[0] for word in words if word.startswith("-")]
    assert [flag for flag in flags if not re.search(rf"(?<![\w-]){flag}\b", help_text)] == []


def test_the_page_of_kubectl_dra_has_a_row_for_each_command() -> None:
    rows = re.findall(
        r"^\| \[`(\w+)`\]", (ROOT / "docs/kubectl-dra.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted(rows) == sorted(dra.commands)


@cache
def kubectl_help(*words: str) -> str:
    """Of a verb, with the flags that all verbs have; fails for one that does not exist."""
    if words[0] == "dra":
        told = CliRunner().invoke(dra, [*words[1:], "--help"])
        assert told.exit_code == 0
        return told.output
    kubectl = str(Path(sys.executable).parent / "kubectl")
    argvs = ([kubectl, *words, "--help"], [kubectl, "options"])
    runs = [subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True) for argv in argvs]
    return "".join(run.stdout for run in runs)


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen, todo = set(), ["README.md"]
    while todo:
        page = todo.pop()
        seen.add(page)
        targets = [((ROOT / page).parent / link.partition("#")[0]).resolve() for link in links(page)]
        found = [str(target.relative_to(ROOT)) for target in targets if target.suffix == ".md"]
        todo += [target for target in found if target not in seen]
    wanted = {page for page in pages() if "decisions/" not in page and not page.startswith("tests/")}
    assert wanted - seen == {"CHANGELOG.md"}


def test_the_pages_name_the_image_of_this_release() -> None:
    versions = {
        found
        for page in LIVING
        if "decisions/" not in page
        for found in re.findall(r"dra-operator:(\d[\w.]*\w)", (ROOT / page).read_text(encoding="utf-8"))
    }
    assert versions == {__version__}


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= README_LINES


# --- rights


ROLES = (
    "manifests/base/rbac.yaml",
    "manifests/components/generate-claims/rbac.yaml",
    "manifests/components/replace-refused/rbac.yaml",
    "manifests/release/rbac.yaml",
)


def test_security_md_has_each_right_that_the_manifests_give() -> None:
    """One table a role, in this order."""
    assert dict(zip(ROLES, tables_of_rights(), strict=True)) == {file: rights(file) for file in ROLES}


def rights(file: str) -> set[tuple[str, str, str]]:
    roles = [
        found for found in yaml.safe_load_all((ROOT / file).read_text()) if found["kind"] == "ClusterRole"
    ]
    return {
        (group or "core", resource, verb)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def tables_of_rights() -> list[set[tuple[str, str, str]]]:
    found: list[set[tuple[str, str, str]]] = []
    rows = [token.content for token in tokens("SECURITY.md") if token.type == "inline"]
    heads = [n for n, four in enumerate(zip(*(rows[i:] for i in range(4)), strict=False)) if four == HEAD]
    for start, end in pairwise([*heads, len(rows)]):
        found.append(set())
        for number in range(start + 4, end, 4):
            group, resources, verbs = rows[number : number + 3]
            if group not in GROUPS:
                break
            found[-1] |= {(group, one, verb) for one in resources.split(", ") for verb in verbs.split(", ")}
    return found


HEAD = ("group", "resources", "verbs", "why")
GROUPS = {
    "core",
    "resource.k8s.io",
    "dra-operator.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "authorization.k8s.io",
    "admissionregistration.k8s.io",
}


# --- how output is compared


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("yes", "yes\n"),
        ("NAME   AGE\na  …", "NAME     AGE\na        12s\n"),
        ("a\n…\nz", "a\nz\n"),
        ("a\n…\nz", "a\nb\nc\nz\n"),
        ("…", ""),
        ("(x) …", "(x) y\n"),
    ],
)
def test_output_is_as_shown(shown: str, printed: str) -> None:
    assert matches(shown, printed)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [("yes", "no\n"), ("a", "a\nb\n"), ("a…c", "a\nc\n"), ("a\n…\nz", "a\nb\n"), (".", "x\n"), ("a", "")],
)
def test_other_output_is_told_apart(shown: str, printed: str) -> None:
    assert not matches(shown, printed)
