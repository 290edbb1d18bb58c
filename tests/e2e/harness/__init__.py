"""A real Kubernetes 1.37 control plane for tests, built from Go modules and run on loopback.

`build` makes the binaries, `cluster` runs the components (`ControlPlane`), `kubectl` drives them as a user would, `workspace`
and `objects` keep tests short, `plugin` holds the pytest fixtures, `contract` runs the contract suite against it, and
`python -m tests.e2e.harness` keeps a cluster up for a developer. The package under test is never imported here.
"""
