"""What an expression means before it runs: the names that it may use, the type of each node, the overloads that fit. `checks.check` is the way in.

Nothing is evaluated here, but literals that upstream looks at beforehand.
"""
