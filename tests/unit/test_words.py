"""The first few of many, and the name that was meant."""

from __future__ import annotations

import pytest

from dra_operator.words import COMPARED, akin, listed, nearest


@pytest.mark.parametrize(
    ("things", "text"),
    [
        ((), ""),
        (("a",), "a"),
        (("a", "b"), "a; b"),
        (("a", "b", "c"), "a; b and 1 more"),
        (("a", "b", "c", "d"), "a; b and 2 more"),
    ],
)
def test_the_first_few_are_named_and_the_others_counted(things: tuple[str, ...], text: str) -> None:
    assert listed(things, 2, "; ") == text


NAMES = ["numaNode", "model", "productName", "cudaDriverVersion", "driverVersion", "uuid", "memory", "pcieRoot", "ifName", "rdma"]  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "names", "meant"),
    [
        ("gpus", ["gpu", "nic"], "gpu"),
        ("gup", ["gpu", "nic"], "gpu"),
        ("gpu.exmple.com", ["gpu.example.com", "gpu.other.com"], "gpu.example.com"),
        ("gpu.tset", ["gpu.test"], "gpu.test"),
        ("gpu-test", ["gpu.test"], "gpu.test"),
        ("modle", NAMES, "model"),
        ("Model", NAMES, "model"),
        ("modal", NAMES, "model"),
        ("memmory", NAMES, "memory"),
        ("product_name", NAMES, "productName"),
        ("productname", NAMES, "productName"),
        ("produktNaem", NAMES, "productName"),
        ("pciRoot", NAMES, "pcieRoot"),
        ("cudadriverversion", NAMES, "cudaDriverVersion"),
        ("MemorySize", ["memorySize", "memorySizes"], "memorySize"),
        ("later", ["gpu", "nic"], ""),
        ("gpu", [], ""),
        ("", ["gpu"], ""),
        ("numa", NAMES, ""),
        ("cpu.example.com", ["gpu.example.com"], ""),
        ("gaudi.example.com", ["gpu.example.com"], ""),
        ("gpu.example.com", ["nic.example.com"], ""),
        ("h100", ["a100"], ""),
        ("gpu-7", ["gpu-1", "gpu-17"], ""),
        ("team-a", ["team-b"], ""),
        ("v1", ["v2"], ""),
        ("productNaemes", ["produktName"], ""),
    ],
)
def test_a_name_that_is_the_same_but_for_a_slip_is_meant(wanted: str, names: list[str], meant: str) -> None:
    assert nearest(wanted, names) == meant


@pytest.mark.parametrize(
    ("wanted", "names", "related"),
    [
        ("modle", NAMES, "model"),
        ("numa", NAMES, "numaNode"),
        ("mem", NAMES, "memory"),
        ("memoryBytes", NAMES, "memory"),
        ("gpuModel", NAMES, "model"),
        ("cudaDriver", NAMES, "cudaDriverVersion"),
        ("version", NAMES, ""),
        ("name", NAMES, ""),
        ("id", NAMES, ""),
        ("node", NAMES, "numaNode"),
        ("del", NAMES, ""),
        ("", NAMES, ""),
        ("nvidia.example", ["gpu.nvidia.example", "dra.net"], "gpu.nvidia.example"),
    ],
)
def test_a_name_that_shares_its_words_with_one_alone_is_advice(
    wanted: str, names: list[str], related: str
) -> None:
    assert akin(wanted, names) == related


@pytest.mark.parametrize(("one", "other"), [("model", "modle"), ("gpu.exmple.com", "gpu.example.com"), ("memory", "memry")])  # fmt: skip
def test_a_slip_is_one_from_either_side(one: str, other: str) -> None:
    assert (nearest(one, [other]), nearest(other, [one])) == (other, one)


def test_only_neighbours_in_the_alphabet_are_compared() -> None:
    letters = "abcdefghij"
    names = ["node-" + "".join(letters[int(digit)] for digit in f"{n:05}") for n in range(50_000)]

    assert nearest("node-daaax", names) in names[30_000 - COMPARED : 30_000 + COMPARED]
    assert nearest("xode-daaaa", names) == ""
