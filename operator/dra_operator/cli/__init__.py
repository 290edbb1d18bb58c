"""`kubectl dra`: read-only commands with the current kubeconfig, straight from the API, operator running or not.

`claims` says who holds what, `drift` what is left over or given twice, `lint` what is wrong with manifests, `simulate` who would get what; these two need no cluster. They never write, and know neither controllers nor the running operator.
"""

from .main import main

__all__ = ["main"]
