"""A bounded, seeded storm on a real control plane, and an independent check of what may never be so: `python -m tests.chaos`."""
