"""What can be called: CEL's standard library, its extensions and Kubernetes' libraries, a table each, and the work that calls take.

A declaration and its implementation stand in one place (`registry.py`). Which table exists at which version of Kubernetes is for `checking` to know; nothing
here knows the syntax tree.
"""
