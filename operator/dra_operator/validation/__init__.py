"""What kube-apiserver refuses about objects of `resource.k8s.io` and about pods' claims, as plain functions over raw objects (cp V rules).

`kubectl dra lint` asks, and so does the embedded API server: one set of rules, held to a real kube-apiserver by `tests/contract`. Each check
takes an object in its v1 form with defaults filled in, and returns causes in the server's words; it never raises. It must not do I/O, and says
nothing of what is legal and all the same wrong: that is `lint`'s part.
"""
