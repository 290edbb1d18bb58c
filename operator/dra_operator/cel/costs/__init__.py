"""Upstream's cost, in upstream's units: what an expression is estimated at, what no evaluation exceeds, and what calls really cost.

The work that we count for ourselves is `functions/work.py` and `meter.py`. No expression is evaluated here.
"""
