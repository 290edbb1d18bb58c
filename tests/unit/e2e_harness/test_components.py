"""Options of the control plane under test, as the command lines that they become."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.harness import components
from tests.e2e.harness.build import Binaries
from tests.e2e.harness.cluster import free_ports
from tests.e2e.harness.components import (
    APISERVER,
    CONTROLLER_MANAGER,
    ETCD,
    KWOK,
    SCHEDULER,
    Layout,
    Options,
    Ports,
)

ALL = (ETCD, APISERVER, CONTROLLER_MANAGER, SCHEDULER, KWOK)
GATED = (APISERVER, CONTROLLER_MANAGER, SCHEDULER)


def layout(options: Options | None = None) -> Layout:
    binaries = Binaries(Path("/bin/controlplane"), Path("/bin/kwok"))
    return Layout(Path("/data"), binaries, Ports(1, 2, 3, 4, 5, 6), options or Options())


def test_every_component_listens_on_loopback_only() -> None:
    flags = [flag for name in ALL for flag in layout().command(name)]
    listening = [
        flag for flag in flags if flag.startswith(("--bind-address", "--listen", "--server-address"))
    ]

    assert len(listening) == 6
    assert [flag for flag in listening if "127.0.0.1" not in flag] == []


def test_emulated_version_and_gates_reach_all_three() -> None:
    options = Options(emulated_version="1.36", feature_gates={"A": True, "B": False})
    commands = [layout(options).command(name) for name in GATED]

    assert [
        {"--emulated-version=1.36", "--feature-gates=A=true,B=false"} <= set(command) for command in commands
    ] == [
        True,
        True,
        True,
    ]


def test_controllers_are_one_list() -> None:
    options = Options(controllers=("*", "-resourceclaim-controller"))

    assert "--controllers=*,-resourceclaim-controller" in layout(options).command(CONTROLLER_MANAGER)


def test_scheduler_plugins_are_disabled_at_every_extension_point() -> None:
    options = Options(disabled_scheduler_plugins=("DynamicResources",))
    (profile,) = json.loads(components.scheduler_configuration(layout(options)))["profiles"]

    assert profile == {
        "schedulerName": "default-scheduler",
        "plugins": {"multiPoint": {"disabled": [{"name": "DynamicResources"}]}},
    }


def test_stock_scheduler_profile_has_no_plugin_list() -> None:
    (profile,) = json.loads(components.scheduler_configuration(layout()))["profiles"]

    assert profile == {"schedulerName": "default-scheduler"}


def test_tokens_file_has_a_row_for_each_user() -> None:
    tokens = {user: f"token-{user}" for user in components.USERS}

    assert components.tokens_csv(tokens).splitlines() == [
        'token-admin,admin,admin,"system:masters"',
        'token-kube-controller-manager,system:kube-controller-manager,kube-controller-manager,""',
        'token-kube-scheduler,system:kube-scheduler,kube-scheduler,""',
        'token-kwok,kwok,kwok,"system:masters"',
        'token-user,jane,user,""',
    ]


def test_free_ports_differ() -> None:
    ports = free_ports()
    numbers = [
        ports.etcd,
        ports.etcd_peer,
        ports.apiserver,
        ports.controller_manager,
        ports.scheduler,
        ports.kwok,
    ]

    assert len(set(numbers)) == len(numbers)
