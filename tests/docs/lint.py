"""docs/lint.md, out of the table of codes."""

from __future__ import annotations

from typing import Final

from dra_operator.lint import CODES, ERROR, WARNING, Code

from .markdown import generated, joined, table

INTRODUCTION: Final = """
# What lint finds

`kubectl dra lint -f FILE` checks manifests before they are applied; [workload-operator.md](workload-operator.md#check-before-you-apply) shows it at work. It looks at
DeviceClasses, ResourceClaims and their templates, DeviceTaintRules and ResourceSlices in all versions of `resource.k8s.io`, and at what pods say of claims, wherever the pods are: in
Deployments, Jobs, or kinds that only you know. Other objects are passed over.

* **Files**: YAML of any number of documents, JSON, Lists; `-f` as often as you like, folders, `-` for stdin, such as what `helm template` and `kubectl kustomize` print. Neither a document
  nor a file that cannot be read stops the others. Texts are UTF-8, or UTF-16 with its mark, as kubectl reads them.
* **Folders**: the files that kubectl takes: whose names end with `.json`, `.yaml` or `.yml`, hidden ones, too (`.gpu.yaml`), and no backups of editors (`gpu.yaml~`, `.gpu.yaml.swp`). Folders below
  are looked at, as by `kubectl apply -R`, hidden ones, too; with `--no-recursive` they are not, as by kubectl without `-R`.
* **No cluster** is asked unless `--kubeconfig` or `--context` names one. Then also its classes, slices, namespaces, templates and claims count, and a name that neither they nor the files have
  is told; without a cluster only one that is nearly the name of something in the files, as the rest may well exist. Rights to list those kinds are enough; which of them you
  lack, it says. `--namespace` is for objects that name none.
* **Slices in the files** (`kubectl get resourceslices --output=yaml`) tell which attributes there are: misspelt ones are found, selectors that no device meets, constraints that none can.
* **Output**: text with carets; `--output=json` with `findings`, each with `severity`, `code`, `file`, `line`, `column`, `endColumn`, `kind`, `namespace`, `name`, `path`, `message`, `remedy`;
  `--output=github` as annotations of a workflow: files are named from the root of the repository whatever the folder of the step, what came by stdin has no file. GitHub shows the first ten
  errors and ten warnings of a step; the step's log has all: `kubectl dra lint -f manifests --strict --output=github`. Lines and columns count from 1, columns in characters. The codes below are stable.
* **Exit status**: 0 nothing found, or warnings only; 1 errors, with `--strict` also warnings; 2 something could not be looked at: a file that is not there (`Unreadable`; the findings in others are
  shown all the same), a cluster that does not answer, a flag that is none.

It checks for Kubernetes 1.37 with its default feature gates; `--feature-gates=DRAListTypeAttributes=true` names others, as the API server takes them. A field whose gate is off is told with
the flag that has it on (`FeatureOff`), and nothing else is said of it. Quotas, webhooks and policies of a cluster are not looked at.
"""

ERRORS: Final = """
## Errors

What the API server refuses (or kubectl, before it asks).
"""

WARNINGS: Final = """
## Warnings

What the API server takes, and is wrong all the same as far as can be seen.
"""


def page() -> str:
    """The page."""
    return joined(
        generated("operator/dra_operator/lint/findings.py"),
        INTRODUCTION,
        ERRORS,
        _table(ERROR),
        WARNINGS,
        _table(WARNING),
    )


def _table(severity: str) -> str:
    rows = [_row(name, code) for name, code in CODES.items() if code.severity == severity]
    return table(("code", "what is wrong", "what to do"), rows)


def _row(name: str, code: Code) -> tuple[str, str, str]:
    return f"`{name}`", code.text, code.remedy or "the message says it"
