"""What can be set, by flag, environment (`DRA_OPERATOR_*`) or file, as one frozen value.

A setting is a field of `Settings` and a row of `TABLE`, nothing else: the flags and their help, the checks of all three sources, and
docs/settings.md are made out of the row. Nothing outside of this package reads a setting from the environment.
"""

from .options import SetCommand, build, chosen, options, origins, strays
from .table import BY_NAME, TABLE, Group, Setting
from .values import GenerateClaims, Mode, ReplaceRefused, Settings

__all__ = [
    "BY_NAME",
    "TABLE",
    "GenerateClaims",
    "Group",
    "Mode",
    "ReplaceRefused",
    "SetCommand",
    "Setting",
    "Settings",
    "build",
    "chosen",
    "options",
    "origins",
    "strays",
]
