"""What is measured: decorators over the ports, what the stores report of themselves, and how Prometheus gets it."""
