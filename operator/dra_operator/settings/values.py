"""The settings as a value. Knows no flag, no file; checks nothing."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import StrEnum

from dra_operator.placement import NodeScore


class Mode(StrEnum):
    """How the operator shares the cluster with the stock parts (architecture, section 2)."""

    COOPERATE = "cooperate"
    REPLACE = "replace"


class GenerateClaims(StrEnum):
    """Who generates and releases claims: kube-controller-manager (`never`) or we (`always`) (cp I-33)."""

    NEVER = "never"
    ALWAYS = "always"


class ReplaceRefused(StrEnum):
    """Which pods are deleted that kube-scheduler does not bind to the node that they were sent to (cp I-27)."""

    NEVER = "never"
    OWNED = "owned"


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings; `TABLE` has the meaning, the range and the names of each."""

    kubeconfig: str | None = None
    context: str | None = None
    mode: Mode = Mode.COOPERATE
    generate_claims: GenerateClaims = GenerateClaims.NEVER
    replace_refused: ReplaceRefused = ReplaceRefused.NEVER
    node_score: NodeScore = NodeScore.SPREAD
    feature_gates: str | None = None
    leader_elect: bool = True
    lease_namespace: str | None = None
    lease_seconds: float = 15.0
    renew_seconds: float = 10.0
    retry_seconds: float = 2.0
    settle_seconds: float = 15.0
    sweep_seconds: float = 30.0
    binding_timeout_seconds: float = 600.0
    report_seconds: float = 300.0
    refused_seconds: float = 60.0
    max_writes: int = 16
    http_host: str = "0.0.0.0"  # noqa: S104 - probes come from the kubelet, scrapes from other pods
    http_port: int = 8080
    metrics_by_pool: bool = False
    metrics_of_claims: bool = False
    webhook_certificates: str | None = None
    webhook_port: int = 9443
    log_level: str = "info"
    log_format: str = "text"

    @property
    def generates(self) -> bool:
        """Whether we generate and release claims."""
        return self.generate_claims is GenerateClaims.ALWAYS

    @property
    def level(self) -> int:
        """The level as `logging` has it."""
        return logging.getLevelNamesMapping()[self.log_level.upper()]
