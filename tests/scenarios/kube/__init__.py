"""How `kube` behaves towards an API server that misbehaves on purpose."""
