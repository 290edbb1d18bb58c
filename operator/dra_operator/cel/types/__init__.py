"""Values of CEL and their static types, below everything else of the engine.

Nothing here knows an expression.
"""
