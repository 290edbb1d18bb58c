"""The pages in docs/ that are made out of code. `make docs` writes them; a test fails when one is stale."""
