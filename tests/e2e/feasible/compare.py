"""Runs seeds and puts both answers side by side."""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.e2e.harness.cluster import ControlPlane

from .extender import Extender
from .oracle import Oracle, plane_options
from .ours import reasons
from .worlds import world

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .base import World
    from .oracle import Answers

_NAMES = re.compile(
    r"\{.*?\}|\"[^\"]*\"|\[\d+\]|\S*\b(?:claim|data|pod|volume)-\d+[-\w]*|\bgone\b|\bnowhere\b"
)
"""What differs between equal reasons."""


@dataclass
class Comparison:
    """What came of some seeds.

    Attributes:
        passed: pairs of pod and node that both let pass.
        refused: pairs that both turn down, by our reason.
        differences: the pairs on which they differ, in words.
    """

    passed: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    @property
    def pairs(self) -> int:
        """How many pairs both were asked about."""
        return self.passed + self.refused.total() + len(self.differences)

    def add(self, seed: int, made: World, answers: Answers) -> None:
        """Compare the answers for the world of a seed."""
        for name, by_node in reasons(answers.objects, answers.passed).items():
            for node, reason in by_node.items():
                theirs = node in answers.passed[name]
                if theirs != (not reason):
                    self._differ(
                        f"seed {seed}: {name} on {node}", reason, answers.messages[name], _spec(made, name)
                    )
                elif theirs:
                    self.passed += 1
                else:
                    self.refused[_NAMES.sub("…", reason)] += 1

    def _differ(self, where: str, reason: str, message: str, spec: str) -> None:
        ours = (
            f"we say “{reason}”, kube-scheduler lets it pass"
            if reason
            else "we let it pass, kube-scheduler does not"
        )
        self.differences.append(f"{where}: {ours}; its word on the pod: {message}\n    {spec}")


@contextmanager
def oracle() -> Iterator[Oracle]:
    """kube-scheduler, ready to be asked, on a control plane of its own."""
    with Extender() as extender, ControlPlane.start(plane_options(extender)) as plane:
        asked = Oracle(plane, extender)
        try:
            yield asked
        finally:
            asked.close()


def compare(asked: Oracle, seeds: Iterator[int] | range) -> Iterator[Comparison]:
    """The comparison so far, after each seed."""
    found = Comparison()
    for seed in seeds:
        made = world(seed)
        found.add(seed, made, asked.ask(made))
        yield found


def _spec(made: World, name: str) -> str:
    pod = next(item for item in made.pods if item["metadata"]["name"] == name)
    return json.dumps({"labels": pod["metadata"]["labels"], **pod["spec"]}, sort_keys=True)
