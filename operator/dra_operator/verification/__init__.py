"""Whether allocations obey the rules: an independent check, written from the specification and not from the allocator.

`verify` is the entry. Tests, chaos runs and commands ask it about allocations whoever made them: it must not import `allocator`, nor share its
code, or both would have the same faults. Pure: no I/O, no clock, and nothing that it is given changes.
"""

from .rules import RULES, Rule
from .snapshot import Allocated, Broken, Snapshot, Taken
from .verify import verify

__all__ = ["RULES", "Allocated", "Broken", "Rule", "Snapshot", "Taken", "verify"]
