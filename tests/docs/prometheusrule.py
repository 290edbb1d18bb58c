"""The PrometheusRule of the component `prometheus-rules`, out of the plain rule file beside it."""

from __future__ import annotations

import yaml

from dra_operator import __version__
from tests.alertrules import load

HEAD = """\
# Written by `make docs` out of rules.yaml. Edit there.
# A Prometheus may ask for labels of its own on PrometheusRules: add them with `labels` in your kustomization.
"""


def manifest() -> str:
    """The file."""
    labels = {
        "app.kubernetes.io/name": "dra-operator",
        "app.kubernetes.io/component": "prometheus-rules",
        "app.kubernetes.io/part-of": "dra-operator",
        "app.kubernetes.io/version": __version__,
    }
    document = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "dra-operator", "namespace": "dra-operator", "labels": labels},
        "spec": load(),
    }
    return HEAD + yaml.safe_dump(document, sort_keys=False, width=1000, allow_unicode=True)
