"""Manifests such as real drivers publish and their users write, and what has to become of each.

The files are the project's own: names, attributes and quantities are facts taken from drivers' documents and live dumps, the rest
is not. `cases` says what was meant and must happen; the same table is run on the embedded API server and on a real control plane.
"""
