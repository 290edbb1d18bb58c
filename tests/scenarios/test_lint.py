"""`kubectl dra lint` as its user runs it: on files, folders and stdin, and with a cluster if one is named."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from dra_operator.cli import main
from dra_operator.testing.builders import devices, namespace, resource_slice
from dra_operator.testing.fakeapi import FakeApi

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from click.testing import Result

GOOD = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: good}\nspec: {devices: {}}\n"
BAD = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: bad, namespace: team}
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.test
        selectors:
        - cel:
            expression: >-
              device.driver == "gpu.test" &&
              device.typo
"""
PLACE = "spec.devices.requests[0].exactly.selectors[0].cel.expression"
SUSPECT = """\
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: suspect}
spec:
  deviceSelector: {}
  taint: {key: a, effect: NoExecute}
"""


def run(
    *arguments: str, stdin: str | bytes | None = None, environment: dict[str, str] | None = None
) -> Result:
    return CliRunner().invoke(main, ["lint", *arguments], input=stdin, env=environment)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "below").mkdir()
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "below" / "bad.yml").write_text(BAD)
    (tmp_path / "below" / "README.md").write_text("not: [looked at")
    return tmp_path


def test_nothing_found_is_said_so_beside_the_output(folder: Path) -> None:
    shown = run("-f", str(folder / "good.yaml"))

    assert (shown.exit_code, shown.stdout) == (0, "")
    assert shown.stderr == "0 errors, 0 warnings in 1 object.\n"


def test_an_error_is_shown_with_carets_under_what_is_wrong(folder: Path) -> None:
    shown = run("-f", str(folder / "below" / "bad.yml"))

    assert shown.exit_code == 1
    assert shown.stdout.splitlines() == [
        f"{folder}/below/bad.yml:14:21: error: CelInvalid: ResourceClaim team/bad: {PLACE}",
        "  undefined field 'typo'",
        "  14 |               device.typo",
        "     |                     ^^^^^",
        *shown.stdout.splitlines()[4:],
    ]


def test_a_folder_is_looked_at_with_all_below_it(folder: Path) -> None:
    shown = run("-f", str(folder))

    assert shown.exit_code == 1
    assert shown.stderr == "1 error, 0 warnings in 2 objects.\n"


def test_further_files_may_follow_as_a_shell_puts_them_there(folder: Path) -> None:
    shown = run("-f", str(folder / "good.yaml"), str(folder / "below" / "bad.yml"))

    assert shown.stderr == "1 error, 0 warnings in 2 objects.\n"


def test_json_has_places_and_stable_codes(folder: Path) -> None:
    shown = run("-f", str(folder), "--output=json")

    (finding,) = json.loads(shown.stdout)["findings"]
    assert shown.exit_code == 1
    assert finding.pop("remedy") is not None
    assert finding == {
        "severity": "error",
        "code": "CelInvalid",
        "file": f"{folder}/below/bad.yml",
        "line": 14,
        "column": 21,
        "endColumn": 26,
        "kind": "ResourceClaim",
        "namespace": "team",
        "name": "bad",
        "path": PLACE,
        "message": "undefined field 'typo'",
    }
    assert json.loads(run("-f", str(folder / "good.yaml"), "--output=json").stdout) == {"findings": []}


def test_annotations_are_commands_of_github() -> None:
    shown = run("-f", "-", "--output=github", stdin=SUSPECT)

    assert shown.exit_code == 0
    assert shown.stdout == (
        "::warning title=SelectsAllDevices%3A DeviceTaintRule suspect::stdin:5:3: spec.deviceSelector: an empty "
        "deviceSelector selects all devices of the cluster: NoExecute evicts every pod that has a device. name a driver, pool or device; "
        "`effect: None` shows first what it would hit\n"
    )


@pytest.mark.parametrize(("flags", "status"), [((), 0), (("--strict",), 1)])
def test_warnings_are_errors_only_if_one_is_strict(flags: tuple[str, ...], status: int) -> None:
    assert run("-f", "-", *flags, stdin=SUSPECT).exit_code == status


def test_a_document_that_is_broken_does_not_hide_the_others() -> None:
    shown = run("-f", "-", "--output=json", stdin=f"{BAD}---\na: [\n---\n{SUSPECT}")

    assert [finding["code"] for finding in json.loads(shown.stdout)["findings"]] == [
        "CelInvalid", "BadYaml", "SelectsAllDevices",
    ]  # fmt: skip


@pytest.mark.parametrize("arguments", [(), ("-f", ""), ("--output=xml", "-f", "-")])
def test_what_cannot_be_looked_at_has_a_status_of_its_own(arguments: tuple[str, ...], tmp_path: Path) -> None:
    shown = run(*arguments)

    assert shown.exit_code == 2
    assert shown.stderr.count("\n") <= 4


@pytest.fixture
def troubled(folder: Path) -> Path:
    """A folder with files that are none, beside two that are."""
    (folder / "a-link.yaml").symlink_to("nowhere")
    (folder / "b-loop.yaml").symlink_to("b-loop.yaml")
    os.mkfifo(folder / "below" / "c-pipe.yaml")
    return folder


def test_what_cannot_be_read_is_told_and_the_others_are_looked_at(troubled: Path) -> None:
    shown = run("-f", str(troubled), "--output=json")

    found = [(one["file"], one["code"]) for one in json.loads(shown.stdout)["findings"]]
    assert shown.exit_code == 2
    assert found == [
        (f"{troubled}/a-link.yaml", "Unreadable"),
        (f"{troubled}/b-loop.yaml", "Unreadable"),
        (f"{troubled}/below/bad.yml", "CelInvalid"),
        (f"{troubled}/below/c-pipe.yaml", "Unreadable"),
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_or_file_that_one_may_not_read_is_told_and_the_others_are_looked_at(folder: Path) -> None:
    (folder / "closed").mkdir(mode=0)
    (folder / "secret.yaml").touch(mode=0)

    shown = run("-f", str(folder), "--output=json")

    found = {(one["file"], one["code"]) for one in json.loads(shown.stdout)["findings"]}
    assert shown.exit_code == 2
    assert found == {
        (f"{folder}/closed", "Unreadable"),
        (f"{folder}/secret.yaml", "Unreadable"),
        (f"{folder}/below/bad.yml", "CelInvalid"),
    }


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nowhere.yaml", "No such file"),
        ("empty", "no file in it ends with .json, .yaml, .yml"),
        ("https://example.com/a.yaml", "curl"),
    ],
)
def test_a_name_of_nothing_that_can_be_read_has_a_status_of_its_own(
    name: str, words: str, folder: Path
) -> None:
    (folder / "empty").mkdir()
    named = name if "://" in name else str(folder / name)

    shown = run("-f", named, str(folder / "below"))

    assert shown.exit_code == 2
    assert f"{named}:1:1: error: Unreadable" in shown.stdout
    assert words in shown.stdout
    assert "CelInvalid" in shown.stdout


def test_out_of_folders_the_files_are_taken_that_kubectl_takes(tmp_path: Path) -> None:
    taken = {".hidden.yaml", ".yaml", "a.json", "b.yaml", "c.yml"}
    for name in (*taken, "b.yaml~", ".b.yaml.swp", "#b.yaml#", "b.yaml.bak", "b.YAML", "b.txt", "yaml"):
        (tmp_path / name).write_text(BAD)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "d.yaml").write_text(BAD)

    def files(*flags: str) -> set[str]:
        findings = json.loads(run("-f", str(tmp_path), "--output=json", *flags).stdout)["findings"]
        return {one["file"].removeprefix(f"{tmp_path}/") for one in findings}

    assert files("--no-recursive") == taken
    assert files() == files("-R") == taken | {".git/d.yaml"}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_texts_are_read_as_kubectl_reads_them(encoding: str, ends: str, folder: Path) -> None:
    (folder / "below" / "bad.yml").write_bytes(BAD.replace("\n", ends).encode(encoding))

    (finding,) = json.loads(run("-f", str(folder), "--output=json").stdout)["findings"]

    assert (finding["code"], finding["line"], finding["column"]) == ("CelInvalid", 14, 21)


def test_bytes_that_are_no_text_are_told_where_they_are_and_the_rest_is_looked_at(tmp_path: Path) -> None:
    content = SUSPECT.encode() + b"# \xc3\xa9 caf\xe9\n"
    (tmp_path / "made.yaml").write_bytes(content)

    for shown in (
        run("-f", "-", "--output=json", stdin=content),
        run("-f", str(tmp_path), "--output=json"),
    ):
        first, second = json.loads(shown.stdout)["findings"]
        assert shown.exit_code == 0
        assert (first["code"], first["line"], first["column"]) == ("NotUtf8", 7, 8)
        assert second["code"] == "SelectsAllDevices"


def test_a_file_that_is_no_text_at_all_is_told(tmp_path: Path) -> None:
    (tmp_path / "packed.yaml").write_bytes(b"\x1f\x8b\x08\x00\xff\xfe")

    shown = run("-f", str(tmp_path))

    assert shown.exit_code == 1
    assert "NotUtf8" in shown.stdout
    assert "BadYaml" in shown.stdout


@pytest.mark.parametrize(
    ("root", "named"), [(".", "below/bad.yml"), ("below", "bad.yml"), ("elsewhere", "below/bad.yml"), ("", "below/bad.yml")]
)  # fmt: skip
def test_annotations_name_files_from_the_root_of_the_repository(
    root: str, named: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    workspace = str(folder / root) if root else ""

    shown = run("-f", "./below/../below", "--output=github", environment={"GITHUB_WORKSPACE": workspace})

    expected = named if root in {".", "below"} else "below/../below/bad.yml"
    assert shown.stdout.startswith(f"::error file={expected},line=14,endLine=14,col=21,endColumn=26,title=")


def test_no_client_of_clusters_is_loaded_where_none_is_asked(folder: Path) -> None:
    program = "import sys; from dra_operator.cli import main; main(sys.argv[1:], standalone_mode=False)\n"
    told = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); "
    command = [sys.executable, "-c", told + program, "lint", "-f", str(folder / "good.yaml")]

    done = subprocess.run(command, capture_output=True, check=True, text=True)

    loaded = set(done.stderr.splitlines()[-1].split())
    assert "dra_operator.lint" in loaded
    assert not loaded & {"kubernetes_asyncio", "aiohttp", "asyncio", "urllib3", "dra_operator.kube", "kopf"}


def test_no_cluster_is_asked_that_nobody_named(folder: Path, tmp_path: Path) -> None:
    shown = run("-f", str(folder / "good.yaml"), environment={"KUBECONFIG": str(tmp_path / "nowhere")})

    assert shown.exit_code == 0


# --- with a cluster


@pytest.fixture
async def kubeconfig(tmp_path: Path) -> AsyncIterator[Path]:
    """A cluster with a class, a slice with two devices, and a namespace without the label for admin access."""
    async with FakeApi() as server:
        server.create(namespace("team"))
        server.create(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "DeviceClass",
                "metadata": {"name": "gpu.test"},
                "spec": {"selectors": [{"cel": {"expression": 'device.driver == "gpu.test"'}}]},
            }
        )
        server.create(resource_slice("worker", "gpu.test", devices(2)))
        yield server.write_kubeconfig(tmp_path / "kubeconfig")


async def test_a_cluster_tells_of_its_classes_devices_and_templates(kubeconfig: Path) -> None:
    text = BAD.replace("device.typo", 'device.attributes["gpu.test"].modle == "a"')
    other = GOOD.replace(
        "devices: {}",
        "devices: {requests: [{name: a, exactly: {deviceClassName: other, adminAccess: true}}]}",
    )
    pod = """\
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: team}
spec:
  containers: [{name: a, image: b}]
  resourceClaims: [{name: a, resourceClaimTemplateName: nowhere}]
"""
    arguments = ("-f", "-", "--output=json", "--namespace=team", f"--kubeconfig={kubeconfig}")

    shown = await asyncio.to_thread(run, *arguments, stdin=f"{text}---\n{other}---\n{pod}")

    found = [(one["code"], one["message"]) for one in json.loads(shown.stdout)["findings"]]
    assert [code for code, _ in found] == [
        "UnknownAttribute", "UnknownClass", "AdminAccessNotAllowed", "UnknownTemplate",
    ], found  # fmt: skip


async def test_a_cluster_that_cannot_be_asked_is_no_finding(tmp_path: Path) -> None:
    shown = await asyncio.to_thread(run, "-f", "-", f"--kubeconfig={tmp_path / 'nowhere'}", stdin=GOOD)

    assert shown.exit_code == 2
    assert "nowhere" in shown.stderr


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_terminals_that_cannot_show_a_line_show_what_they_can(encoding: str) -> None:
    text = SUSPECT + '---\napiVersion: v1\nkind: List\nitems: ["über 😀"]\n'
    command = [sys.executable, "-c", "from dra_operator.cli import main; main()", "lint", "-f", "-"]
    environment = {**os.environ, "PYTHONIOENCODING": encoding}

    done = subprocess.run(command, input=text.encode(), capture_output=True, check=False, env=environment)

    assert done.returncode == 1, done.stderr.decode(encoding)
    assert "\\U0001f600" in done.stdout.decode(encoding)


def test_feature_gates_are_named_as_the_api_server_takes_them(tmp_path: Path) -> None:
    file = tmp_path / "made.yaml"
    file.write_text(BAD.replace("device.typo", 'device.attributes["gpu.test"].a.includes("b")'))

    assert run("-f", str(file)).exit_code == 1
    assert run("-f", str(file), "--feature-gates=DRAListTypeAttributes=true").exit_code == 0
    wrong = run("-f", str(file), "--feature-gates=DRAListTypeAttribute=true")
    assert (wrong.exit_code, "did you mean DRAListTypeAttributes?" in wrong.output) == (2, True)
