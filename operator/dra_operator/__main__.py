"""`python -m dra_operator` is `dra-operator`."""

from dra_operator.app import main

main()
