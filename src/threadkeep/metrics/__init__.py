"""What is measured: the metrics, what the stores report of themselves, and how Prometheus gets both."""
