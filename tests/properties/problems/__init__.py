"""Random problems for allocators, seeded: pairs and triples of features that meet on few devices.

`problem` makes one, in the form of the oracle's problem object (tests/oracle/README.md). Objects are such as the API server stores, except where a bad
one is the point (topic `broken`). `python -m tests.properties.problems` measures which topics there are and what comes out.
"""

from .make import problem
from .topics import TOPICS

__all__ = ["TOPICS", "problem"]
