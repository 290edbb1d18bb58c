"""Our CEL engine against upstream's own code: a Go program that answers, random expressions, and the comparison.

`python -m tests.oracle` compares; README.md here tells how. Nothing here is part of the product.
"""
