"""Validation and defaults of the embedded API server, one module a subject; `strategies` says which kind uses what.

Held to what the operator's own writes, the demo and kubectl can get wrong (cp V-3, V-11 to V-14, V-20 to V-56, V-130, V-131, cp
I-20 to I-26). What is not checked here is accepted, so a green test on this server is no proof of validity: the same contract
suite runs on a real kube-apiserver.
"""
