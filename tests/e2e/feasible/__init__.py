"""Which nodes of random small clusters can take random pods: our answer beside that of the real kube-scheduler.

`worlds` makes clusters and pods out of a seed, `oracle` asks kube-scheduler, `ours` asks placement, `compare` runs seeds and tells
the differences. `tests/e2e/test_feasible.py` does so for a few fixed seeds, `python -m tests.e2e.feasible --seeds 500` for many.
"""
