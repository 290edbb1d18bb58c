"""YAML as kubectl reads it: for whatever a command prints as YAML."""

from __future__ import annotations

import re

import yaml


class Quoting(yaml.SafeDumper):
    """Quotes also what is a number to YAML 1.2 and kubectl only: an object may be called 824509e6. Writes no aliases."""

    def ignore_aliases(self, data: object) -> bool:
        """See `yaml.SafeDumper`."""
        del data
        return True


Quoting.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+|0o[0-7]+"), list("-+0123456789")
)
