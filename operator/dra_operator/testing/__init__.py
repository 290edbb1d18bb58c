"""What tests and the demo need instead of a cluster: the embedded API server, builders, scripted faults.

Shipped with the package, so that users can test against it, too. The operator itself never imports it.
"""
