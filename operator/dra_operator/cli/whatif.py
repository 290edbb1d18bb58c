"""What-ifs of `kubectl dra simulate`: the flags, and how they are made true of what was read. `simulation.Supposing` does the supposing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from dra_operator.errors import InvalidInput
from dra_operator.words import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dra_operator.simulation import Supposing
    from dra_operator.simulation.copying import Shape

    from .simulate import Input

MOST: Final = 1000
"""Nodes that are added at a time: a figure that is too large by a slip must not take the memory. Arbitrary."""

SHOWN: Final = 4
"""Names that a message has. Arbitrary."""

_FLAGS: Final = (
    click.option(
        "--add-node",
        "add_node",
        multiple=True,
        metavar="SHAPE",
        help="Suppose one more node like SHAPE, with slices, pools and devices of its own: the name of a node, or a file with a Node and its ResourceSlices.",
    ),
    click.option(
        "--count",
        type=click.IntRange(1, MOST),
        help="How many nodes of each --add-node; 1 by default.",
    ),
    click.option(
        "--free",
        multiple=True,
        metavar="CLAIM",
        help="Suppose that the pods that use this claim ([namespace/]name) end, and its devices come free.",
    ),
    click.option(
        "--drain",
        multiple=True,
        metavar="NODE",
        help="Suppose that this node is cordoned, and its pods are made anew by their controllers.",
    ),
    click.option(
        "--remove",
        multiple=True,
        metavar="DRIVER/POOL/DEVICE",
        help="Suppose that this device is gone.",
    ),
    click.option(
        "--taint",
        multiple=True,
        metavar="DRIVER/POOL/DEVICE=KEY[=VALUE]:EFFECT",
        help="Suppose a DeviceTaintRule for this device (* for any pool or device), and its evictions done.",
    ),
)


def supposable(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command these flags."""
    for flag in reversed(_FLAGS):
        command = flag(command)
    return command


def suppose(read: Input, options: Mapping[str, Any]) -> None:
    """Make true what the flags say, in the order in which `--help` has them.

    Raises:
        InvalidInput: one cannot be; names the flag, the object and the remedy.
    """
    from dra_operator.simulation import Supposing

    if options["count"] is not None and not options["add_node"]:
        raise InvalidInput("--count", "says how many nodes: name one to copy with --add-node")
    supposing = Supposing(read.given)
    for name in options["add_node"]:
        supposing.add_nodes(_shape(supposing, read, name), options["count"] or 1)
    for text in options["free"]:
        supposing.free(text)
    for text in options["drain"]:
        supposing.drain(text)
    for text in options["remove"]:
        supposing.remove(text)
    for text in options["taint"]:
        supposing.taint(text)
    read.supposed += supposing.sentences


def _shape(supposing: Supposing, read: Input, name: str) -> Shape:
    """The node of that name, or that of a file."""
    found = supposing.shape(name)
    if found is not None:
        return found
    if Path(name).is_file():
        return _shape_of_file(read, name)
    known = listed(sorted(read.given.nodes()), SHOWN) or "none"
    raise InvalidInput(f"--add-node {name}", f"is neither a node nor a file; nodes there are: {known}")


def _shape_of_file(read: Input, name: str) -> Shape:
    from dra_operator.simulation.copying import shape_of

    from . import files
    from .simulate import begin

    template = begin(read.given.namespace, ())
    template.gates = read.gates
    template.add(files.read([name], recursive=False))
    if template.is_wrong:
        first = next(finding for finding in template.findings)
        raise InvalidInput(
            f"--add-node {name}", f"{first.message}; `kubectl dra lint -f {name}` tells all that is wrong"
        )
    nodes = list(template.given.raw("Node"))
    if len(nodes) != 1:
        raise InvalidInput(
            f"--add-node {name}",
            f"a template has one Node and its ResourceSlices, and this has {len(nodes)} Nodes",
        )
    return shape_of(template.given, nodes[0])
