"""The demo: `python -m dra_operator.testing.demo`, or `make demo`.

Shows the main job on the embedded API server in well under a minute: nodes and slices as real drivers publish them, a policy,
classes, templates and pods applied with real kubectl; then which pod got which devices on which node, who has to wait and
why, and devices coming free. The operator runs as its own process, exactly as it would on a cluster; the demo itself only uses
kubectl and watches the API. Whatever it says it has seen there: anything else ends it with a status other than 0.
"""
