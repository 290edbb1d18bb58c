"""The shipped Grafana dashboards: built here with Grafana's own builders, committed as JSON, read again by the tests that hold them to the table of metrics."""
