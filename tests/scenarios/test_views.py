"""`kubectl dra pools`, `devices`, `who` and `claims` as their users see them: on a server, with the rights of a user, on snapshots and files."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from click.testing import CliRunner

from dra_operator.cli import main
from dra_operator.kube.api import MERGE, Api
from dra_operator.kube.kinds import KINDS
from dra_operator.testing.builders import (
    allocation,
    claim,
    device,
    devices,
    namespace,
    pod,
    pod_claim,
    request,
    resource_slice,
    result,
    taint_rule,
)
from dra_operator.testing.fakeapi import FakeApi
from dra_operator.testing.fakeapi.faults import Fault, internal_error

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from click.testing import Result

GPU = "gpu.test"
RBAC = "rbac.authorization.k8s.io"


def held(
    name: str,
    *results: dict[str, Any],
    pods: Sequence[str] = (),
    where: str = "mine",
    node: str = "n1",
    **labels: str,
) -> dict[str, Any]:
    made = claim(name, request("gpu", "large"), namespace=where)
    made["metadata"]["labels"] = labels
    consumers = [{"resource": "pods", "name": one, "uid": f"uid-{one}"} for one in pods]
    made["status"] = {"allocation": allocation(*results, node=node), "reservedFor": consumers}
    return made


def got(name: str, **more: Any) -> dict[str, Any]:
    return result("gpu", GPU, "n1", name, **more)


def card() -> list[dict[str, Any]]:
    """Partitions of a card on node n2."""
    counters = [{"name": "card", "counters": {"memory": {"value": "8Gi"}}}]
    parts = [
        device(name, consumesCounters=[{"counterSet": "card", "counters": {"memory": {"value": memory}}}])
        for name, memory in (("whole", "8Gi"), ("half", "4Gi"))
    ]
    return [
        resource_slice("card", "mig.test", [], node="n2", resourceSliceCount=2, sharedCounters=counters),
        resource_slice("parts", "mig.test", parts, node="n2", resourceSliceCount=2),
    ]


WORLD = [
    resource_slice(
        "n1-gpus",
        GPU,
        [
            device("gpu-0", attributes={"model": "large"}, capacity={"memory": "40Gi"}),
            device("gpu-1", attributes={"model": "large"}, capacity={"memory": "40Gi"}),
            device(
                "gpu-2",
                attributes={"model": "small"},
                capacity={"memory": "10Gi"},
                allowMultipleAllocations=True,
            ),
            device("gpu-3"),
        ],
        node="n1",
    ),
    *card(),
    resource_slice("half-a-pool", "net.test", devices(1, "nic"), pool="fabric", resourceSliceCount=2),
    taint_rule("hot", key="hot", driver=GPU, pool="n1", device="gpu-3"),
    held("train", got("gpu-0"), pods=["train-0"], team="a"),
    held(
        "shared",
        got("gpu-2", shareID="11111111-1111-4111-8111-111111111111", consumedCapacity={"memory": "4Gi"}),
        pods=["p", "q"],
        where="theirs",
    ),
    held("mig", result("gpu", "mig.test", "n2", "half"), where="theirs", node="n2"),
    claim("next", request("gpu", "large"), namespace="mine"),
    pod("next-0", pod_claim("gpu", claim="next"), namespace="mine"),
]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[FakeApi]:
    async with FakeApi(rbac=True) as started:
        for name in ("mine", "theirs"):
            started.create(namespace(name))
        for made in WORLD:
            started.create(made)
        async with await Api.connect(str(started.write_kubeconfig(tmp_path / "admin")), None) as api:
            for made in WORLD:
                if made["kind"] == "ResourceClaim" and "status" in made:
                    await write_status(api, made)
        yield started


async def write_status(api: Api, made: dict[str, Any]) -> None:
    path = KINDS["ResourceClaim"].path(made["metadata"]["namespace"], made["metadata"]["name"], "status")
    await api.request("PATCH", path, body={"status": made["status"]}, content_type=MERGE)


@pytest.fixture
def admin(server: FakeApi, tmp_path: Path) -> Path:
    return tmp_path / "admin"


def binding(name: str, role: str, where: str = "", kind: str = "ClusterRole") -> dict[str, Any]:
    """Of jane, in one namespace or in all."""
    metadata = {"name": name, **({"namespace": where} if where else {})}
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding" if where else "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": role},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "jane"}],
    }


def slice_reader() -> dict[str, Any]:
    rule = {"apiGroups": ["resource.k8s.io"], "resources": ["resourceslices"], "verbs": ["get", "list"]}
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "slices"},
        "rules": [rule],
    }


@pytest.fixture
async def jane(server: FakeApi, tmp_path: Path) -> Path:
    """Who may read her own namespace, and the slices."""
    for made in (binding("jane", "view", "mine"), slice_reader(), binding("slices", "slices")):
        server.create(made)
    return kubeconfig_of_jane(server, tmp_path)


def kubeconfig_of_jane(server: FakeApi, tmp_path: Path) -> Path:
    assert server.guard is not None
    document = yaml.safe_load(server.kubeconfig(server.guard.user_token("jane")))
    document["contexts"][0]["context"]["namespace"] = "mine"
    path = tmp_path / "jane"
    path.write_text(yaml.safe_dump(document))
    return path


async def run(kubeconfig: Path, *arguments: str) -> Result:
    environment = {"KUBECONFIG": str(kubeconfig)}
    return await asyncio.to_thread(CliRunner().invoke, main, list(arguments), env=environment)


def offline(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, list(arguments), input=stdin)


def table(shown: Result) -> list[dict[str, str]]:
    """The rows of a table by its headings; columns are three blanks apart, and headings have at most one."""
    assert shown.exit_code == 0, shown.output
    head, *lines = shown.stdout.splitlines()
    starts = [
        at for at in range(len(head)) if head[at] != " " and (at == 0 or head[max(0, at - 2) : at] == "  ")
    ]
    ends = [*starts[1:], 10_000]
    return [
        {head[start:end].strip(): line[start:end].strip() for start, end in zip(starts, ends, strict=True)}
        for line in lines
    ]


# --- pools


async def test_pools_are_counted_by_the_state_of_their_devices(admin: Path) -> None:
    shown = await run(admin, "pools")

    assert shown.stderr == ""
    assert shown.stdout == (
        "DRIVER     POOL     NODE   TOTAL   FREE   USED   TAINTED   BLOCKED   UNUSABLE   PROBLEM\n"
        "gpu.test   n1       n1     4       1      2      1         0         0\n"
        "mig.test   n2       n2     2       0      1      0         1         0\n"
        "net.test   fabric   any    1       0      0      0         0         1          incomplete: 1 of 2 slices are published\n"
    )


async def test_wide_pools_tell_counters_and_shares(admin: Path) -> None:
    rows = table(await run(admin, "pools", "-o", "wide"))

    assert rows[0]["SHARED"] == "1 of 1, memory 4Gi of 10Gi"
    assert (rows[1]["COUNTERS USED"], rows[1]["GENERATION"]) == ("card/memory 4Gi of 8Gi", "1")


@pytest.mark.parametrize(
    ("flag", "pools"), [("--driver=mig.test", ["n2"]), ("--node=n1", ["n1"]), ("--node=n9", [])]
)
async def test_pools_can_be_narrowed_down(admin: Path, flag: str, pools: list[str]) -> None:
    shown = await run(admin, "pools", flag, "-o", "json")

    assert [row["pool"] for row in json.loads(shown.stdout)] == pools


async def test_pools_have_names_as_scripts_want_them(admin: Path) -> None:
    assert (await run(admin, "pools", "-o", "name")).stdout.splitlines() == [
        "gpu.test/n1",
        "mig.test/n2",
        "net.test/fabric",
    ]


async def test_who_may_read_one_namespace_sees_its_claims_and_is_told_what_looks_free(jane: Path) -> None:
    """Rights: slices of the cluster, and `view` in one namespace."""
    shown = await run(jane, "pools", "--driver", GPU)

    assert table(shown)[0]["USED"] == "1"
    assert "Not read: DeviceTaintRule, so taints of DeviceTaintRules are not shown" in shown.stderr
    assert "Only claims of namespace mine count: devices that others hold look free." in shown.stderr


async def test_without_the_right_to_slices_the_next_step_is_told(server: FakeApi, tmp_path: Path) -> None:
    shown = await run(kubeconfig_of_jane(server, tmp_path), "pools")

    assert (shown.exit_code, shown.stdout) == (1, "")
    assert 'User "jane" cannot list resource "resourceslices"' in shown.stderr
    assert "look at your own claims: kubectl dra claims" in shown.stderr


async def test_without_any_right_to_claims_nobody_is_said_to_hold_anything(
    server: FakeApi, tmp_path: Path
) -> None:
    for made in (slice_reader(), binding("slices", "slices")):
        server.create(made)

    shown = await run(kubeconfig_of_jane(server, tmp_path), "pools")

    assert "Not read: ResourceClaim, so nobody knows who holds devices, and all look free" in shown.stderr
    assert table(shown)[0]["USED"] == "0"


# --- devices


async def test_devices_tell_their_state_and_holders(admin: Path) -> None:
    shown = await run(admin, "devices")

    assert [(row["DEVICE"], row["NODE"], row["STATE"], row["CLAIMS"]) for row in table(shown)] == [
        ("gpu-0", "n1", "in use", "mine/train"),
        ("gpu-1", "n1", "free", ""),
        ("gpu-2", "n1", "shared", "theirs/shared"),
        ("gpu-3", "n1", "tainted", ""),
        ("half", "n2", "in use", "theirs/mig"),
        ("whole", "n2", "blocked", ""),
        ("nic-0", "any", "unusable", ""),
    ]


async def test_columns_show_attributes_and_capacities(admin: Path) -> None:
    rows = table(await run(admin, "devices", "--driver", GPU, "-L", "model", "--columns", f"{GPU}/memory"))

    assert [(row["MODEL"], row["MEMORY"]) for row in rows] == [
        ("large", "40Gi/40Gi"),
        ("large", "0/40Gi"),
        ("small", "4Gi/10Gi"),
        ("", ""),
    ]


async def test_a_column_that_no_device_has_is_told_with_what_may_be_meant(admin: Path) -> None:
    shown = await run(admin, "devices", "-L", "modle")

    assert shown.stderr == "No device shown has an attribute or capacity modle; did you mean model?\n"


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        (["--state=in-use"], ["gpu-0", "half"]),
        (["--state=free", "--state=tainted"], ["gpu-1", "gpu-3"]),
        (["--pool=n2", "--node=n2"], ["half", "whole"]),
        (["--driver=net.test"], ["nic-0"]),
    ],
)
async def test_devices_can_be_narrowed_down(admin: Path, flags: list[str], names: list[str]) -> None:
    shown = await run(admin, "devices", *flags, "-o", "name")

    assert [line.rpartition("/")[2] for line in shown.stdout.splitlines()] == names


async def test_an_expression_as_in_claims_selects_and_says_on_what_it_fails(admin: Path) -> None:
    expression = f'device.driver == "{GPU}" && device.attributes["{GPU}"].model == "large"'
    shown = await run(admin, "devices", "--selector", expression, "-o", "name")

    assert shown.stdout.splitlines() == [f"{GPU}/n1/gpu-0", f"{GPU}/n1/gpu-1"]
    assert "The selector fails on 1 device(s), which are not shown; on gpu.test/n1/gpu-3" in shown.stderr
    assert "no such key: model" in shown.stderr


async def test_an_expression_that_is_none_is_refused_in_upstreams_words(admin: Path) -> None:
    shown = await run(admin, "devices", "--selector", "device.drivr == 1")

    assert shown.exit_code == 2
    assert "undefined field" in shown.stderr


# --- who


async def test_who_holds_a_device_names_claim_request_pods_and_since_when(admin: Path) -> None:
    [row] = table(await run(admin, "who", "gpu-0"))

    assert (row["DEVICE"], row["STATE"]) == (f"{GPU}/n1/gpu-0", "in use")
    assert (row["CLAIM"], row["REQUEST"], row["TAKES"], row["PODS"]) == (
        "mine/train",
        "gpu",
        "all",
        "train-0",
    )
    assert row["SINCE"][-1] in "smhdy"


async def test_a_share_tells_what_it_takes(admin: Path) -> None:
    [row] = table(await run(admin, "who", f"{GPU}/n1/gpu-2"))

    assert (row["CLAIM"], row["TAKES"], row["PODS"]) == ("theirs/shared", "memory 4Gi", "p, q")


async def test_of_a_node_all_its_devices_are_told(admin: Path) -> None:
    rows = table(await run(admin, "who", "n1"))

    assert [(row["DEVICE"].rpartition("/")[2], row["CLAIM"]) for row in rows] == [
        ("gpu-0", "mine/train"),
        ("gpu-1", ""),
        ("gpu-2", "theirs/shared"),
        ("gpu-3", ""),
    ]


async def test_of_a_blocked_device_those_are_told_who_spend_its_counters(admin: Path) -> None:
    rows = table(await run(admin, "who", "mig.test/n2/whole"))

    assert [(row["DEVICE"], row["STATE"], row["CLAIM"]) for row in rows] == [
        ("mig.test/n2/whole", "blocked", ""),
        ("mig.test/n2/half", "in use", "theirs/mig"),
    ]


async def test_names_that_are_neither_device_nor_node_get_a_hint(admin: Path) -> None:
    shown = await run(admin, "who", "gpu-00")

    assert shown.exit_code == 1
    assert shown.stderr.startswith(
        "Error: No device is called gpu-00, and no device is published for a node of that name"
    )


async def test_who_as_json_has_a_row_a_holder(admin: Path) -> None:
    [row] = json.loads((await run(admin, "who", "gpu-2", "-o", "json")).stdout)

    assert (row["device"], row["claim"], row["amounts"]) == ("gpu-2", "theirs/shared", {"memory": "4Gi"})


# --- claims


async def test_claims_tell_age_and_on_demand_class_and_driver(admin: Path) -> None:
    rows = table(await run(admin, "claims", "-A", "-o", "wide"))

    assert [(row["CLAIM"], row["STATE"], row["CLASS"], row["DRIVER"]) for row in rows] == [
        ("next", "pending", "large", ""),
        ("train", "in use", "large", GPU),
        ("mig", "allocated", "large", "mig.test"),
        ("shared", "in use", "large", GPU),
    ]
    assert rows[0]["WAITING"] == "next-0"
    assert all(row["AGE"].endswith("s") for row in rows)


async def test_claims_can_be_chosen_by_labels_and_told_by_name(admin: Path) -> None:
    shown = await run(admin, "claims", "-A", "-l", "team in (a,b)", "-o", "name")

    assert shown.stdout == "resourceclaim.resource.k8s.io/train\n"


async def test_labels_that_are_none_are_refused(admin: Path) -> None:
    shown = await run(admin, "claims", "-l", "team is a")

    assert shown.exit_code == 2
    assert "'team is a' selects no labels; write a=b" in shown.stderr


async def test_without_the_right_to_pods_claims_are_shown_and_what_is_missing_is_told(
    server: FakeApi, tmp_path: Path
) -> None:
    rule = {"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims"], "verbs": ["list"]}
    server.create(
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "Role",
            "metadata": {"name": "claims", "namespace": "mine"},
            "rules": [rule],
        }
    )
    server.create(binding("claims", "claims", "mine", kind="Role"))

    shown = await run(kubeconfig_of_jane(server, tmp_path), "claims")

    assert [row["CLAIM"] for row in table(shown)] == ["next", "train"]
    assert "Not read: Pod, so pods that wait are not shown" in shown.stderr


# --- top


async def test_top_tells_once_where_there_is_no_terminal(admin: Path) -> None:
    shown = await run(admin, "top")

    assert (shown.exit_code, shown.stderr) == (0, "")
    blocks = [block.splitlines() for block in shown.stdout.split("\n\n")]
    assert [block[0] for block in blocks] == ["Drivers: 3", "Busiest pools: 2", "Waiting claims: 1"]
    assert [line.split()[:6] for line in blocks[1][2:]] == [
        [GPU, "n1", "n1", "50%", "2", "1"],
        ["mig.test", "n2", "n2", "50%", "1", "0"],
    ]
    assert blocks[2][2].split() == ["mine", "next", blocks[2][2].split()[2], "large", "next-0"]


async def test_top_shows_the_claims_to_who_may_not_see_devices(server: FakeApi, tmp_path: Path) -> None:
    server.create(binding("jane", "view", "mine"))

    shown = await run(kubeconfig_of_jane(server, tmp_path), "top", "-n", "mine")

    assert "Not read: ResourceSlice, so devices are not shown" in shown.stderr
    assert "Waiting claims: 1" in shown.stdout


class Screen:
    """The command on a terminal of 40 lines, as its user has it."""

    def __init__(self, kubeconfig: Path, *arguments: str) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 140, 0, 0))
        self._before = termios.tcgetattr(theirs)
        self._theirs = theirs
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "TERM": "xterm"}
        program = "from dra_operator.cli import main; main()"
        self._process = subprocess.Popen(
            [sys.executable, "-c", program, *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment,
            start_new_session=True,
        )

    async def until(self, text: str) -> None:
        """Read until it shows that; the test's time is the limit."""
        shown = b""
        while text.encode() not in shown:
            chunk = await asyncio.to_thread(os.read, self._ours, 65536)
            assert chunk, shown
            shown += chunk

    def press(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    async def end(self) -> int:
        """Its exit status, once it has ended by itself."""
        status = await asyncio.to_thread(self._process.wait)
        assert termios.tcgetattr(self._theirs) == self._before
        return status

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._ours)
        os.close(self._theirs)


async def allocate_next(admin: Path) -> None:
    """Give the claim that waits its device."""
    status = {"allocation": allocation(got("gpu-1"), node="n1")}
    async with await Api.connect(str(admin), None) as api:
        await write_status(api, {"metadata": {"namespace": "mine", "name": "next"}, "status": status})


@pytest.mark.parametrize("key", [b"q", b"\x03"])
async def test_top_on_a_terminal_follows_the_cluster_until_a_key_ends_it(admin: Path, key: bytes) -> None:
    screen = Screen(admin, "top", "--interval=0.2")
    try:
        await screen.until("Waiting claims: 1")
        await allocate_next(admin)
        await screen.until("Waiting claims: 0")
        screen.press(key)
        assert await screen.end() == 0
    finally:
        screen.close()


async def test_top_goes_on_when_the_server_is_away_for_a_while(server: FakeApi, admin: Path) -> None:
    screen = Screen(admin, "top", "--interval=0.2")
    try:
        await screen.until("Waiting claims: 1")
        server.faults.add(Fault(internal_error(), times=1_000))
        await screen.until("What is shown is old")
        server.faults.clear()
        await allocate_next(admin)
        await screen.until("Waiting claims: 0")
        screen.press(b"q")
        assert await screen.end() == 0
    finally:
        screen.close()


# --- without a cluster


async def test_a_snapshot_is_told_as_the_cluster_was_ages_included(admin: Path, tmp_path: Path) -> None:
    file = tmp_path / "snapshot.json"
    assert (await run(admin, "snapshot", "-o", str(file))).exit_code == 0
    document = json.loads(file.read_text())
    document["snapshot"]["takenAt"] = "2036-01-01T00:00:00Z"
    file.write_text(json.dumps(document))

    for command in (
        ["pools"],
        ["devices", "-o", "wide"],
        ["who", "half", "-o", "json"],
        ["claims", "-A", "-o", "json"],
    ):
        live = await run(admin, *command)
        stored = offline(*command, "--from", str(file))
        assert (stored.exit_code, stored.stdout) == (0, live.stdout)
    assert table(offline("who", "gpu-0", "--from", str(file)))[0]["SINCE"] == "10y"


async def test_a_claim_that_cannot_be_read_holds_its_devices(admin: Path, tmp_path: Path) -> None:
    file = tmp_path / "snapshot.json"
    assert (await run(admin, "snapshot", "-o", str(file))).exit_code == 0
    document = json.loads(file.read_text())
    [train] = [item for item in document["items"] if item["metadata"]["name"] == "train"]
    train["status"]["allocation"]["devices"]["results"][0]["consumedCapacity"] = {"memory": "much"}
    file.write_text(json.dumps(document))

    [row] = table(offline("who", "gpu-0", "--from", str(file)))
    assert (row["STATE"], row["CLAIM"]) == ("in use", "mine/train")
    claims = table(offline("claims", "-A", "--from", str(file)))
    assert [row["STATE"] for row in claims if row["CLAIM"] == "train"] == ["unreadable"]


async def test_of_a_snapshot_too_it_is_told_what_looks_free_where_one_namespace_is_named(
    admin: Path, tmp_path: Path
) -> None:
    file = tmp_path / "snapshot.json"
    assert (await run(admin, "snapshot", "-o", str(file))).exit_code == 0

    shown = offline("pools", "-n", "mine", "--from", str(file))

    assert table(shown)[0]["USED"] == "1"
    assert shown.stderr == "Only claims of namespace mine count: devices that others hold look free.\n"


async def test_a_snapshot_that_lacks_a_kind_says_so(admin: Path, tmp_path: Path) -> None:
    file = tmp_path / "snapshot.json"
    assert (await run(admin, "snapshot", "-o", str(file))).exit_code == 0
    document = json.loads(file.read_text())
    document["items"] = [item for item in document["items"] if item["kind"] != "Pod"]
    document["snapshot"]["notRead"] = [{"kind": "Pod", "message": "pods is forbidden"}]
    file.write_text(json.dumps(document))

    shown = offline("claims", "-A", "--from", str(file))
    assert shown.stderr == "Not read: Pod, so pods that wait are not shown: pods is forbidden.\n"
    assert len(table(shown)) == 4


def test_manifests_are_looked_at_without_a_cluster() -> None:
    text = yaml.safe_dump_all([resource_slice("s", GPU, devices(2), node="n1"), held("train", got("gpu-1"))])

    assert table(offline("pools", "-f", "-", stdin=text))[0]["USED"] == "1"
    assert table(offline("who", "gpu-1", "-f", "-", stdin=text))[0]["CLAIM"] == "mine/train"
    assert [row["CLAIM"] for row in table(offline("claims", "-f", "-", stdin=text))] == ["train"]
    assert (
        offline("claims", "-n", "other", "-f", "-", stdin=text).stderr
        == "No claims found in namespace other.\n"
    )


def test_files_that_are_wrong_are_told_and_the_others_shown() -> None:
    text = yaml.safe_dump_all(
        [
            resource_slice("s", GPU, devices(2), node="n1"),
            resource_slice("t", GPU, devices(1), node="n1") | {"spec": 1},
        ]
    )
    shown = offline("pools", "-f", "-", stdin=text)

    assert table(shown)[0]["TOTAL"] == "2"
    assert "ResourceSlice" in shown.stderr


@pytest.mark.parametrize("flag", ["--context=there", "--kubeconfig=there"])
def test_files_and_a_cluster_are_not_looked_at_together(flag: str) -> None:
    shown = offline("pools", "-f", "x.yaml", flag)

    assert shown.exit_code == 2
    assert f"--filename names files, and {flag.partition('=')[0]} a cluster: name one of them" in shown.stderr


async def test_states_are_coloured_on_a_terminal_unless_one_wants_none(
    admin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for output in ("table", "wide"):
        coloured = Screen(admin, "devices", "--state=in-use", "-o", output)
        try:
            await coloured.until("\x1b[36min use")
            assert await coloured.end() == 0
        finally:
            coloured.close()
    monkeypatch.setenv("NO_COLOR", "1")
    for output in ("table", "wide"):
        plain = Screen(admin, "devices", "--state=in-use", "-o", output)
        try:
            await plain.until(" in use ")
            assert await plain.end() == 0
        finally:
            plain.close()


def test_a_snapshot_and_files_are_not_looked_at_together() -> None:
    shown = offline("pools", "-f", "x.yaml", "--from", "y.json")

    assert shown.exit_code == 2
    assert "--from names a snapshot, and --filename files: name one of them" in shown.stderr
