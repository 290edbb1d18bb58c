"""Duties, one module each: generate claims, allocate, release, sweep, keep policies. Level-triggered, thin, over one work queue.

Wired by `app`. They read the cluster model, ask `placement`, and write through `access`; none imports Kopf or speaks HTTP.
"""
