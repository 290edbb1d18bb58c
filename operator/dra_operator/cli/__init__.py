"""`kubectl dra`: read-only commands with the current kubeconfig, straight from the API, operator running or not.

A room with one inhabitant so far, `claims`. It never writes, and knows neither controllers nor the running operator.
"""

from .main import main

__all__ = ["main"]
